# Every target works from a fresh checkout: the stamp builds .venv the first time and after pyproject.toml changes.
.PHONY: demo test coverage lint bench clean
.DEFAULT_GOAL := demo

# Each candidate is run, not just looked up: a version manager's shim may exist without its Python.
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '' 2>/dev/null && { echo $$p; break; }; done)
STAMP := .venv/.installed

$(STAMP): pyproject.toml
	@test -n "$(PYTHON)" || { echo "mixmem needs Python 3.11 or newer; none was found (set PYTHON=...)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "mixmem needs Python 3.11 or newer, found $$($(PYTHON) --version) (set PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --upgrade pip
	.venv/bin/python -m pip install -q -e ".[dev]"
	@touch $@

demo: $(STAMP)
	.venv/bin/mixmem demo --out demo

test: $(STAMP)
	.venv/bin/python -m pytest -n 2

# Kernels run as plain Python here, so that coverage sees inside them.
coverage: $(STAMP)
	NUMBA_DISABLE_JIT=1 .venv/bin/python -m pytest -n 2 -m "not slow" --cov=mixmem \
	  --cov-report=term-missing:skip-covered --cov-fail-under=92

lint: $(STAMP)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: $(STAMP)
	.venv/bin/python -m pip install -q -e ".[bench]"
	.venv/bin/python -m benchmarks

clean:
	rm -rf .venv demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
