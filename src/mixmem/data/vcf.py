"""Variant call files: VCF, plain or compressed (gzip, bgzip), and its binary form BCF.

Texts are parsed here and not by cyvcf2, which reads BCF: a malformed genotype in a text makes it end the whole process
(a segmentation fault in 0.34), it knows no line numbers, and it is the slower where FORMAT is GT alone.
"""

from __future__ import annotations

import ctypes
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.data.genotype_codes import code_dtype, genotype_table, pair_code, variant_names
from mixmem.data.table import Locus, Table
from mixmem.data.text_encodings import opened
from mixmem.errors import InputError
from mixmem.extras import needs

GENOTYPE = re.compile(rb"[/|]?([0-9]+|\.)(?:[/|]([0-9]+|\.))?")
"""One allele or two, phased or not; VCF 4.4 allows a phase mark before the first."""

N_FIXED = 9
"""Columns before the samples: CHROM POS ID REF ALT QUAL FILTER INFO FORMAT."""

Variant = tuple[str, Locus, np.ndarray]
"""Id, locus, and the genotype codes (n,) of one line."""


def read_vcf(path: Path) -> Table:
    """The genotypes (GT) of a VCF or BCF file; which of them it is, and if it is compressed, its contents tell.

    All alleles of a site are kept, `*` and symbolic ones too, and phase is dropped. A haploid call (X of a male)
    counts as two copies of its allele, as in PLINK; a half call (0/.) is missing. Two bytes a cell are held in
    memory while the variants are put together.
    """
    with opened(path) as file:
        if file.read(3) == b"BCF":
            samples, variants = _binary(path)
        else:
            file.seek(0)
            samples, variants = _text(file, str(path))
        found = list(variants)
    if not found:
        raise InputError(f"{path} holds no variants, only a header; check how it was written")
    ids, loci, columns = zip(*found, strict=True)
    return genotype_table(columns, variant_names(ids, loci), loci, samples)


def _check_samples(samples: list[str], where: str) -> None:
    if not samples:
        raise InputError(f"{where} holds sites without samples; expected genotypes: take the file that has them")
    repeated = next((name for name, times in Counter(samples).items() if times > 1), None)
    if repeated is not None:
        raise InputError(f"{where}: several samples are named {repeated!r}; expected distinct names: rename them")


def _text(file: io.BufferedIOBase, where: str) -> tuple[list[str], Iterator[Variant]]:
    lines = enumerate(file, start=1)
    for number, line in lines:
        if line.startswith(b"#CHROM"):
            samples = _decoded(line.rstrip(b"\r\n"), f"{where}, line {number}").split("\t")[N_FIXED:]
            _check_samples(samples, where)
            return samples, (_variant(line, samples, f"{where}, line {n}") for n, line in lines if line.strip())
        if not line.startswith(b"##"):
            raise InputError(
                f"{where}, line {number}: expected a header line, ## or #CHROM; this is not VCF: check what the file is"
            )
    raise InputError(f"{where} has no #CHROM line, so it is not VCF or was cut off; check what the file is")


def _variant(line: bytes, samples: list[str], where: str) -> Variant:
    *fixed, cells = line.rstrip(b"\r\n").split(b"\t", N_FIXED)
    if len(fixed) < N_FIXED:
        raise InputError(f"{where}: found {len(fixed) + 1} fields, expected {N_FIXED + len(samples)}; repair the line")
    chromosome, position, variant, reference, others, *_, form = _decoded(b"\t".join(fixed), where).split("\t")
    if form.split(":")[0] != "GT":
        raise InputError(f"{where}: FORMAT is {form!r}; expected GT as its first entry: genotypes are read from GT")
    if not position.isdecimal():
        raise InputError(f"{where}: POS is {position!r}; expected an integer: repair the line")
    locus = Locus((reference, *others.split(",")) if others != "." else (reference,), chromosome, int(position))
    codes = _single_digit_codes(cells, len(samples), len(locus.alleles)) if form == "GT" else None
    if codes is None:
        codes = _any_codes(cells, samples, len(locus.alleles), where)
    return variant, locus, codes.astype(code_dtype(len(locus.alleles), where))


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from error


