"""Files that are laid down on this machine for a while: gzipped text unzipped, lazy frames computed once."""

from __future__ import annotations

import gzip
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixmem.data.polars_panics import panics_as_errors
from mixmem.data.text_encodings import whole_gzip
from mixmem.errors import InputError

if TYPE_CHECKING:
    import polars as pl

DENSEST = 12
"""How many times its size a gzipped text may take where its end does not tell."""
PLAIN_SCAN = re.compile(r"(parquet|ipc|csv|ndjson) scan |df \[", re.IGNORECASE)
"""How polars describes a query that does nothing but read files, or that has its rows in memory."""


class LaidDown:
    """A file in the system's folder for temporary files, as long as this lives; ``what`` it holds, and how."""

    def __init__(self, name: str, what: str, way: str):
        folder = tempfile.mkdtemp(prefix="mixmem-")
        self.path = Path(folder) / name
        self.what, self.way = what, way
        self._end = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @property
    def refusal(self) -> InputError:
        """What to say where other machines were to read it."""
        return InputError(f"{self.what} on this machine, where workers do not see it; {self.way}")

    def __reduce__(self) -> Any:
        raise self.refusal


def unzipped(path: Path) -> LaidDown:
    """Return what a gzipped file holds, on disk."""
    size, free = text_bytes(path), shutil.disk_usage(tempfile.gettempdir()).free
    if free < size:
        raise InputError(
            f"{path} takes about {size / 1e9:.2g} GB unzipped, but {tempfile.gettempdir()} has {free / 1e9:.2g} GB "
            "left; unzip it where there is room, or let TMPDIR name another folder"
        )
    found = LaidDown(path.stem, f"{path} is unzipped", "unzip it for them")
    with path.open("rb") as file:
        try:
            with whole_gzip(path), gzip.open(file) as packed, found.path.open("wb") as target:
                shutil.copyfileobj(packed, target, 1 << 20)
        except OSError as error:
            raise InputError(
                f"{path} cannot be unzipped into {tempfile.gettempdir()} ({error.strerror or error}); unzip it where "
                "there is room, or let TMPDIR name another folder"
            ) from error
    return found


def text_bytes(path: Path) -> int:
    """Return the size of a text file, unzipped as far as can be told: a gzip file ends with it, unless it has parts."""
    size = path.stat().st_size
    if path.suffix.lower() != ".gz":
        return size
    with path.open("rb") as file:
        file.seek(max(0, size - 4))
        told = int.from_bytes(file.read(), "little")
    return told if told >= size else DENSEST * size


def computed(frame: pl.LazyFrame) -> LaidDown | None:
    """Return the rows of a lazy frame on disk, computed once; None for one that does nothing but read.

    Rows of any other query may come in another order each time that it runs, and some would be read twice.
    """
    import polars as pl

    try:
        with panics_as_errors():
            if PLAIN_SCAN.match(frame.explain(optimized=False)):
                return None
            found = LaidDown("rows.parquet", "the lazy frame is computed", "write its rows to files that they see")
            frame.sink_parquet(found.path)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"the rows of the lazy frame cannot be computed into {tempfile.gettempdir()} ({reason}); repair the query, "
            "or let TMPDIR name a folder with more room"
        ) from error
    return found
