"""Commands on tables larger than memory: the same files whatever they are read from, and nothing half-written."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from mixmem import simulate_gdlm
from mixmem.cli import main
from mixmem.data import chunks
from mixmem.data.read import read_table

FILES = ("theta.csv", "alpha.csv", "memberships.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("large")
    codes = simulate_gdlm(40_000, 8, 2, n_levels=3, alpha=0.2, random_state=1).codes.astype(np.int64)
    frame = pl.DataFrame({"who": [f"r{i}" for i in range(40_000)]} | {f"x{j}": codes[:, j] for j in range(8)})
    frame.write_csv(path / "all.csv")
    (path / "parts").mkdir()
    frame[:100].write_parquet(path / "parts" / "a.parquet")
    frame[100:].write_parquet(path / "parts" / "b.parquet")
    return path


@pytest.fixture(autouse=True)
def _small_samples(monkeypatch):
    monkeypatch.setattr(chunks, "SAMPLE_BLOCKS", 16)


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def test_fit_and_memberships_in_pieces(folder, tmp_path, capsys):
    options = ["-k", 2, "--id", "who", "--alpha0", 0.4]
    code, out, err = run(
        capsys, "fit", folder / "all.csv", *options, "--memory-limit", "3MB", "--scratch", tmp_path, "--out",
        tmp_path / "one",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "components from a sample of 8,192 rows, corrected by all rows" in out
    arguments = ["fit", folder / "parts", *options, "--passes", "few", "--out", tmp_path / "two", "--quiet"]
    assert run(capsys, *arguments) == (0, "", "")
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    document = json.loads((tmp_path / "one" / "fit.json").read_text())
    assert document["data"]["rows"] == 40_000
    assert document["report"]["passes"]["sampled"] == 8_192
    written = read_table(tmp_path / "one" / "memberships.csv", row_id="who")
    shares = [np.asarray(written.column(j)).mean() for j in range(2)]
    assert np.allclose(document["memberships"]["shares"], shares, atol=1e-8)
    model = tmp_path / "one" / "model.mixmem"
    arguments = ["memberships", model, folder / "parts", "--id", "who", "--quiet", "--memory-limit"]
    for name, limit in (("a.csv", "1GB"), ("b.csv", "2MB"), ("b.parquet", "2MB")):
        assert run(capsys, *arguments, limit, "--out", tmp_path / name) == (0, "", "")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert pl.read_parquet(tmp_path / "b.parquet").equals(pl.read_csv(tmp_path / "b.csv"))
    assert run(capsys, "report", tmp_path / "one")[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--refine", "gibbs"], "--refine gibbs samples the components of every cell of all rows in memory"),
        (["--kind", "y=count"], "--kind: there is no column 'y'"),
        (["--weight", "y"], "there is no column 'y' to take weights from"),
        (["--scratch", "nowhere"], "the scratch folder nowhere does not exist; create it or name another"),
        (["--scratch", __file__], "is a file, no folder; create it or name another"),
        (["--cv", 3], "--cv hides genotypes of all rows in memory"),
    ],
)
def test_refusals_leave_nothing(folder, tmp_path, capsys, options, message):
    arguments = ["fit", folder / "parts", "-k", 2, "--passes", "few", "--id", "who", "--out", tmp_path / "o", *options]
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_dialect_that_is_said_is_heeded_in_pieces(folder, tmp_path, capsys):
    frame = pl.read_csv(folder / "all.csv").drop("who")
    frame.write_csv(tmp_path / "bare.csv", separator="~", include_header=False)
    frame.write_csv(tmp_path / "named.csv")
    options = ["-k", 2, "--alpha0", 0.4, "--passes", "few", "--quiet", "--out"]
    dialect = ["--delimiter", "~", "--header", "no"]
    assert run(capsys, "fit", tmp_path / "bare.csv", *dialect, *options, tmp_path / "one")[0] == 0
    assert run(capsys, "fit", tmp_path / "named.csv", *options, tmp_path / "two")[0] == 0
    assert (tmp_path / "one" / "theta.csv").read_bytes() == (tmp_path / "two" / "theta.csv").read_bytes()
    arguments = ["memberships", tmp_path / "one" / "model.mixmem", tmp_path / "bare.csv", "--quiet", "--memory-limit"]
    for limit in ("1GB", "2MB"):
        assert run(capsys, *arguments, limit, *dialect, "--out", tmp_path / f"{limit}.csv")[0] == 0
    assert (tmp_path / "1GB.csv").read_bytes() == (tmp_path / "2MB.csv").read_bytes()
