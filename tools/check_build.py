"""Check what ``make build`` built: what the sdist and the wheel hold, the commands, and the suite against the wheel.

Run by the Python of an environment that has the wheel, without extras, and the test tools. The sdist is unpacked into a
temporary folder without its ``src``, and everything runs there: only the installed wheel can be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("LICENSE", "README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "src", "tests", "docs", "benchmarks")
IF_THERE = ("CONTRIBUTING.md", "RELEASING.md", "CITATION.cff", "validation", "examples", "tools")
BUILT_ELSEWHERE = ("__pycache__", ".pyc", "benchmarks/results")
IN_WHEEL = ("mixmem/__init__.py", "mixmem/__init__.pyi", "mixmem/py.typed")
EXTRAS = (
    "pyarrow", "cyvcf2", "pyreadstat", "python_calamine", "duckdb", "zstandard", "stop_words", "anndata", "dask",
    "distributed", "bed_reader",
)  # fmt: skip
"""Libraries that only extras bring: none of them may be there."""
LABELS = "task,worker,label\nt1,ann,cat\nt1,bob,cat\nt1,eve,dog\nt2,ann,dog\nt2,bob,dog\nt3,ann,cat\nt3,eve,cat\n"
NOTES = "text\n" + "late goal won match\nvote on new law\n" * 10
COMMANDS = (
    "mixmem demo --out demo",
    "mixmem simulate --rows 300 --variables 12 --levels 3 -k 2 --alpha 0.2 --seed 1 --out survey",
    "mixmem fit survey/data.csv -k 2 --out fit",
    "mixmem choose-k survey/data.csv --from 2 --to 3 --out choice",
    "mixmem crowd labels.csv --out crowd",
    "mixmem topics notes.csv -k 2 --out topics",
)


def check(true: bool, message: str) -> None:
    """End with a message if something is not as it must be."""
    if not true:
        raise SystemExit(f"make build: {message}")


def only(pattern: str) -> Path:
    """Return the one file of dist/ with that name."""
    found = list((ROOT / "dist").glob(pattern))
    check(len(found) == 1, f"expected one {pattern} in dist/, found {len(found)}; run make build")
    return found[0]


def files_of(folder: str) -> set[str]:
    """Return the paths of all files in a file or folder of the checkout that belong to the project."""
    place = ROOT / folder
    paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    names = {path.relative_to(ROOT).as_posix() for path in paths}
    return {name for name in names if not any(part in name for part in BUILT_ELSEWHERE)}


def check_contents(sdist: Path, wheel: Path) -> None:
    """Compare both archives with the checkout."""
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = set().union(
        *(files_of(name) for name in (*NEEDED, *(name for name in IF_THERE if (ROOT / name).exists())))
    )
    check(not wanted - inside, f"{sdist.name} lacks {sorted(wanted - inside)[:5]}")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
    source = {name.removeprefix("src/") for name in files_of("src")}
    check(set(IN_WHEEL) <= packed, f"{wheel.name} lacks {sorted(set(IN_WHEEL) - packed)}")
    check(packed == source, f"{wheel.name} and src/ differ in {sorted(packed ^ source)[:5]}")


def run(command: list[str], folder: Path) -> None:
    """Run a command with nothing on the path but the environment's own packages; end if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    begun = time.perf_counter()
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    check(code == 0, f"{' '.join(command)} ended with exit code {code}")
    sys.stderr.write(f"{' '.join(command)}: {time.perf_counter() - begun:.0f} s\n")


def main() -> None:
    """Check the archives, then run the commands and the suite; arguments are handed to pytest."""
    sdist, wheel = only("mixmem-*.tar.gz"), only("mixmem-*.whl")
    check_contents(sdist, wheel)
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(sdist) as archive:
            archive.extractall(temporary, filter="data")
        (unpacked,) = Path(temporary).iterdir()
        (unpacked / "src").rename(Path(temporary) / "source-not-to-be-imported")
        where = (
            "import sys, importlib.util as u; "
            "sys.exit(not u.find_spec('mixmem').origin.startswith(sys.prefix) "
            f"or any(u.find_spec(extra) for extra in {EXTRAS}))"
        )
        run([sys.executable, "-c", where], unpacked)
        work = Path(temporary) / "work"
        work.mkdir()
        (work / "labels.csv").write_text(LABELS)
        (work / "notes.csv").write_text(NOTES)
        for command in COMMANDS:
            run(command.split(), work)
        run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *sys.argv[1:]], unpacked)


if __name__ == "__main__":
    main()
