"""Genotype files: PLINK, VCF, BCF, STRUCTURE; known figures of public data sets; refusals with file and line."""

import gzip
import itertools
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM
from mixmem.data.genotype_codes import allele_pairs, pair_code, variant_names
from mixmem.data.read import read_table
from mixmem.data.sources import source_of
from mixmem.data.table import Locus, Table
from mixmem.errors import InputError

FORMAT_GT = '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">'
VCF_HEADER = "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"])


# --- Codes and names


@pytest.mark.parametrize("n_alleles", [1, 2, 3, 16, 255])
def test_codes_and_pairs_are_inverse(n_alleles):
    pairs = allele_pairs(n_alleles)
    assert pairs.shape == (n_alleles * (n_alleles + 1) // 2, 2)
    np.testing.assert_array_equal(pair_code(pairs[:, 0], pairs[:, 1]), np.arange(len(pairs)))
    np.testing.assert_array_equal(pair_code(pairs[:, 1], pairs[:, 0]), np.arange(len(pairs)))
    assert (pairs[:, 0] <= pairs[:, 1]).all()


def test_codes_of_small_integers_do_not_overflow():
    high = np.array([127], np.int8)
    assert pair_code(high, high)[0] == 127 * 128 // 2 + 127


def test_names_are_unique_whatever_the_ids():
    ids = ["a", "a", "a", "a_2", "a:1_2", "", ".", "b"]
    positions = [1, 1, 2, 3, 4, 5, 5, 6]
    names = variant_names(ids, [Locus((), "X", position) for position in positions])
    assert names == ["a:1", "a:1_3", "a:2", "a_2", "a:1_2", "X:5", "X:5_2", "b"]


def test_columns_taken_keep_their_loci():
    loci = tuple(Locus(("A", allele)) for allele in "CGT")
    table = Table(("a", "b", "c"), np.arange(6, dtype=np.int8).reshape(2, 3), 2, loci=loci)
    taken = table.take([2, 0])
    assert taken.loci == (loci[2], loci[0])
    assert taken.columns.flags.c_contiguous
    assert table.with_row_ids_from("b").loci == (loci[0], loci[2])
    assert table.take([]).columns.shape == (2, 0)


# --- PLINK


def write_bed(path, codes, **properties):
    """A .bed, .bim and .fam of codes (n, p), -1 where missing."""
    bed_reader = pytest.importorskip("bed_reader")
    values = np.where(codes < 0, np.nan, codes)
    n, p = codes.shape
    given = {"sid": [f"v{j}" for j in range(p)], "iid": [f"i{i}" for i in range(n)], "bp_position": range(1, p + 1)}
    given |= {"chromosome": ["1"] * p, "allele_1": ["A"] * p, "allele_2": ["G"] * p} | properties
    bed_reader.to_bed(path, values, properties=given)
    return path


@pytest.fixture
def codes():
    return np.random.default_rng(0).integers(-1, 3, size=(7, 12), dtype=np.int8)


def check_codes(table, codes):
    assert table.columns.dtype == codes.dtype
    assert table.columns.flags.c_contiguous
    np.testing.assert_array_equal(table.columns, codes)


@pytest.mark.parametrize("chunk_cells", [1, 35, 2**22])
def test_bed_in_chunks_of_any_size(tmp_path, monkeypatch, codes, chunk_cells):
    monkeypatch.setattr("mixmem.data.plink.CHUNK_CELLS", chunk_cells)
    table = read_table(write_bed(tmp_path / "t.bed", codes))
    check_codes(table, codes)
    assert table.names == tuple(f"v{j}" for j in range(12))
    assert table.row_ids.tolist() == [f"i{i}" for i in range(7)]
    assert table.loci[2] == Locus(("G", "A"), "1", 3)


def test_bed_by_individual(tmp_path, codes):
    path = write_bed(tmp_path / "t.bed", codes)
    to_bed = pytest.importorskip("bed_reader").to_bed
    to_bed(path, np.where(codes < 0, np.nan, codes), major="individual")
    check_codes(read_table(path), codes)


@pytest.mark.parametrize("major", ["SNP", "individual"])
def test_some_individuals_of_a_bed(tmp_path, major):
    codes = np.random.default_rng(0).integers(-1, 3, size=(31, 6), dtype=np.int8)
    path = write_bed(tmp_path / "t.bed", codes)
    properties = {"iid": [f"i{i}" for i in range(31)], "allele_1": ["A"] * 6, "allele_2": ["G"] * 6}
    pytest.importorskip("bed_reader").to_bed(path, np.where(codes < 0, np.nan, codes), properties, major=major)
    source = source_of(path)
    assert source.n_rows == 31
    for spans in ([(0, 31)], [(3, 9)], [(0, 1), (5, 14), (30, 31)]):
        rows = np.concatenate([np.arange(*span) for span in spans])
        table = source.pick(spans)
        check_codes(table, codes[rows])
        assert table.row_ids.tolist() == [f"i{i}" for i in rows]


@pytest.mark.slow
def test_a_bed_larger_than_memory_is_fitted_in_pieces(tmp_path):
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([0.2, 0.2], 40_000)
    codes = rng.binomial(2, shares @ rng.uniform(0.05, 0.95, (2, 10))).astype(np.int8)
    codes[rng.random(codes.shape) < 0.02] = -1
    path = write_bed(tmp_path / "t.bed", codes)
    settings = {"alpha0": 0.4, "random_state": 0}
    pieces = GDLM(2, memory_limit="3MB", **settings).fit(path)
    assert pieces.report_.passes.sampled == 32_768
    whole = GDLM(2, passes="few", **settings).fit(read_table(path))
    assert np.array_equal(pieces._theta, whole._theta)
    climbed, held = GDLM(2, passes="few", refine="em", **settings).fit(path), read_table(path)
    assert np.array_equal(climbed._theta, GDLM(2, passes="few", refine="em", **settings).fit(held)._theta)
    rounds = climbed.report_.refine.em.likelihood_given_memberships
    assert rounds[-1] > rounds[0]
    assert climbed.report_.refine.em.reason.endswith("over all rows")
    with pytest.raises(InputError, match="refine='gibbs' samples the components of every cell of all rows in memory"):
        GDLM(2, memory_limit="3MB", refine="gibbs", **settings).fit(path)


def test_bed_with_gzipped_texts_and_repeated_names(tmp_path, codes):
    path = write_bed(tmp_path / "t.bed", codes, sid=["."] * 12, fid=list("abcdefg"), iid=["1"] * 7)
    for suffix in (".bim", ".fam"):
        text = path.with_suffix(suffix)
        text.with_suffix(f"{suffix}.gz").write_bytes(gzip.compress(text.read_bytes()))
        text.unlink()
    table = read_table(path)
    check_codes(table, codes)
    assert table.names[:2] == ("1:1", "1:2")
    assert table.row_ids.tolist() == [f"{family}:1" for family in "abcdefg"]


def test_positions_as_r_writes_them(tmp_path, codes):
    path = write_bed(tmp_path / "t.bed", codes)
    bim = path.with_suffix(".bim")
    bim.write_text(bim.read_text().replace("\t3\t", "\t1e+05\t"))
    assert read_table(path).loci[2].position == 100_000


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def drop_field(path):
    path.with_suffix(".bim").write_text("1 v0 0 1 A G\n1 v1 0 2 A\n")


def bad_position(path):
    path.with_suffix(".bim").write_text("1 v0 0 1 A G\n1 v1 0 2.5 A G\n")


BAD_BED = {
    "cut": (cut, r"t\.bed has 26 bytes, expected 27 for the 7 individuals of its \.fam and the 12 variants"),
    "text": (lambda path: path.write_text("chr1\t10\t20\n"), r"t\.bed is not PLINK's \.bed.*begins with 63 68 72"),
    "empty": (lambda path: path.write_bytes(b""), r"t\.bed is not PLINK's .*begins with nothing"),
    "fields": (drop_field, r"t\.bim, line 2: found 5 field\(s\), expected 6"),
    "position": (bad_position, r"t\.bim, line 2: the position is '2\.5'; expected an integer"),
    "no fam": (lambda path: path.with_suffix(".fam").unlink(), r"t\.bed has no t\.fam beside it"),
    "empty fam": (lambda path: path.with_suffix(".fam").write_text("\n"), r"t\.fam is empty; expected 6 fields"),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_BED.values(), ids=BAD_BED)
def test_bad_bed_is_refused(tmp_path, codes, spoil, message):
    path = write_bed(tmp_path / "t.bed", codes)
    spoil(path)
    with pytest.raises(InputError, match=message):
        read_table(path)


def test_an_absent_library_is_said_with_its_extra(tmp_path, monkeypatch):
    (tmp_path / "t.bcf").write_bytes(b"BCF\2\2")
    monkeypatch.setitem(sys.modules, "cyvcf2", None)
    with pytest.raises(InputError, match=r'not installed; pip install "mixmem\[genetics\]"'):
        read_table(tmp_path / "t.bcf")


def test_a_folder_of_beds_is_stacked(tmp_path, codes):
    write_bed(tmp_path / "a.bed", codes)
    write_bed(tmp_path / "b.bed", codes[:2])
    table = read_table(tmp_path)
    check_codes(table, np.concatenate([codes, codes[:2]]))
    assert len(table.loci) == 12
    write_bed(tmp_path / "b.bed", codes, allele_1=["A"] * 11 + ["C"])
    with pytest.raises(InputError, match=r"b\.bed: 'v11' has the alleles 'G', 'C', expected 'G', 'A' as in a\.bed"):
        read_table(tmp_path)


# --- VCF and BCF


def vcf_text(lines, samples="s1 s2 s3 s4", form="GT"):
    """A VCF whose lines are given as CHROM POS ID REF ALT and the samples' cells, parted by blanks."""
    body = []
    for fields in map(str.split, lines):
        body.append("\t".join([*fields[:5], ".", ".", ".", form, *fields[5:]]))
    header = ["##fileformat=VCFv4.2", FORMAT_GT, "\t".join([VCF_HEADER, *samples.split()])]
    return "\n".join([*header, *body, ""])


LINES = [
    "1 10 . A C,*,<DEL> 0|1 ./. 3/2 0/.",
    "1 10 . A G 0/0 1/0 0/1 1|1",
    "X 12 rs1 A T 0 . 1 0/1",
    "X 13 rs1 A . 0/0 0/0 ./. 0|0",
]
CODES = np.array([[1, 0, 0, 0], [-1, 1, -1, 0], [8, 1, 2, -1], [-1, 2, 1, 0]], np.int8)


def write_bcf(path, text):
    cyvcf2 = pytest.importorskip("cyvcf2")
    source = path.with_suffix(".source.vcf")
    source.write_text(text.replace(FORMAT_GT, f"{FORMAT_GT}\n##contig=<ID=1>\n##contig=<ID=X>"))
    reader = cyvcf2.VCF(str(source))
    writer = cyvcf2.Writer(str(path), reader, "wb")
    for record in reader:
        writer.write_record(record)
    writer.close()


WRITERS = {
    "vcf": lambda path, text: path.write_text(text),
    "vcf.gz": lambda path, text: path.write_bytes(gzip.compress(text.encode())),
    # bgzip is gzip in several members
    "vcf.bgz": lambda path, text: path.write_bytes(
        gzip.compress(text[:99].encode()) + gzip.compress(text[99:].encode())
    ),
    "bcf": write_bcf,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_vcf_in_every_form(tmp_path, capfd, kind):
    path = tmp_path / f"t.{kind}"
    WRITERS[kind](path, vcf_text(LINES))
    capfd.readouterr()
    table = read_table(path)
    assert capfd.readouterr() == ("", "")
    check_codes(table, CODES)
    assert table.names == ("1:10", "1:10_2", "rs1:12", "rs1:13")
    assert table.row_ids.tolist() == ["s1", "s2", "s3", "s4"]
    assert [locus.alleles for locus in table.loci] == [("A", "C", "*", "<DEL>"), ("A", "G"), ("A", "T"), ("A",)]
    assert table.loci[3] == Locus(("A",), "X", 13)


def test_further_entries_and_windows_line_ends(tmp_path):
    lines = ["1 10 a A C 0|1:3:. ./.:.:. 1/1:7 0/1:9:1", "1 11 b A C 0|1 . 1/1:7 0/.:9:1"]
    (tmp_path / "t.vcf").write_bytes(vcf_text(lines, form="GT:DP:X").replace("\n", "\r\n").encode())
    check_codes(read_table(tmp_path / "t.vcf"), np.array([[1, 1], [-1, -1], [2, 2], [1, -1]], np.int8))


def test_many_alleles_need_wider_codes(tmp_path):
    others = ",".join(["A" * length for length in range(2, 20)])
    lines = [f"1 10 a A {others} 0|18 17/18 18|18 ./18", "1 11 b A C 0/0 0/1 1/1 ./."]
    (tmp_path / "t.vcf").write_text(vcf_text(lines))
    expected = np.array([[pair_code(0, 18), 0], [pair_code(17, 18), 1], [pair_code(18, 18), 2], [-1, -1]], np.int16)
    check_codes(read_table(tmp_path / "t.vcf"), expected)


def test_both_ways_to_read_a_line_agree(tmp_path):
    cells = [f"{a}{phase}{b}" for a, b, phase in itertools.product(["0", "1", "2", "."], ["0", "1", "2", "."], "|/")]
    samples = " ".join(f"s{i}" for i in range(len(cells)))
    tables = []
    for form, end in (("GT", ""), ("GT:DP", ":1")):
        line = " ".join(["1 10 a A C,G", *[cell + end for cell in cells]])
        (tmp_path / "t.vcf").write_text(vcf_text([line], samples, form))
        tables.append(read_table(tmp_path / "t.vcf").columns)
    np.testing.assert_array_equal(*tables)


GOOD_LINE = "1 10 . A G 0/0 1/0 0/1 1|1"
BAD_VCF = {
    "no GT": (vcf_text([GOOD_LINE], form="DP"), r"t\.vcf, line 4: FORMAT is 'DP'; expected GT"),
    "no samples": (vcf_text(["1 10 . A G"], ""), r"t\.vcf holds sites without samples"),
    "same samples": (vcf_text([GOOD_LINE], "a a b c"), r"t\.vcf: several samples are named 'a'"),
    "no variants": (vcf_text([]), r"t\.vcf holds no variants"),
    "no header": ("1\t10\n", r"t\.vcf, line 1: expected a header line"),
    "empty": ("", r"t\.vcf has no #CHROM line"),
    "few cells": (vcf_text([GOOD_LINE, "1 11 . A G 0/0 1/1 1/1"]), r"line 5: found 3 sample\(s\), expected 4"),
    "few fields": (vcf_text([GOOD_LINE]) + "1\t11\n", r"line 5: found 2 fields, expected 13"),
    "letters": (vcf_text(["1 1 . A G 0/0 x/1 0/1 1|1"]), r"line 4: sample 's2' has the genotype 'x/1'"),
    "slash": (vcf_text(["1 1 . A G 0/0 //1 0/1 1|1"]), r"line 4: sample 's2' has the genotype '//1'"),
    "range": (vcf_text(["1 1 . A G 0/0 0/1 0/2 1|1"]), r"sample 's3' has the genotype '0/2'; expected .* from 0 to 1"),
    "triploid": (vcf_text(["1 1 . A G 0/0 0/1 0/1/1 1|1"]), r"'0/1/1'; expected one or two alleles"),
    "position": (vcf_text(["1 z . A G 0/0 0/1 0/1 1|1"]), r"line 4: POS is 'z'; expected an integer"),
    "alleles": (
        vcf_text([f"1 1 . A {','.join('C' * 255)} 0 0 0 0"]),
        r"line 4: found 256 alleles; expected at most 255",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_VCF.values(), ids=BAD_VCF)
def test_bad_vcf_is_refused(tmp_path, text, message):
    (tmp_path / "t.vcf").write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "t.vcf")


def test_names_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "t.vcf").write_bytes(vcf_text([GOOD_LINE]).replace("1\t10", "\xe9\t10").encode("latin-1"))
    with pytest.raises(InputError, match="line 4: byte 0xe9 is not UTF-8"):
        read_table(tmp_path / "t.vcf")


def test_truncated_files_are_refused(tmp_path, capfd):
    lines = [f"1 {position} . A G 0/0 1/0 0/1 1|1" for position in range(1, 3_000)]
    for kind in ("vcf.gz", "bcf"):
        path = tmp_path / f"t.{kind}"
        WRITERS[kind](path, vcf_text(lines))
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with pytest.raises(InputError, match=f"t.{kind} (is not a whole gzip file|cannot be read as BCF)"):
            read_table(path)
    assert "[E::" not in capfd.readouterr().err


def test_bad_bcf_is_refused(tmp_path):
    path = tmp_path / "t.bcf"
    write_bcf(path, vcf_text(["1 1 . A G 0/0 0/1 0/1/1 1|1"]))
    with pytest.raises(InputError, match="variant 1: found a call of 3 alleles"):
        read_table(path)
    header = f'{FORMAT_GT}\n##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">'
    write_bcf(path, vcf_text(["1 1 . A G 1 2 3 4"], form="DP").replace(FORMAT_GT, header))
    with pytest.raises(InputError, match="variant 1: it has no GT"):
        read_table(path)
    path.write_bytes(b"BCF\2\2junk")
    with pytest.raises(InputError, match=r"t\.bcf cannot be read as BCF"):
        read_table(path)


# --- STRUCTURE

TWO_LINES = """\
a 1 1 10 -9 3
a 1 1 9 5 3
b 2 0 10 5 1
b 2 0 10 7 3
"""
WANTED = np.array([[1, -1, 2], [2, 1, 1]], np.int8)
ONE_LINE = "a 1 10 9 -9 5 3 3\nb 2 10 10 5 7 1 3\n"

GOOD_STRUCTURE = {
    "bare": (TWO_LINES, ("locus1", "locus2", "locus3")),
    "names": (f"x y z\n{TWO_LINES}", ("x", "y", "z")),
    "tabs": (f"\t\t\tx\ty\tz\n{TWO_LINES}\n\n", ("x", "y", "z")),
    "distances": (f"x y z\n-1 2.5 3\n{TWO_LINES}", ("x", "y", "z")),
    "all names": (f"who where flag x y z\n{TWO_LINES}", ("x", "y", "z")),
    "missing as -1": (TWO_LINES.replace("-9", "-1"), ("locus1", "locus2", "locus3")),
    "label alone": (TWO_LINES.replace(" 1 1 ", " ").replace(" 2 0 ", " "), ("locus1", "locus2", "locus3")),
    "no flag": (TWO_LINES.replace("1 1 ", "1 ").replace("2 0 ", "2 "), ("locus1", "locus2", "locus3")),
    "more columns": (
        f"x y z\n{TWO_LINES.replace(' 1 1 ', ' p 1 1 7 ').replace(' 2 0 ', ' q 2 0 8 ')}",
        ("x", "y", "z"),
    ),
    "one line": (f"x y z\n{ONE_LINE}", ("x", "y", "z")),
}


@pytest.mark.parametrize(("text", "names"), GOOD_STRUCTURE.values(), ids=GOOD_STRUCTURE)
@pytest.mark.parametrize("kind", ["str", "stru.gz", "structure"])
def test_structure_in_every_form(tmp_path, text, names, kind):
    path = tmp_path / f"t.{kind}"
    path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    table = read_table(path)
    check_codes(table, WANTED)
    assert table.names == names
    assert table.positional == (names[0] == "locus1")
    assert table.row_ids.tolist() == ["a", "b"]
    assert [locus.alleles for locus in table.loci] == [("9", "10"), ("5", "7"), ("1", "3")]


BAD_STRUCTURE = {
    "odd": (TWO_LINES + "c 1 1 10 5 3\n", r"t\.str, line 5: the second line of 'c' is absent"),
    "labels": (
        TWO_LINES.replace("b 2 0 10 7", "c 2 0 10 7"),
        r"t\.str, line 4: its label is 'c', expected 'b' as in line 3",
    ),
    "ragged": (TWO_LINES.replace("5 1\n", "5\n"), r"t\.str, line 3: found 5 field\(s\), expected 6"),
    "ragged first": (TWO_LINES.replace("-9 3", "-9", 1), r"t\.str, line 1: found 5 field\(s\), expected 6"),
    "ragged last": (f"x y z\n{TWO_LINES[:-3]}", r"t\.str, line 5: found 5 field\(s\), expected 6"),
    "long": (TWO_LINES.replace("5 1\n", "5 1 1\n"), r"t\.str, line 3: found 7 field\(s\), expected 6"),
    "letters": (TWO_LINES.replace(" 7 ", " T "), r"t\.str, line 4, column 5: found 'T', expected an allele"),
    "no alleles": ("a 1 1\na 1 1\n", r"t\.str: found no alleles after the first 3 column"),
    "empty": ("\n\n", r"t\.str has 0 line\(s\) of text; expected two for each individual"),
    "same names": (f"x y x\n{TWO_LINES}", "'x'"),
}


@pytest.mark.parametrize(("text", "message"), BAD_STRUCTURE.values(), ids=BAD_STRUCTURE)
def test_bad_structure_is_refused(tmp_path, text, message):
    (tmp_path / "t.str").write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "t.str")


