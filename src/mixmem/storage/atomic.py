"""Files that are whole or not there: models, single outputs, folders of outputs.

A model is a safetensors file: arrays, and one JSON text that says what they are. Nothing in it can run code.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mixmem.errors import InputError


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
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOENT):
            raise InputError(f"{target} cannot be written ({error.strerror}); write elsewhere") from error
        raise


def _sync(file: Path) -> None:
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
