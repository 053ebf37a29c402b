"""Print the lowest version of every dependency that pyproject.toml allows, as constraints for pip.

``numpy>=1.26`` becomes ``numpy==1.26``. The tools of the extra ``dev`` are left as they are: the bounds of users are
tested, not those of developers.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("arrow", "genetics", "survey", "excel", "duckdb", "zstd", "text", "cells", "dask")
"""All that bring users something: those of the extra ``all``, which a test compares."""
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)>=(?P<version>[0-9][0-9A-Za-z.]*)")


def lowest(requirements: list[str]) -> list[str]:
    """Return each requirement with its lower bound as the only version; one without a lower bound is refused."""
    found = []
    for requirement in requirements:
        match = REQUIREMENT.fullmatch(requirement.replace(" ", ""))
        if match is None:
            raise SystemExit(f"{PYPROJECT.name}: expected a requirement like 'numpy>=1.26'; got {requirement!r}")
        found.append(f"{match['name']}=={match['version']}")
    return found


def main() -> None:
    """Write the constraints to standard output."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    extras = [requirement for name in EXTRAS for requirement in project["optional-dependencies"][name]]
    sys.stdout.writelines(f"{line}\n" for line in lowest([*project["dependencies"], *dict.fromkeys(extras)]))


if __name__ == "__main__":
    main()
