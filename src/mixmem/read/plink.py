"""PLINK's binary genotypes: .bed, with its .bim (variants) and .fam (individuals) beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.errors import InputError
from mixmem.read.genotypes import optional_module, variant_names
from mixmem.read.tables import Locus, Table
from mixmem.read.texts import fields_by_line

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
    open_bed = optional_module("bed_reader", "bed-reader", str(path)).open_bed
    ids, loci = _variants(_beside(path, ".bim"))
    individuals = _individuals(_beside(path, ".fam"))
    _check_size(path, len(individuals), len(loci))
    # With both counts given, the library opens neither the .bim nor the .fam.
    codes = _codes(open_bed(path, iid_count=len(individuals), sid_count=len(loci)))
    names, row_ids = tuple(variant_names(ids, loci)), np.array(individuals, dtype=object)
    return Table(names, codes, len(individuals), row_ids, loci=tuple(loci))


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


def _check_size(path: Path, n_individuals: int, n_variants: int) -> None:
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


def _codes(bed: Any) -> np.ndarray:
    """The genotype codes (n, p), read some variants at a time: little more than one byte a cell is held in memory."""
    n, p = bed.shape
    codes = np.empty((n, p), np.int8)
    step = max(1, CHUNK_CELLS // n)
    for start in range(0, p, step):
        chunk = bed.read(np.s_[:, start : start + step], dtype=np.int8)
        codes[:, start : start + step] = np.maximum(chunk, -1)  # the library writes missing cells as -127
    return codes
