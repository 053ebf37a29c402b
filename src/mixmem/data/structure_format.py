"""Genotypes in the text format of the program STRUCTURE."""

from __future__ import annotations

import re
from itertools import chain, pairwise, takewhile
from pathlib import Path
from statistics import mode

import numpy as np

from mixmem.data.frames import code_values
from mixmem.data.genotype_codes import code_dtype, genotype_table, pair_code
from mixmem.data.table import Locus, Table
from mixmem.data.text_encodings import fields_by_line
from mixmem.errors import InputError

ALLELE = re.compile(r"-?[0-9]+")

NAME_THE_LOCI = "a first line that names the loci, and nothing else, says which columns they are"


def read_structure(path: Path) -> Table:
    """The genotypes of a STRUCTURE file: integers for alleles, negative ones (-9 by custom) where missing.

    Every individual has two lines, which begin with the same label, or one line with two columns for each locus.
    What is what is told as follows.

    - Leading lines with fewer fields than the others are the header. The first names the loci, the next ones
      (recessive alleles, distances) are passed over. The columns for which it has no name come before the alleles;
      the first of them is the label, the others (population, flag, ...) are not read.
    - A first line of as many fields as the others, the last of which is no integer, names all columns.
    - Where the header does not tell the columns before the alleles, they are the label; the population, if the
      second column has the same value, not a missing one, on both lines of every individual; and a flag, if the third
      is like that too and holds only 0 and 1. Loci without names are locus1, locus2, ...
    - The form of one line for each individual needs a header, and labels that differ from line to line.
    """
    names, data = _parts(fields_by_line(path), path)
    rows = list(data.values())
    width = len(rows[0])
    one_line = 0 < 2 * len(names) < width and all(one[0] != other[0] for one, other in pairwise(rows))
    if not one_line:
        _check_pairs(data, path)
    n_leading = width - (1 + one_line) * len(names) if 0 < len(names) < width else _guess_leading(rows)
    _check_alleles(data, n_leading, path)
    columns = list(zip(*rows, strict=True))
    labels, cells = columns[0], columns[n_leading:]
    if one_line:
        pairs = list(zip(cells[0::2], cells[1::2], strict=True))
    else:
        labels, pairs = labels[0::2], [(column[0::2], column[1::2]) for column in cells]
    loci, codes = zip(*(_locus([*first, *second], path) for first, second in pairs), strict=True)
    made_up = [f"locus{j}" for j in range(1, len(loci) + 1)]
    return genotype_table(codes, names[-len(loci) :] or made_up, loci, list(labels), positional=not names)


def _parts(fields: dict[int, list[str]], path: Path) -> tuple[list[str], dict[int, list[str]]]:
    """The names in the header, if there are any, and the fields of the data lines, by line number."""
    lines = list(fields)
    if len(lines) < 2:
        raise InputError(f"{path} has {len(lines)} line(s) of text; expected two for each individual")
    width = mode(len(fields[line]) for line in lines[1:])
    header = list(takewhile(lambda line: len(fields[line]) < width, lines[:-1]))
    if header and fields[header[-1]][0] == fields[lines[len(header)]][0]:
        header = []  # it begins with the label of the next line: a line of data that lacks some fields
    if not header and len(fields[lines[0]]) == width and not ALLELE.fullmatch(fields[lines[0]][-1]):
        header = lines[:1]
    n_names = len(fields[header[0]]) if header else 0
    for place, line in enumerate(lines):
        expected = n_names if place < len(header) else width
        if len(fields[line]) != expected:
            raise InputError(
                f"{path}, line {line}: found {len(fields[line])} field(s), expected {expected} as in most other lines; "
                "repair the line"
            )
    return fields[header[0]] if header else [], {line: fields[line] for line in lines[len(header) :]}


def _check_pairs(data: dict[int, list[str]], path: Path) -> None:
    lines = list(data)
    for first, second in zip(lines[0::2], lines[1::2], strict=False):
        if data[first][0] != data[second][0]:
            raise InputError(
                f"{path}, line {second}: its label is {data[second][0]!r}, expected {data[first][0]!r} as in line "
                f"{first}: every individual has two lines, each with its label first; repair the file"
            )
    if len(lines) % 2:
        raise InputError(
            f"{path}, line {lines[-1]}: the second line of {data[lines[-1]][0]!r} is absent; expected two lines for "
            f"each individual, found {len(lines)} in all: repair the file"
        )


def _guess_leading(rows: list[list[str]]) -> int:
    """How many columns come before the alleles in a file of two lines for each individual that does not say so."""

    def values(j: int) -> set[str] | None:
        """What column j holds, if it is the same on both lines of every individual."""
        column = [row[j] for row in rows]
        return set(column) if column[0::2] == column[1::2] else None

    width = len(rows[0])
    if width < 2 or not (populations := values(1)) or any(value.startswith("-") for value in populations):
        return 1
    return 3 if width > 2 and (flags := values(2)) and flags <= {"0", "1"} else 2


def _check_alleles(data: dict[int, list[str]], n_leading: int, path: Path) -> None:
    if n_leading == len(next(iter(data.values()))):
        raise InputError(f"{path}: found no alleles after the first {n_leading} column(s); {NAME_THE_LOCI}")
    distinct = set(chain.from_iterable(row[n_leading:] for row in data.values()))
    odd = {text for text in distinct if not ALLELE.fullmatch(text)}
    for line, row in data.items() if odd else ():
        for column, text in enumerate(row[n_leading:], start=n_leading + 1):
            if text in odd:
                raise InputError(
                    f"{path}, line {line}, column {column}: found {text!r}, expected an allele, which is an integer "
                    f"(-9 if missing); {NAME_THE_LOCI}"
                )


def _locus(texts: list[str], path: Path) -> tuple[Locus, np.ndarray]:
    """The locus and the codes (n,) of the genotypes whose alleles are texts[:n] and texts[n:]."""
    found = code_values(texts, "alleles")
    alleles = sorted((text for text in found.values if not text.startswith("-")), key=lambda text: (int(text), text))
    rank = {text: position for position, text in enumerate(alleles)}
    positions = np.array([rank.get(text, -1) for text in found.values])[found.codes]
    first, second = np.split(positions, 2)
    return Locus(tuple(alleles)), pair_code(first, second).astype(code_dtype(len(alleles), str(path)))
