"""Compressed files -> the file inside, laid down in a folder that lives as long as it is read."""

from __future__ import annotations

import bz2
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mixmem.errors import InputError
from mixmem.extras import needs
from mixmem.words import listing, suggestion

PACKED = (".zip", ".xz", ".bz2", ".zst")


@contextmanager
def unpacked(path: Path, member: str | None) -> Iterator[Path]:
    """The file inside a compressed one; of a .zip with several files the one named FILE::MEMBER."""
    with tempfile.TemporaryDirectory(prefix="mixmem-") as folder:
        try:
            inner = _unzipped(path, member, Path(folder)) if path.suffix.lower() == ".zip" else _opened(path, folder)
        except (OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
            reason = str(error) or type(error).__name__
            raise InputError(f"{path} cannot be decompressed ({reason}); compress it again") from error
        try:
            yield inner
        except InputError as error:
            raise InputError(str(error).replace(str(inner), f"{path} ({inner.name})")) from error


def _opened(path: Path, folder: str) -> Path:
    inner = Path(folder) / path.stem
    with _stream(path) as source, inner.open("wb") as target:
        shutil.copyfileobj(source, target)
    return inner


def _stream(path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    if suffix == ".zst":
        return cast(BinaryIO, needs("zstandard", f"reading {path}", "zstd").open(path, "rb"))
    return cast(BinaryIO, lzma.open(path) if suffix == ".xz" else bz2.open(path))


def _unzipped(path: Path, member: str | None, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        names = [
            name for name in archive.namelist() if not name.endswith("/") and not name.startswith(("__MACOSX", "."))
        ]
        if member is not None and member not in names:
            raise InputError(f"{path} has no file {member!r}{suggestion(member, names)}")
        if member is None and len(names) != 1:
            raise InputError(f"{path} holds {listing(names) or 'nothing'}; expected one file, named {path.name}::FILE")
        wanted = names[0] if member is None else member
        inner = folder / Path(wanted).name
        with archive.open(wanted) as source, inner.open("wb") as target:
            shutil.copyfileobj(source, target)
    return inner
