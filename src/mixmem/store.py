"""Files that are whole or not there: models, single outputs, folders of outputs.

A model is a safetensors file: arrays, and one JSON text that says what they are. Nothing in it can run code.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.errors import InputError

FORMAT = "mixmem-model"
FORMAT_VERSION = 1
METADATA_KEY = "mixmem"


def save_model(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a header that JSON can hold; an older file stays until the new one is whole."""
    from safetensors.numpy import save

    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "header": header}
    # safetensors writes memory as it lies, so the arrays have to lie in C order and little-endian.
    plain = {name: _little_endian(np.asarray(array, order="C")) for name, array in arrays.items()}
    content = save(plain, metadata={METADATA_KEY: json.dumps(document, sort_keys=True)})
    with write_atomically(path) as temporary:
        temporary.write_bytes(content)


def load_model(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header that `save_model` wrote."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    _refuse_foreign(path)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document(path, file.metadata())
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise InputError(
            f"{path} is damaged or cut short ({error}); expected a whole model file: copy or fit it again"
        ) from error
    return arrays, document["header"]


def _refuse_foreign(path: Path) -> None:
    """Refuse what is no safetensors file at all: one begins with a length and a JSON object."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a model file such as {path / 'model.mixmem'}")
    try:
        with path.open("rb") as file:
            head = file.read(9)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; check the name and the folder") from error
    except PermissionError as error:
        raise InputError(f"{path} cannot be read (permission denied); check its permissions") from error
    if not head:
        raise InputError(f"{path} is empty; expected a model file: copy it or fit the model again")
    # The length of the header fits three bytes or so; text in its place gives an absurd number.
    if len(head) < 9 or head[8:] != b"{" or int.from_bytes(head[:8], "little") > 1 << 40:
        raise InputError(f"{path} is not a model file; expected what `mixmem fit` or `model.save` wrote")


def _document(path: Path, metadata: dict[str, str] | None) -> dict[str, Any]:
    try:
        document = json.loads((metadata or {})[METADATA_KEY])
        found, version = document["format"], document["format_version"]
        header = document["header"]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is a safetensors file that mixmem did not write; expected what `mixmem fit` or `model.save` wrote"
        ) from error
    if found != FORMAT:
        raise InputError(f"{path} has the format {found!r}; expected {FORMAT!r}")
    if not isinstance(version, int) or not isinstance(header, dict):
        raise InputError(f"{path} has a damaged header; copy or fit the model again")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {version}, written by a newer mixmem; this one reads up to "
            f"{FORMAT_VERSION}: upgrade with pip install -U mixmem"
        )
    return document


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what was written there becomes `path` when the block succeeds.

    The suffix is kept, for writers that go by it. A target that cannot be written is refused at entry.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file to write")
    _refuse_unwritable(path.parent)
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        # Tried now, because permissions do not tell everything (read-only file systems, names too long).
        with _refusals(path):
            temporary.touch(exist_ok=False)
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def staged_folder(out: str | os.PathLike[str], replaces: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a temporary folder; when the block succeeds its files move into `out`, else nothing is left.

    Files named in ``replaces`` that `out` has and the block did not write are removed: they belong to an earlier run.

    The staging lies beside a new `out`, but inside one that exists: that may be a mount of its own, and files
    are moved whole only within one file system. An `out` that cannot be written is refused at entry.
    """
    out = Path(out).absolute()
    with _refusals(out):
        fresh = not out.exists()
    if not fresh and not out.is_dir():
        raise InputError(f"{out} is a file; expected a folder to write into: name another with --out")
    created = _make_parents(out)
    token = secrets.token_hex(4)
    staging = out.with_name(f".{out.name}-{token}") if fresh else out / f".staging-{token}"
    try:
        _refuse_unwritable(staging.parent)
        with _refusals(out):
            staging.mkdir()
        yield staging
        files = [path for path in sorted(staging.rglob("*")) if path.is_file()]
        for file in files:
            if (target := out / file.relative_to(staging)).is_dir():
                raise InputError(f"{target} is a folder where a file is to be written; move it away")
            _sync(file)
        if fresh and not out.exists():
            os.replace(staging, out)  # all files in one step
        else:
            for file in files:
                target = out / file.relative_to(staging)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, target)
            for name in set(replaces) - {str(file.relative_to(staging)) for file in files}:
                (out / name).unlink(missing_ok=True)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        for folder in created:
            if not any(folder.iterdir()):
                folder.rmdir()
        raise
    shutil.rmtree(staging, ignore_errors=True)


def _make_parents(out: Path) -> list[Path]:
    """Create the folders above `out`; those that were not there are returned, innermost first."""
    missing = [folder for folder in out.parents if not folder.exists()]
    above = missing[-1].parent if missing else out.parent
    if missing or not above.is_dir():
        _refuse_unwritable(above)
    with _refusals(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    return missing


def _refuse_unwritable(folder: Path) -> None:
    if not folder.exists():
        raise InputError(f"the folder {folder} does not exist; create it or write elsewhere")
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; expected a folder: write elsewhere")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"the folder {folder} is not writable; change its permissions or write elsewhere")


@contextmanager
def _refusals(target: Path) -> Iterator[None]:
    """What the system refuses about a target's name or place is the user's to repair; a full disk is not."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise InputError(f"{target} cannot be written ({error.strerror}); write elsewhere") from error
        raise


def _sync(file: Path) -> None:
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
