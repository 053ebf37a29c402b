"""Put one mistake at a time into a copy of the package, and see whether the module's tests notice.

``python -m validation.mutants`` runs all mutants, with names after it those; ``--list`` tells the names.
A mutant is *killed* if a test fails. It is no success if the tests hang or cannot be collected: both are said, and end
with 1 as a survivor does. Compiled kernels are not mutated; the copy keeps times of change, and with them their cache.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMEOUT = 300.0
"""Seconds that the tests of one mutant may take."""
TESTS_FAILED = 1
"""What pytest ends with if tests ran and some failed; higher numbers are errors of other kinds."""


@dataclass(frozen=True)
class Mutant:
    """``text`` of ``file`` (in src/mixmem), which must stand there exactly once, becomes ``replacement``."""

    name: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]


GIBBS = ("refinement/test_gibbs.py",)
UNCERTAINTY = ("results/test_uncertainty.py",)
COPIES = ("selection/test_copies.py",)
MATCHING = ("moments/test_matching.py",)
SOLVERS = ("moments/test_solvers.py",)
FACTORS = ("moments/test_theta_from_factors.py",)

MUTANTS = [
    Mutant(
        "theta variance times four", "refinement/gibbs.py",
        "share * (1.0 - share) / (size + 1.0)", "4.0 * share * (1.0 - share) / (size + 1.0)", GIBBS,
    ),
    Mutant(
        "chains always agree", "refinement/gibbs.py",
        "return _agreement(_rhat(chains)) <= LARGEST_RHAT", "return True", GIBBS,
    ),
    Mutant(
        "agreement is not asked for", "refinement/gibbs.py",
        "_noise_share(chains) <= ENOUGH and _agree(chains)", "_noise_share(chains) <= ENOUGH", GIBBS,
    ),
    Mutant(
        "chains on their way are still", "refinement/gibbs.py",
        "return not (one_way & (np.abs(moves).mean(axis=(0, 1)) > STILL)).any()", "return True", GIBBS,
    ),
    Mutant(
        "eta without its prior", "refinement/gibbs.py",
        "prior = -0.5 * (at - np.log(0.5)) ** 2", "prior = 0.0", GIBBS,
    ),
    Mutant(
        "R-hat of whole chains", "refinement/gibbs.py",
        "halves = np.concatenate([means[:, :half].mean(axis=1), means[:, -half:].mean(axis=1)])",
        "halves = np.concatenate([means.mean(axis=1), means.mean(axis=1)])", GIBBS,
    ),
    Mutant(
        "noise within chains only", "refinement/gibbs.py",
        "np.maximum(within, 0.5 * (within + between))", "within", GIBBS,
    ),
    Mutant(
        "theta variance without its means", "refinement/gibbs.py",
        "inner.mean(axis=(0, 1)) + means.var(axis=(0, 1))", "inner.mean(axis=(0, 1))", GIBBS,
    ),
    Mutant(
        "jackknife by the root of groups", "results/uncertainty.py",
        "scale = np.sqrt(groups - 1)", "scale = np.sqrt(groups)", UNCERTAINTY,
    ),
    Mutant(
        "normal quantile for Student's", "results/uncertainty.py",
        "reach = stdtrit(degrees, 0.5 + 0.5 * level) * error", "reach = stdtrit(np.inf, 0.5 + 0.5 * level) * error",
        UNCERTAINTY,
    ),
    Mutant(
        "jackknife without degrees of freedom", "results/uncertainty.py",
        "scale * alphas.std(axis=0), groups - 1)", "scale * alphas.std(axis=0), np.inf)", UNCERTAINTY,
    ),
    Mutant(
        "beta shapes by the variance", "results/uncertainty.py",
        "np.maximum(mean * size, 1e-9), np.maximum((1.0 - mean) * size, 1e-9)",
        "np.maximum(mean * variance, 1e-9), np.maximum((1.0 - mean) * variance, 1e-9)", UNCERTAINTY,
    ),
    Mutant(
        "worst assignment of columns", "moments/matching.py",
        "best_assignment(-affinity.T)", "best_assignment(affinity.T)", MATCHING,
    ),
    Mutant(
        "assignment of the other side", "moments/matching.py",
        "best_assignment(-affinity.T)", "best_assignment(-affinity)", MATCHING,
    ),
    Mutant(
        "worst assignment of components", "moments/components.py",
        "linear_sum_assignment(cost)[1]", "linear_sum_assignment(-cost)[1]", ("moments/test_components.py",),
    ),
    Mutant(
        "Procrustes by angles", "moments/matching.py",
        "return np.asarray(left @ right)", "return np.asarray(cosines)", MATCHING,
    ),
    Mutant(
        "bound of theorem 5 never met", "moments/matching.py",
        "bound = 1.0 - np.sqrt(0.5 + np.sqrt((1.0 + largest) / 8.0))",
        "bound = np.sqrt(0.5 + np.sqrt((1.0 + largest) / 8.0)) - 1.0", MATCHING,
    ),
    Mutant(
        "bound of theorem 5 of half the angle", "moments/matching.py",
        "bound = 1.0 - np.sqrt(0.5 + np.sqrt((1.0 + largest) / 8.0))",
        "bound = 1.0 - np.sqrt((1.0 + largest) / 2.0)", MATCHING,
    ),
    Mutant(
        "third moment left asymmetric", "moments/solvers/symmetric.py",
        "small = sum(np.transpose(small, order) for order in orders) / 6.0", "pass", SOLVERS,
    ),
    Mutant(
        "second moment left asymmetric", "moments/solvers/symmetric.py",
        "second = (second + second.T) / 2.0", "pass", SOLVERS,
    ),
    Mutant(
        "simplex by row sums", "moments/theta_from_factors.py",
        "spread = np.repeat(sums, sizes, axis=0)",
        "spread = np.broadcast_to(x.sum(axis=1, keepdims=True), x.shape)", FACTORS,
    ),
    Mutant(
        "alpha without its half", "moments/theta_from_factors.py",
        "(alpha0 + 1.0) * (alpha0 + 2.0) / 2.0", "(alpha0 + 1.0) * (alpha0 + 2.0)", FACTORS,
    ),
    Mutant(
        "sweeps keep the pairs of their own group", "moments/sweep.py",
        "return tuple(total - mine for total, mine in zip(self.sums, self._sums(part), strict=True))",
        "return self.sums", ("moments/test_sweep.py",),
    ),
    Mutant(
        "third correction swapped", "moments/dirichlet.py",
        "raw - once * crossed + twice * u * v * w", "raw - twice * crossed + once * u * v * w",
        ("moments/test_sums.py",),
    ),
    Mutant(
        "columns follow whatever differs", "selection/copies.py",
        "missed <= min(MISSED * n, MISSED_RARE * rare)", "missed <= MISSED * n", COPIES,
    ),
    Mutant(
        "related numbers are copies", "selection/copies.py",
        "if abs(ranked) >= RANKED:", "if abs(ranked) >= 0.9:", COPIES,
    ),
]  # fmt: skip


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the package and its tests, times of change kept, to a folder that goes away afterwards."""
    with tempfile.TemporaryDirectory(prefix="mixmem-mutant-") as name:
        folder = Path(name)
        for part in ("src", "tests"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy2(ROOT / "pyproject.toml", folder)
        yield folder


def apply(mutant: Mutant, folder: Path) -> None:
    """Replace the mutant's text in a copy; the text must stand there exactly once."""
    path = folder / "src" / "mixmem" / mutant.file
    source = path.read_text()
    if (times := source.count(mutant.text)) != 1:
        raise SystemExit(f"{mutant.name}: the text stands {times} times in {mutant.file}, not once: {mutant.text}")
    path.write_text(source.replace(mutant.text, mutant.replacement))
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()


def run(arguments: list[str], folder: Path, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python on the copy's package."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    environment.pop("NUMBA_CACHE_DIR", None)  # the copied cache lies beside the copied kernels
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )


def run_tests(tests: tuple[str, ...], folder: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run test files of the copy until one test fails."""
    files = [f"tests/{test}" for test in tests]
    return run(["-m", "pytest", "-x", "--tb=no", "-rf", "-p", "no:cacheprovider", *files], folder, timeout)


def check_copy(mutants: list[Mutant]) -> None:
    """Refuse to go on unless the copy's own package is imported and its tests pass without a mistake in it."""
    with copied() as folder:
        found = run(["-c", "import mixmem; print(mixmem.__file__)"], folder).stdout.strip()
        print(f"imports {found}")
        if not Path(found).is_relative_to(folder):
            raise SystemExit(f"the copy in {folder} was not imported")
        tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        ran = run_tests(tests, folder, TIMEOUT * len(tests))
        if ran.returncode:
            raise SystemExit(f"tests fail without any mutant:\n{ran.stdout}{ran.stderr}")
        print(f"without a mutant: {ran.stdout.strip().splitlines()[-1]}", flush=True)


def verdict(mutant: Mutant) -> tuple[bool, str]:
    """Return whether a test failed on the mutant, and a word on it: which one, as a rule."""
    with copied() as folder:
        apply(mutant, folder)
        try:
            ran = run_tests(mutant.tests, folder, TIMEOUT)
        except subprocess.TimeoutExpired:
            return False, f"HUNG for {TIMEOUT:.0f} seconds"
    if ran.returncode == TESTS_FAILED:
        failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
        return True, "killed by " + failed[0].split("::", 1)[1].split(" - ")[0] if failed else "killed"
    if ran.returncode:
        return False, f"BROKEN: pytest ended with {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return False, "SURVIVED"


def main(arguments: list[str] | None = None) -> int:
    """Run mutants by name, all of them by default; returns 1 if any was not killed."""
    parser = argparse.ArgumentParser(prog="python -m validation.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="mutants to run; all if none is named")
    parser.add_argument("--list", action="store_true", help="name the mutants and run none")
    options = parser.parse_args(arguments)
    known = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no mutant is called {unknown[0]!r}; --list names them all")
    chosen = [known[name] for name in options.names] or MUTANTS
    if options.list:
        print("\n".join(known))
        return 0
    check_copy(chosen)
    n_left = 0
    for mutant in chosen:
        start = time.perf_counter()
        killed, word = verdict(mutant)
        n_left += not killed
        print(f"{mutant.name:<42} {time.perf_counter() - start:4.0f} s  {word}", flush=True)
    print(f"{len(chosen) - n_left} of {len(chosen)} mutants killed")
    return 1 if n_left else 0


if __name__ == "__main__":
    sys.exit(main())
