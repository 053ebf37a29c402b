"""PLINK's binary genotypes: .bed, with its .bim (variants) and .fam (individuals) beside it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixmem.data.genotype_codes import variant_names
from mixmem.data.table import Locus, Table
from mixmem.data.text_encodings import fields_by_line
from mixmem.errors import InputError

MAGIC = b"\x6c\x1b"
BY_INDIVIDUAL, BY_VARIANT = b"\x00", b"\x01"

N_FIELDS = 6
"""Of a line of a .bim (chromosome, id, centimorgans, position, A1, A2) and of a .fam (family, id, and four more)."""

CHUNK_CELLS = 2**22


def read_bed(path: Path) -> Table:
    """The genotypes of a .bed file, coded as the number of copies of A1; alleles are (A2, A1).

    The .bim and the .fam may be gzipped. Individuals are named by their id within the family, or family:id where
    those repeat.
    """
    file = BedFile.of(path)
    return file.pick([(0, file.n_rows)])


@dataclass(frozen=True)
class BedFile:
    """A .bed file of which some individuals are read at a time."""

    name: str
    path: str
    names: tuple[str, ...]
    loci: tuple[Locus, ...]
    individuals: np.ndarray
    by_variant: bool

    @classmethod
    def of(cls, path: Path) -> BedFile:
        """Read what stands beside the genotypes, and check that it goes with them."""
        ids, loci = _variants(_beside(path, ".bim"))
        individuals = _individuals(_beside(path, ".fam"))
        by_variant = _check_size(path, len(individuals), len(loci))
        names = tuple(variant_names(ids, loci))
        ids_of_rows = np.array(individuals, dtype=object)
        return cls(str(path), str(path.absolute()), names, tuple(loci), ids_of_rows, by_variant)

    @property
    def n_rows(self) -> int:
        return len(self.individuals)

    @property
    def n_bytes(self) -> int:
        """Bytes that the genotypes take as read."""
        return self.n_rows * len(self.loci)

    @property
    def cheap(self) -> bool:
        """Whether reading individuals once more costs little: where they stand one after the other."""
        return not self.by_variant

    @property
    def piece_bytes(self) -> int:
        """Bytes that all rows take about in pieces."""
        return self.n_bytes

    def wanting(self, wanted: object) -> BedFile:
        """Return the same file: genotypes are read in one way."""
        return self

    def pick(self, spans: Sequence[tuple[int, int]]) -> Table:
        """Return the individuals of spans."""
        parts = [_codes(Path(self.path), self.n_rows, len(self.loci), self.by_variant, *span) for span in spans]
        rows = np.concatenate([np.arange(*span) for span in spans])
        codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return Table(self.names, codes, len(rows), self.individuals[rows], loci=self.loci)


def _beside(path: Path, suffix: str) -> Path:
    for candidate in (path.with_suffix(suffix), path.with_suffix(f"{suffix}.gz")):
        if candidate.exists():
            return candidate
    raise InputError(
        f"{path} has no {path.with_suffix(suffix).name} beside it; PLINK's .bed, .bim and .fam belong together: "
        "copy it there"
    )


def _records(path: Path) -> dict[int, list[str]]:
    """The fields of every line of a .bim or .fam, by line number."""
    records = fields_by_line(path)
    if not records:
        raise InputError(f"{path} is empty; expected {N_FIELDS} fields a line: write it again with PLINK")
    for line, fields in records.items():
        if len(fields) < N_FIELDS:
            raise InputError(f"{path}, line {line}: found {len(fields)} field(s), expected {N_FIELDS}; repair the line")
    return records


def _variants(path: Path) -> tuple[list[str], list[Locus]]:
    ids, loci = [], []
    for line, (chromosome, variant, _, text, first, second, *_) in _records(path).items():
        position = _integer(text)
        if position is None:
            raise InputError(
                f"{path}, line {line}: the position is {text!r}; expected an integer in field 4: repair the line"
            )
        ids.append(variant)
        loci.append(Locus((second, first), chromosome, position))
    return ids, loci


def _integer(text: str) -> int | None:
    """An integer, also in the form 1e+05, which R writes."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError):
            return int(value) if (value := float(text)).is_integer() else None
    return None


def _individuals(path: Path) -> list[str]:
    records = _records(path).values()
    ids = [fields[1] for fields in records]
    return ids if len(set(ids)) == len(ids) else [f"{fields[0]}:{fields[1]}" for fields in records]


def _check_size(path: Path, n_individuals: int, n_variants: int) -> bool:
    """Refuse a .bed that does not go with the others; whether it holds one variant after the other."""
    with path.open("rb") as file:
        magic, order = file.read(2), file.read(1)
    if magic != MAGIC or order not in (BY_INDIVIDUAL, BY_VARIANT):
        raise InputError(
            f"{path} is not PLINK's .bed, whose first bytes are 6c 1b and 00 or 01; it begins with "
            f"{(magic + order).hex(' ') or 'nothing'}: check what the file is"
        )
    inner, outer = (n_individuals, n_variants) if order == BY_VARIANT else (n_variants, n_individuals)
    expected = 3 + (inner + 3) // 4 * outer
    if (size := path.stat().st_size) != expected:
        raise InputError(
            f"{path} has {size:,} bytes, expected {expected:,} for the {n_individuals} individuals of its .fam and the "
            f"{n_variants} variants of its .bim; it is cut off or belongs to other files: copy all three again"
        )
    return order == BY_VARIANT


def _codes(path: Path, n: int, p: int, by_variant: bool, begin: int, end: int) -> np.ndarray:
    """The genotype codes of individuals begin to end (end - begin, p), some variants at a time: little more than one
    byte a cell is held in memory.

    A byte holds four genotypes, the first in its lowest bits: 0 two copies of A1, 1 missing, 2 one copy, 3 none.
    """
    fours = np.array([[(2, -1, 1, 0)[byte >> shift & 3] for shift in (0, 2, 4, 6)] for byte in range(256)], np.int8)
    outer, inner = (p, n) if by_variant else (n, p)
    packed = np.memmap(path, np.uint8, "r", offset=3, shape=(outer, (inner + 3) // 4))
    codes = np.empty((end - begin, p), np.int8)
    first, last = (begin // 4, (end + 3) // 4) if by_variant else (0, packed.shape[1])
    step = max(1, CHUNK_CELLS // (4 * (last - first)))
    for start in range(0 if by_variant else begin, p if by_variant else end, step):
        some = slice(start, min(start + step, p if by_variant else end))
        cells = fours[packed[some, first:last]].reshape(some.stop - some.start, -1)
        if by_variant:
            codes[:, some] = cells[:, begin - 4 * first : end - 4 * first].T
        else:
            codes[some.start - begin : some.stop - begin] = cells[:, :p]
    return codes
