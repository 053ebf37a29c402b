"""Text files as bytes, gzipped or not, and the refusal of what is no text."""

from __future__ import annotations

import gzip
import io
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mixmem.errors import InputError

GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, decompressed where its name ends in .gz."""
    if path.suffix.lower() != ".gz":
        return path.read_bytes()
    with whole_gzip(path):
        return gzip.decompress(path.read_bytes())


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """A file to read from its beginning, decompressed where its contents (not its name) are gzip or bgzip."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != GZIP_MAGIC:
            yield file
            return
        with whole_gzip(path), gzip.open(file) as unpacked:
            yield unpacked


@contextmanager
def whole_gzip(path: Path) -> Iterator[None]:
    """Failures to decompress as one `InputError`."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{path} is not a whole gzip file ({error}); compress it again or drop the .gz from its name"
        ) from error


BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


def as_utf8(raw: bytes, where: str) -> bytes:
    """Text in UTF-8, whatever it was written in: what a byte order mark says, else UTF-8, else Windows-1252.

    The last is a guess, and said so.
    """
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            try:
                return raw.decode(encoding).encode()
            except UnicodeDecodeError as error:
                raise InputError(f"{where} is cut off or no {encoding} text ({error}); save it as UTF-8") from error
    try:
        check_text(raw, where)
    except InputError as problem:
        if b"\0" in raw:
            raise
        warn_of_guess(problem)
        return from_windows(raw)
    return raw


def warn_of_guess(problem: InputError) -> None:
    """Say that a text, which is not UTF-8 for a reason, is taken to be Windows-1252."""
    warnings.warn(f"{problem}. It is read as Windows-1252, as older programs write", stacklevel=3)


def from_windows(raw: bytes) -> bytes:
    """Text in UTF-8 that was written in Windows-1252."""
    return raw.decode("cp1252", errors="replace").encode()


def check_text(raw: bytes, where: str, lines: int = 0) -> None:
    """Refuse what is not UTF-8 text, after so many lines of it."""
    if b"\0" in raw:
        raise InputError(f"{where} holds NUL bytes, so it is not text; expected UTF-8 text: check what the file is")
    if raw.isascii():
        return
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines + raw.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{where}, line {line}: byte 0x{raw[error.start]:02x} is not UTF-8; expected UTF-8 text: save it as UTF-8"
        ) from error


def fields_by_line(path: Path) -> dict[int, list[str]]:
    """The fields, parted by blanks or tabs, of every line that has any; keys are line numbers from 1."""
    raw = read_bytes(path)
    check_text(raw, str(path))
    fields = {number: line.split() for number, line in enumerate(raw.decode("utf-8").split("\n"), start=1)}
    return {number: found for number, found in fields.items() if found}
