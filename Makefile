# Every target works from a fresh checkout: a stamp builds its environment the first time and after pyproject.toml changes.
.PHONY: demo test coverage lint bench docs lowest pythons build clean
.DEFAULT_GOAL := demo

# Each candidate is run, not just looked up: a version manager's shim may exist without its Python.
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '' 2>/dev/null && { echo $$p; break; }; done)
STAMP := .venv/.installed
# Tests start many processes, and each would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE
# Threads of BLAS with nothing to do sleep at once; else they spin for a tenth of a second in each of these processes.
export OPENBLAS_THREAD_TIMEOUT := 4

# A Python of one version, such as 3.12: on the path, or where pyenv keeps it.
PYENV_ROOT ?= $(HOME)/.pyenv
VERSIONS := 3.11 3.12 3.13
python_of = $(shell for p in python$(1) $(wildcard $(PYENV_ROOT)/versions/$(1).*/bin/python); do \
  $$p -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "$(1)")' 2>/dev/null && { echo $$p; break; }; done)

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

lint: $(STAMP)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: $(STAMP)
	.venv/bin/python -m pip install -q -e ".[bench]"
	.venv/bin/python -m benchmarks

# The documentation as a site, in site/; a warning is an error.
docs: $(STAMP)
	.venv/bin/python -m pip install -q -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet
	@echo "open site/index.html"

# The suite with the lowest version of every dependency, under the lowest Python.
LOWEST := $(firstword $(VERSIONS))
.venv-lowest/.installed: pyproject.toml tools/lowest.py
	@test -n "$(call python_of,$(LOWEST))" || { echo "make lowest needs Python $(LOWEST), which was not found" >&2; exit 1; }
	rm -rf .venv-lowest
	$(call python_of,$(LOWEST)) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install -q --upgrade pip
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install -q -c .venv-lowest/constraints.txt -e ".[dev,cells,arviz]"
	@touch $@

lowest: .venv-lowest/.installed
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-lowest/numba .venv-lowest/bin/python -m pytest -n 2

# The suite under every Python that is installed; a version that is not is named, and fails nothing.
.venv-3.%/.installed: pyproject.toml
	rm -rf .venv-3.$*
	$(call python_of,3.$*) -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install -q --upgrade pip
	.venv-3.$*/bin/python -m pip install -q -e ".[dev]"
	@touch $@

FOUND := $(strip $(foreach v,$(VERSIONS),$(if $(filter pythons coverage,$(MAKECMDGOALS)),$(if $(call python_of,$(v)),$(v)))))
pythons: $(foreach v,$(FOUND),.venv-$(v)/.installed)
	@failed=; for v in $(FOUND); do \
	  echo "Python $$v:"; NUMBA_CACHE_DIR=$(CURDIR)/.venv-$$v/numba .venv-$$v/bin/python -m pytest -n 2 || failed="$$failed $$v"; done; \
	for v in $(filter-out $(FOUND),$(VERSIONS)); do echo "Python $$v is not installed, so nothing was tested with it"; done; \
	test -n "$(FOUND)" || { echo "none of Python $(VERSIONS) was found" >&2; exit 1; }; \
	test -z "$$failed" || { echo "the suite fails under Python$$failed" >&2; exit 1; }; \
	echo "the suite passes under Python $(FOUND)"

# Kernels run as plain Python here, so that coverage sees inside them, and a test may take three times as long as else. Under the
# newest Python: from 3.12 on it reports a line once (sysmon), where an older one is traced through every round of every loop.
NEWEST := $(lastword $(FOUND))
coverage: .venv-$(NEWEST)/.installed
	NUMBA_DISABLE_JIT=1 COVERAGE_CORE=sysmon .venv-$(NEWEST)/bin/python -m pytest -n 2 -m "not slow" --timeout=900 --cov=mixmem \
	  --cov-report=term-missing:skip-covered --cov-fail-under=92

# Wheel and sdist, and the suite against the wheel as a user has it: in an environment of its own, without extras.
build: $(STAMP)
	rm -rf dist .venv-build
	.venv/bin/python -m build --outdir dist .
	$(PYTHON) -m venv .venv-build
	.venv-build/bin/python -m pip install -q --upgrade pip
	.venv-build/bin/python -m pip install -q "$$(ls dist/mixmem-*.whl)[test]"
	.venv-build/bin/python tools/check_build.py -n 2 -m "not slow"

clean:
	rm -rf .venv .venv-lowest .venv-build .venv-3.* demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
