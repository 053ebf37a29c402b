"""`mixmem moments` and `mixmem fit --moments`: what is typed, written and said, round by round."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from mixmem import GDLM, load, simulate_gdlm
from mixmem.cli import main
from mixmem.data import chunks
from mixmem.engine import rows as engine_rows

ROWS = 9_000


@pytest.fixture(scope="module", autouse=True)
def _short_stretches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_rows, "MOST_BLOCKS", 1)
        patch.setattr(chunks, "SAMPLE_BLOCKS", 8)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    codes = simulate_gdlm(ROWS, 9, 2, n_levels=3, alpha=0.2, random_state=1).codes
    frame = pl.DataFrame({f"x{j}": [f"level {code}" for code in codes[:, j].tolist()] for j in range(9)})
    for name, begin, end in (("a", 0, 2048), ("b", 2048, 5120), ("c", 5120, ROWS)):
        frame[begin:end].write_csv(path / f"{name}.csv")
    frame.write_parquet(path / "all.parquet")
    return path


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def run(capsys, line, code=0):
    """Return what a command line says; a refusal is one line, and nothing is written."""
    capsys.readouterr()
    assert main(line.split()) == code
    said = capsys.readouterr()
    return said.err if code else said.out


INIT = "moments init a.csv b.csv c.csv -k 2 --alpha0 0.4"


def round_of(capsys, plan, parts, fit):
    for part in parts:
        run(capsys, f"moments count {part}.csv --plan {plan} --out {part}.moments")
    run(capsys, f"moments merge {' '.join(f'{part}.moments' for part in reversed(parts))} --out M")
    return run(capsys, f"fit --moments M --out {fit}" + (" --sample sample" if plan.startswith("s") else ""))


def test_parts_with_a_sample_have_the_bits_of_the_whole_table(there, capsys):
    said = run(capsys, f"{INIT} --out s-plan --sample sample")
    assert "3 parts ('a', 'b', 'c')" in said
    assert "sample holds 4,096 rows: keep it where the fit is made" in said
    assert "round 1, which counts cells and the sums of a pass" in said
    plan, said = "s-plan", ""
    while plan:
        said = round_of(capsys, plan, "abc", "s-fit")
        plan = "s-fit/next-round.plan" if (there / "s-fit" / "next-round.plan").exists() else ""
    assert "no further round is needed" in said
    assert "mixmem memberships s-fit/model.mixmem DATA" in said
    whole = GDLM(2, alpha0=0.4, passes="few", random_state=0).fit("all.parquet")
    found = load("s-fit/model.mixmem")
    assert np.array_equal(found._theta, whole._theta)
    assert np.array_equal(found.alpha_, whole.alpha_)
    document = json.loads((there / "s-fit" / "fit.json").read_text())
    assert document["report"]["passes"]["parts"] == ["a", "b", "c"]
    assert sorted(path.name for path in (there / "s-fit").iterdir()) == [
        "alpha.csv", "fit.json", "model.mixmem", "theta.csv",
    ]  # fmt: skip
    run(capsys, "memberships s-fit/model.mixmem a.csv --out memberships.csv")
    assert len(pl.read_csv("memberships.csv")) == 2048


def test_rounds_say_what_comes_next_and_rows_are_added_later(there, capsys):
    said = run(capsys, "moments init a.csv -k 2 --alpha0 0.4 --out plan")
    assert "no sample: the work goes in rounds" in said
    assert "2 parts ('a', 'b')" in run(capsys, "moments init b.csv --plan plan --out plan")
    said = round_of(capsys, "plan", "ab", "fit")
    assert "round 1 is done; there is no model yet" in said
    assert "next: round 2, which counts cells and the sums of a pass at the theta found so far" in said
    said = round_of(capsys, "fit/next-round.plan", "ab", "fit")
    assert "the model can be used as it is; a further round makes it sharper" in said
    said = round_of(capsys, "fit/next-round.plan", "ab", "fit")
    assert "no further round is needed" in said
    assert not (there / "fit" / "next-round.plan").exists()
    run(capsys, "moments count c.csv --after M --out c.moments")
    assert "9,000 rows of 3 parts" in run(capsys, "moments merge M c.moments --out M2")
    assert "2 components in 9,000 rows" in run(capsys, "fit --moments M2 --out later")
    refused = {
        "moments merge M2 c.moments --out X": "part 'c' is in both sums",
        "moments count c.csv --plan plan --out X": "the plan has no part 'c'",
        "moments count a.csv --plan plan --part b --out X": "part 'b' has 2,048 rows, and 3,072 in the plan",
        "moments count a.csv --out X": "give --plan for a part of the plan, or --after M",
        "moments merge a.moments plan --out X": "plan has the format 'mixmem-moments-plan'; expected 'mixmem-moments'",
        "moments init a.csv --out X": "give -k",
        "moments init c.csv --plan plan -k 2 --out X": "--components goes with a table, and --plan has a plan",
        "fit --moments a.moments --out X": "the sums lack part 'b' of the plan",
        "fit --moments M --alpha0 3 --out X": "--alpha0 goes with a table",
        "fit a.csv --moments M --out X": "DATA goes with a table",
        "fit a.csv --out X": "Missing option '-k'",
        "fit -k 2 --out X": "Missing argument 'DATA': expected a table, or sums",
        "fit a.csv -k 2 --sample sample --out X": "--sample goes with sums",
        "report later": "memberships.csv",
        "fit --moments nowhere --out X": "nowhere does not exist",
    }
    for line, words in refused.items():
        said = run(capsys, line, code=2)
        assert words in said
        assert said.count("\n") == 1
    assert not (there / "X").exists()


def test_what_a_plan_has_fixed_and_what_would_be_overwritten_are_refused(there, capsys):
    run(capsys, "moments init a.csv -k 2 --alpha0 0.4 --out fixed")
    for option in ("-k 3", "--kind x0=ignore", "--weight x0", "--missing NA", "--seed 1", "--alpha0 1", "--sample s"):
        said = run(capsys, f"moments init b.csv --plan fixed --out joined {option}", code=2)
        assert "goes with a table, and --plan has a plan that fixed it; leave it out" in said
    assert not (there / "joined").exists()
    run(capsys, "moments init a.csv b.csv -k 2 --alpha0 0.4 --out two")
    for part in ("a", "b"):
        run(capsys, f"moments count {part}.csv --plan two --out {part}.m")
    before = (there / "a.m").read_bytes()
    assert "a.m" in run(capsys, "moments merge a.m b.m --out a.m", code=2)
    assert (there / "a.m").read_bytes() == before


def test_parts_whose_dialect_is_said(there, capsys):
    for part in ("a", "b"):
        bare = pl.read_csv(f"{part}.csv").rename({f"x{j}": f"level {j}" for j in range(9)})
        bare.write_csv(f"{part}-bare.csv", separator="~", include_header=False)
    run(capsys, "moments init a-bare.csv -k 2 --alpha0 0.4 --out bare --delimiter ~ --header no")
    run(capsys, "moments init b-bare.csv --plan bare --out joined --delimiter ~ --header no")
    found = run(capsys, "moments count b-bare.csv --plan joined --out b.bare --delimiter ~ --header no")
    assert "3,072 rows counted" in found