# --- Public data sets: the figures their SOURCE.txt gives


def missing_share(table):
    return float((table.columns < 0).mean())


def decoded(table, alphabet):
    """The genotypes (n, p, 2) as positions of their alleles in an alphabet, the smaller first; -1 where missing."""
    out = np.empty((*table.columns.shape, 2), int)
    for j, locus in enumerate(table.loci):
        positions = np.array([*map(alphabet.index, locus.alleles), -1])
        pairs = np.vstack([allele_pairs(len(locus.alleles)), [-1, -1]])  # code -1 finds the last
        out[:, j] = positions[pairs][table.columns[:, j]]
    return np.sort(out, axis=2)


@pytest.fixture
def public(data_folder):
    def find(name):
        if not (data_folder / name).exists():
            pytest.skip(f"no {name} among the public data sets")
        return data_folder / name

    return find


def log_likelihood(counts, frequencies):
    """ADMIXTURE's, of the counts (n, p) of an allele that has these frequencies (n, p); -1 is missing."""
    terms = counts * np.log(frequencies) + (2 - counts) * np.log(1 - frequencies)
    return terms[counts >= 0].sum()


@pytest.mark.data
def test_hapmap3_has_the_likelihood_that_admixture_reports(public):
    table = read_table(public("popgen_hapmap3_admixture/hapmap3.bed"))
    assert table.columns.shape == (324, 13_928)
    assert missing_share(table) == pytest.approx(0.0026, abs=5e-5)
    q = np.loadtxt(public("popgen_hapmap3_admixture/hapmap3.3.Q"))
    p = np.loadtxt(public("popgen_hapmap3_admixture/hapmap3.3.P.gz"))
    first = np.where(table.columns < 0, -1, 2 - table.columns)  # copies of alleles[0], which is A2
    assert log_likelihood(first, q @ p.T) == pytest.approx(-3_799_887.17, abs=0.05)


