"""Genotypes: likelihood and cost beside ADMIXTURE's stored fits and ADAMIXTURE in the same run.

HapMap3 (324 samples, 13,928 SNPs), K = 2 to 5, whole commands from .bed to files. Aims: ADMIXTURE's log-likelihood, and
at K = 3 and 5 half of ADAMIXTURE's CPU seconds. Then the 73 biallelic variants of a gzipped VCF of 4,342 samples,
K = 5, whose stored ADMIXTURE fit has -240458.19. Needs the public data sets (MIXMEM_DATA) and, for the comparison,
`adamixture`.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import authors
from benchmarks.measure import cost_of, cost_of_command, in_process
from mixmem import GDLM, Coding, Encoded, Schema, Variable, align_components
from mixmem.data.read import read_table

HAPMAP = authors.DATA.parent / "popgen_hapmap3_admixture"
AIMS_VCF = authors.DATA.parent / "popgen_aims_vcf" / "ET_trainingdata.vcf.gz"
ADMIXTURE = {2: -3835366.0, 3: -3799889.0, 4: -3789070.0, 5: -3778970.0}
AIMS = -240458.19
Row = dict[str, float | str | int]


def fit_hapmap(folder: Path, k: int, seed: int) -> Row:
    """``mixmem fit`` on HapMap3."""
    out = folder / f"out{k}"
    cost = cost_of_command(
        [
            sys.executable, "-m", "mixmem", "fit", str(folder / "hapmap3.bed"), "-k", str(k), "--seed", str(seed),
            "--q", str(folder / "q"), "--quiet", "--out", str(out),
        ]
    )  # fmt: skip
    found = json.loads((out / "fit.json").read_text())["report"]["refine"]["em"]["log_likelihood"]
    q, known = np.loadtxt(folder / "q"), np.loadtxt(HAPMAP / f"hapmap3.{k}.Q")
    apart = float(np.abs(q[:, align_components(known, q)] - known).mean())
    return {"log-likelihood": found, "from its Q": apart, "CPU s": cost.cpu, "wall s": cost.wall}


def fit_alone(folder: Path, k: int) -> Row:
    """``GDLM.fit`` of the same file, libraries imported and kernels loaded: the computation alone, with reading."""
    small = simulate_genotypes(40, 60)
    GDLM(2, random_state=0).fit(small)
    cost, model = cost_of(lambda: GDLM(k, random_state=0).fit(folder / "hapmap3.bed"))
    return {"log-likelihood": model.report_.refine.em.log_likelihood, "CPU s": cost.cpu, "wall s": cost.wall}


def simulate_genotypes(n_rows: int, n_loci: int) -> Encoded:
    """Any small table of genotypes."""
    codes = np.random.default_rng(0).integers(3, size=(n_rows, n_loci)).astype(np.uint8)
    schema = Schema(tuple(Variable(f"snp{j}", ("A", "G"), kind="dosage") for j in range(n_loci)))
    return Encoded.of(codes, Coding.of(schema))


def adamixture(folder: Path, k: int) -> Row:
    """The same by ADAMIXTURE, whose likelihood is that of the files it writes."""
    program = Path(sys.executable).with_name("adamixture")
    cost = cost_of_command(
        [
            str(program), "-k", str(k), "--save_dir", str(folder / "other"), "--data_path", str(folder / "hapmap3.bed"),
            "--name", "a", "-t", "2", "--chrom_mode", "all",
        ]
    )  # fmt: skip
    q, p = (np.loadtxt(next((folder / "other").glob(f"*{k}.{part}"))) for part in "QP")
    genotypes = np.asarray(read_table(folder / "hapmap3.bed").columns)
    return {
        "log-likelihood": max(_likelihood(genotypes, q, f) for f in (p, 1.0 - p)),
        "CPU s": cost.cpu,
        "wall s": cost.wall,
    }


def _likelihood(genotypes: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
    """ADMIXTURE's log-likelihood of genotypes (n, m), -1 where missing; p (m, k) of the counted allele."""
    f = np.clip(q @ p.T, 1e-10, 1.0 - 1e-10)
    seen = genotypes >= 0
    return float((genotypes * np.log(f) + (2 - genotypes) * np.log(1.0 - f))[seen].sum())


def run(quick: bool = False) -> Iterator[Row]:
    """One row a K and program."""
    if not HAPMAP.is_dir():
        print(f"skipped: no {HAPMAP}; set MIXMEM_DATA to the folder of the public data sets")
        return
    blank: Row = dict.fromkeys(("case", "program", "K", "log-likelihood", "aim", "from its Q", "CPU s", "wall s"), "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix in (".bed", ".fam"):
            shutil.copy(HAPMAP / f"hapmap3{suffix}", folder)
        (folder / "hapmap3.bim").write_bytes(gzip.decompress((HAPMAP / "hapmap3.bim.gz").read_bytes()))
        (folder / "other").mkdir()
        for k, aim in ADMIXTURE.items():
            for seed in range(1 if quick else 3):
                case = {"case": "HapMap3", "program": f"mixmem, seed {seed}", "K": k, "aim": f">= {aim:.0f}"}
                yield blank | case | fit_hapmap(folder, k, seed)
            case = {"case": "HapMap3", "program": "mixmem, fit alone", "K": k}
            yield blank | case | in_process(fit_alone, folder, k)
            if importlib.util.find_spec("adamixture") and k in (3, 5):
                yield blank | {"case": "HapMap3", "program": "ADAMIXTURE", "K": k} | adamixture(folder, k)
    table = read_table(AIMS_VCF)
    several = {v: "ignore" for v, locus in zip(table.names, table.loci or (), strict=True) if len(locus.alleles) > 2}
    for seed in range(1 if quick else 3):
        model = GDLM(5, variables=several, random_state=seed).fit(AIMS_VCF)
        found = model.report_.refine.em.log_likelihood
        case = {"case": "AIMs VCF", "program": f"mixmem, seed {seed}", "K": 5, "aim": f">= {AIMS}"}
        yield blank | case | {"log-likelihood": found}
