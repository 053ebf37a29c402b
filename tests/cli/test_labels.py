"""`--by` and `--labels`: rows grouped on the page by labels that are not fitted."""

import json
import re

import numpy as np
import polars as pl
import pytest

from mixmem.cli import main
from mixmem.results.simulate import simulate_gdlm
from tests.cli.test_cli import refused, run

QUICK = ["-k", 2, "--alpha0", 0.2, "--refine", "none", "--quiet"]


def groups_of(folder):
    page = (folder / "report.html").read_text()
    rows = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))["rows"]
    return rows["by"], rows["groups"] and [rows["group_names"][code] for code in rows["groups"]]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    frame = simulate_gdlm(120, 8, 2, n_levels=3, random_state=0).frame
    frame.insert(0, "who", [f"r{i}" for i in range(120)])
    frame["town"] = np.resize(["Ulm", "Bath", "Nice"], 120)
    frame["share"] = np.linspace(0, 1, 120)
    frame["weight"] = np.resize([1, 2, 0], 120)
    frame.to_csv(folder / "data.csv", index=False)
    words = ["fit", folder / "data.csv", *QUICK, "--id", "who", "--kind", "share=ignore", "--kind", "weight=ignore"]
    assert main([str(word) for word in [*words, "--kind", "town=ignore", "--out", folder / "plain"]]) == 0
    assert main([str(word) for word in [*words, "--by", "town", "--out", folder / "grouped"]]) == 0
    return folder


def test_labels_are_shown_and_not_fitted(fitted, capsys):
    plain, grouped = fitted / "plain", fitted / "grouped"
    assert (grouped / "theta.csv").read_bytes() == (plain / "theta.csv").read_bytes()
    assert json.loads((grouped / "fit.json").read_text())["data"]["by"] == "town"
    assert groups_of(grouped) == ("town", np.resize(["Ulm", "Bath", "Nice"], 120).tolist())
    assert groups_of(plain) == (None, None)
    assert pl.read_csv(grouped / "groups.csv").row(1) == ("r1", "Bath")
    before = (grouped / "report.html").read_bytes()
    assert run(capsys, "report", grouped)[0] == 0
    assert (grouped / "report.html").read_bytes() == before


def test_a_report_is_grouped_afterwards(fitted, tmp_path, capsys):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in (fitted / "plain").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    assert run(capsys, "report", folder, "--by", "town")[0] == 0  # from the table that was fitted
    assert groups_of(folder) == groups_of(fitted / "grouped")
    # by ids, in another order, with a row that was not fitted
    ids = [*[f"r{i}" for i in reversed(range(120))], "other"]
    pl.DataFrame({"id": ids, "club": ["a" if i % 2 else "b" for i in range(121)]}).write_csv(tmp_path / "clubs.csv")
    assert run(capsys, "report", folder, "--by", "club", "--labels", tmp_path / "clubs.csv")[0] == 0
    assert groups_of(folder) == ("club", ["b" if i % 2 else "a" for i in range(120)])
    # by order
    pl.DataFrame({"club": ["x"] * 60 + ["y"] * 60}).write_csv(tmp_path / "clubs.csv")
    assert run(capsys, "report", folder, "--by", "club", "--labels", tmp_path / "clubs.csv")[0] == 0
    assert groups_of(folder)[1] == ["x"] * 60 + ["y"] * 60
    assert run(capsys, "report", folder)[0] == 0  # they stay
    assert groups_of(folder)[1] == ["x"] * 60 + ["y"] * 60


def test_rows_without_weight_have_no_group(fitted, tmp_path):
    words = ["fit", fitted / "data.csv", *QUICK, "--id", "who", "--kind", "share=ignore", "--weight", "weight"]
    assert main([str(word) for word in [*words, "--by", "town", "--out", tmp_path / "o"]]) == 0
    assert groups_of(tmp_path / "o")[1] == ["Ulm", "Bath"] * 40


def test_what_cannot_be_grouped_is_refused(fitted, tmp_path, capsys):
    fit = ["fit", fitted / "data.csv", *QUICK, "--id", "who", "--out", tmp_path / "o"]
    report = ["report", fitted / "plain"]
    before = (fitted / "plain" / "report.html").read_bytes()
    refused(capsys, "there is no column 'twon'; did you mean 'town'?", *fit, "--by", "twon")
    refused(capsys, "needs --by COLUMN", *fit, "--labels", "x.csv")
    refused(capsys, "there is no column 'twon'", *report, "--by", "twon")
    pl.DataFrame({"id": range(3), "club": list("abc")}).write_csv(tmp_path / "few.csv")
    refused(capsys, "has 3 rows for the 120", *report, "--by", "club", "--labels", tmp_path / "few.csv")
    frame = pl.read_csv(fitted / "data.csv")
    wide = pl.concat([frame, frame]).with_columns(number=pl.Series(range(240)))
    wide.write_csv(tmp_path / "wide.csv")
    fit[1] = tmp_path / "wide.csv"
    refused(capsys, "'number' has 240 different values; expected groups", *fit[:-4], "--by", "number", *fit[-2:])
    assert not (tmp_path / "o").exists()
    assert (fitted / "plain" / "report.html").read_bytes() == before