@pytest.mark.data
def test_bigsnpr_example_has_its_missing_share(public):
    table = read_table(public("popgen_plink_missing/example-missing.bed"))
    assert table.columns.shape == (200, 500)
    assert missing_share(table) == pytest.approx(0.0279, abs=5e-5)


@pytest.mark.data
def test_et_panel_has_its_alleles_and_likelihood(public):
    table = read_table(public("popgen_aims_vcf/ET_trainingdata.vcf.gz"))
    assert table.columns.shape == (4342, 104)
    n_alleles = np.array([len(locus.alleles) for locus in table.loci])
    assert np.bincount(n_alleles).tolist() == [0, 0, 73, 29, 2]
    assert missing_share(table) == pytest.approx(0.0244, abs=5e-5)
    two = np.flatnonzero(n_alleles == 2).tolist()
    two.sort(key=lambda j: (int(table.loci[j].chromosome), table.loci[j].position))
    codes = table.take(two).columns
    q = np.loadtxt(public("popgen_aims_vcf/ET_trainingdata.5.Q"))
    p = np.loadtxt(public("popgen_aims_vcf/ET_trainingdata.5.P"))
    assert log_likelihood(np.where(codes < 0, -1, 2 - codes), q @ p.T) == pytest.approx(-240_458.19, abs=0.05)