def _single_digit_codes(cells: bytes, n_samples: int, n_alleles: int) -> np.ndarray | None:
    """The codes (n,) of a line of cells such as 0/1, .|. and 2/0: three characters and a tab each; else None."""
    if len(cells) != 4 * n_samples - 1:
        return None
    text = np.frombuffer(cells + b"\t", np.uint8).reshape(n_samples, 4)
    alleles, phase = text[:, 0::2].astype(np.int8) - np.int8(ord("0")), text[:, 1]
    missing = alleles == ord(".") - ord("0")
    well_formed = (
        ((alleles >= 0) & (alleles < n_alleles) | missing).all()
        and ((phase == ord("/")) | (phase == ord("|"))).all()
        and (text[:, 3] == ord("\t")).all()
    )
    return pair_code(alleles[:, 0], alleles[:, 1]) if well_formed else None


def _any_codes(cells: bytes, samples: list[str], n_alleles: int, where: str) -> np.ndarray:
    """The codes (n,) of a line of cells of any form."""
    texts = [cell.partition(b":")[0] for cell in cells.split(b"\t")]
    if len(texts) != len(samples):
        raise InputError(f"{where}: found {len(texts)} sample(s), expected {len(samples)}; repair the line")
    pairs = {}
    for text in set(texts):
        alleles = _alleles(text)
        if alleles is None or max(alleles) >= n_alleles:
            raise InputError(
                f"{where}: sample {samples[texts.index(text)]!r} has the genotype {text.decode('utf-8', 'replace')!r}; "
                f"expected one or two alleles from 0 to {n_alleles - 1}, or . for missing: repair the line"
            )
        pairs[text] = alleles
    return pair_code(*np.array([pairs[text] for text in texts]).T)


def _alleles(text: bytes) -> tuple[int, int] | None:
    """The two allele positions a text such as 0|1 stands for, -1 for a missing one; None if it is no such text."""
    match = GENOTYPE.fullmatch(text)
    if match is None:
        return None
    first, second = (-1 if allele == b"." else int(allele) for allele in (match[1], match[2] or match[1]))
    return first, second


def _binary(path: Path) -> tuple[list[str], Iterator[Variant]]:
    reader = needs("cyvcf2", f"reading {path}", "genetics")
    with _quiet(reader), _as_input_error(path):
        file = reader.VCF(str(path))
    _check_samples(file.samples, str(path))
    return file.samples, _binary_variants(file, reader, path)


def _binary_variants(file: Any, reader: Any, path: Path) -> Iterator[Variant]:
    with _quiet(reader), _as_input_error(path):
        for number, record in enumerate(file, start=1):
            where = f"{path}, variant {number}"
            if "GT" not in record.FORMAT:
                raise InputError(f"{where}: it has no GT; genotypes are read from GT")
            locus = Locus((record.REF, *record.ALT), record.CHROM, record.POS)
            codes = _array_codes(record.genotype.array()[:, :-1], where)  # the last column is the phase
            yield record.ID or ".", locus, codes.astype(code_dtype(len(locus.alleles), where))


def _array_codes(alleles: np.ndarray, where: str) -> np.ndarray:
    """The codes (n,) of allele positions (n, ploidy) that are -1 where missing and -2 after the end of a call."""
    if (alleles[:, 2:] != -2).any():
        raise InputError(f"{where}: found a call of {alleles.shape[1]} alleles; expected one or two: drop this variant")
    first, second = alleles[:, 0], alleles[:, min(1, alleles.shape[1] - 1)]
    return pair_code(first, np.where(second == -2, first, second))


@contextmanager
def _as_input_error(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # cyvcf2 raises bare Exceptions
        raise InputError(f"{path} cannot be read as BCF ({error}); it is cut off or damaged: write it again") from error


@contextmanager
def _quiet(reader: Any) -> Iterator[None]:
    """Keep htslib, which is inside cyvcf2, from writing to standard error; cyvcf2 has no setting for it."""
    library = ctypes.CDLL(reader.cyvcf2.__file__)
    before = None
    with suppress(AttributeError):  # a build that hides these two: it is then as loud as it wants to be
        before = library.hts_get_log_level()
        library.hts_set_log_level(0)
    try:
        yield
    finally:
        if before is not None:
            library.hts_set_log_level(before)
