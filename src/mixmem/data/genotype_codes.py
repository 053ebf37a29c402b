"""Genotypes of diploid individuals: their codes, and the `Table` made of them.

A genotype is an unordered pair of alleles, coded by the pair's position in the order (0,0) (0,1) (1,1) (0,2) ...
of the VCF standard. At a locus of two alleles the code is the number of copies of the second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixmem.data.table import Locus, Table
from mixmem.errors import InputError

MOST_ALLELES = 255
"""A locus of more alleles than these has genotype codes that do not fit 16 bits."""

BLOCK = 256
"""So many variants are turned from columns into rows at a time: few enough for the processor's cache."""


def pair_code(a: Any, b: Any) -> np.ndarray:
    """Codes of genotypes with allele positions a and b, in any order; -1 where one of them is missing (negative).

    >>> pair_code([0, 1, 1, 2, -1], [0, 0, 1, 1, 1])
    array([ 0,  1,  2,  4, -1])
    """
    low, high = np.minimum(a, b), np.maximum(a, b).astype(np.int64)
    return np.where(low < 0, -1, (high * (high + 1) >> 1) + low)


def allele_pairs(n_alleles: int) -> np.ndarray:
    """The two allele positions (codes, 2) that each genotype code of a locus stands for, the smaller first.

    >>> allele_pairs(3).tolist()
    [[0, 0], [0, 1], [1, 1], [0, 2], [1, 2], [2, 2]]
    """
    high, low = np.tril_indices(n_alleles)
    return np.stack([low, high], axis=1)


def code_dtype(n_alleles: int, where: str) -> type[np.signedinteger]:
    """The smallest integers that hold the genotype codes of a locus."""
    if n_alleles > MOST_ALLELES:
        raise InputError(f"{where}: found {n_alleles} alleles; expected at most {MOST_ALLELES}: drop this locus")
    return np.int8 if n_alleles <= 15 else np.int16


def genotype_table(
    columns: Sequence[np.ndarray],
    names: Sequence[str],
    loci: Sequence[Locus],
    ids: list[str],
    *,
    positional: bool = False,
) -> Table:
    """The table of the genotype codes (n,) of each locus, for the individuals `ids` (n,)."""
    codes = np.empty((len(ids), len(loci)), np.result_type(*{column.dtype for column in columns}))
    for start in range(0, len(loci), BLOCK):
        codes[:, start : start + BLOCK] = np.array(columns[start : start + BLOCK]).T
    return Table(tuple(names), codes, len(ids), np.array(ids, dtype=object), positional, tuple(loci))


def variant_names(ids: Sequence[str], loci: Sequence[Locus]) -> list[str]:
    """A name for each variant that no other has.

    It is the variant's id, or chromosome:position for want of one. Ids that repeat get their position as well, and
    names that still repeat are numbered.

    >>> variant_names([".", "rs1", "rs1", "."], [Locus(("A", "C"), "7", position) for position in (10, 20, 30, 10)])
    ['7:10', 'rs1:20', 'rs1:30', '7:10_2']
    """
    times = Counter(ids)
    names = []
    for variant, locus in zip(ids, loci, strict=True):
        if variant in ("", "."):
            names.append(f"{locus.chromosome}:{locus.position}")
        else:
            names.append(variant if times[variant] == 1 else f"{variant}:{locus.position}")
    return _numbered(names)


def _numbered(names: list[str]) -> list[str]:
    times: Counter[str] = Counter()
    taken, out = set(names), []
    for name in names:
        times[name] += 1
        unique = name
        while times[name] > 1 and unique in taken:
            unique = f"{name}_{times[name]}"
            times[name] += unique in taken
        taken.add(unique)
        out.append(unique)
    return out