@pytest.mark.data
def test_aims_panel_is_complete(public):
    table = read_table(public("popgen_aims_vcf/1000G_AIMs.vcf.gz"))
    assert table.columns.shape == (2504, 55)
    assert missing_share(table) == 0.0


@pytest.mark.data
def test_et_panel_as_structure_file_holds_the_same_genotypes(public, tmp_path):
    shutil.copy(public("popgen_aims_vcf/structure_input.txt.gz"), tmp_path / "et.str.gz")
    table, vcf = read_table(tmp_path / "et.str.gz"), read_table(public("popgen_aims_vcf/ET_trainingdata.vcf.gz"))
    assert table.names == vcf.names
    assert table.row_ids.tolist() == vcf.row_ids.tolist()
    plain = [j for j, locus in enumerate(vcf.loci) if "*" not in locus.alleles]  # the other file has no such allele
    assert len(plain) == 102
    differ = decoded(table.take(plain), "0123") != decoded(vcf.take(plain), "ACGT")
    assert differ.any(axis=2).sum() == 1  # the half call


@pytest.mark.data
def test_nancycats_agrees_with_its_csv(public):
    table = read_table(public("popgen_nancycats/nancycats.str"))
    assert table.columns.shape == (237, 9)
    assert missing_share(table) == pytest.approx(0.023, abs=5e-4)
    frame = pd.read_csv(public("popgen_nancycats/genotypes.csv.gz"), index_col="id")
    assert table.row_ids.tolist() == frame.index.tolist()
    alleles = sorted({allele for locus in table.loci for allele in locus.alleles}, key=int)
    pairs = np.append(np.array(alleles, int), -1)[decoded(table, alleles)]
    expected = frame.iloc[:, 1:].fillna(-1).to_numpy().astype(int).reshape(237, 9, 2)
    np.testing.assert_array_equal(pairs, np.sort(expected, axis=2))
