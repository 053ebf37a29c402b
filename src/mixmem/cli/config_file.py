"""Options from a TOML file, or from the fit.json of an earlier fit."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mixmem.errors import InputError
from mixmem.words import suggestion


def read_config(path: Path, known: Iterable[str]) -> dict[str, str | bool | list[str]]:
    """Options of the file by their long names, as one would type them; each must be one of `known`.

    A list stands for an option given several times.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "fit.toml"
    ...     _ = file.write_text("alpha0 = 0.5")
    ...     read_config(file, ["alpha0", "seed"])
    {'alpha0': '0.5'}
    """
    try:
        if path.suffix == ".json":
            return dict(_earlier_fit(path)["options"])
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check what --config names") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML ({error}); write lines such as: alpha0 = 0.5") from None
    known = sorted(known)
    values: dict[str, str | bool | list[str]] = {}
    for key, value in document.items():
        if key not in known:
            raise InputError(f"{path}: there is no option {key!r}{suggestion(key, known)}")
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            values[key] = value
            continue
        if not isinstance(value, (str, int, float, bool)):
            raise InputError(f"{path}: {key} holds {value!r}; expected one value, as one would type it after --{key}")
        # Texts, because that is what the line gives: numbers are then read and refused in one way.
        values[key] = value if isinstance(value, bool) else str(value)
    return values


def rerun_data(path: Path) -> str | None:
    """Return the path of the table that an earlier fit read; None of a file of options."""
    if path.suffix != ".json":
        return None
    data = str(_earlier_fit(path)["data"]["path"])
    if data == "-":
        raise InputError(f"{path} is of a table that came on standard input; name the table on the command line, too")
    return data


def _earlier_fit(path: Path) -> dict[str, Any]:
    """Return what a fit.json holds."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON ({error}); expected the fit.json that mixmem fit wrote") from None
    if not isinstance(document, dict) or not isinstance(document.get("options"), dict):
        raise InputError(f"{path} holds no options; expected the fit.json that mixmem fit wrote, of this version")
    return document
