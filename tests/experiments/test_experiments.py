"""The paper's experiments: resumable, independent of order and processes, and right in their arithmetic."""

from __future__ import annotations

import csv
import json
import math
import operator
import os
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from mixmem.cli import main
from mixmem.errors import InputError
from mixmem.experiments import figure, methods, negatives, pool, runtime
from mixmem.experiments.cells import CELLS, QUICK, Cell, draw, negative_share, published
from mixmem.experiments.ledger import HEADER, Line, Unit
from mixmem.experiments.pace import PacedProgress
from mixmem.progress import showing

MEASURED = {"cpu_seconds": 0.5, "seconds": 0.6, "rmse": 0.03, "peak_mb": 300.0, "base_mb": 200.0}
SOME = (Cell(100, 0.0, 3), Cell(100, 0.1, 3), Cell(500, 0.0, 3))
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "figure_rmse.csv"


@pytest.fixture
def fake(monkeypatch):
    """Two methods that cost nothing: a list of their calls, and errors that depend on table and seed."""
    calls = []

    def estimate(method, setting, table, seed):
        if len(table.alpha) > 2:  # the tables of the warm-up have two components
            calls.append((method, setting, len(table.codes)))
        rng = np.random.default_rng(seed)
        return table.theta + 0.01 * rng.random(table.theta.shape) + 0.001 * table.codes.mean() * (setting != "authors")

    monkeypatch.setattr(methods, "METHODS", ("hals", "mixmem"))
    monkeypatch.setattr(methods, "SETTINGS", {"hals": ("authors", "fair"), "mixmem": ("moments",)})
    monkeypatch.setattr(methods, "estimate", estimate)
    return calls


@pytest.fixture
def undrawn(monkeypatch):
    """Leave out the pictures, which take most of a small run."""
    monkeypatch.setattr(figure, "save", lambda *_: None)


def run(out, **options):
    return figure.run_figure(out, **{"cells": SOME, "tries": 2, "jobs": 1, **options})


def lines_of(out):
    """Lines of tries.csv without their seconds, which no two runs share."""
    with (out / "tries.csv").open() as file:
        return sorted(
            tuple(value for key, value in row.items() if key != "cpu_seconds") for row in csv.DictReader(file)
        )


# --- The design


def test_the_design_is_the_papers():
    assert len(CELLS) == len(set(CELLS)) == 48
    assert set(QUICK) < set(CELLS)
    assert len(published()) == 288
    table, _ = draw(Cell(500, 0.1, 5), 0, seed=0)
    assert table.codes.shape == (500, 25)
    assert table.theta.shape == (100, 5)
    assert table.alpha.tolist() == [0.1] * 5
    assert table.noise == 0.1


def test_published_values_are_the_references():
    if not REFERENCE.is_file():
        pytest.skip(f"no {REFERENCE}")
    with REFERENCE.open() as file:
        stated = {
            (Cell(int(row["n"]), float(row["delta"]), int(row["k"])), row["method"]): float(row["rmse"])
            for row in csv.DictReader(file)
        }
    assert published() == stated


@pytest.mark.slow
def test_every_way_of_the_comparison_runs():
    """On a table so small that it takes no time; every estimate is a theta on the simplex."""
    table, seed = draw(Cell(80, 0.0, 2), 0, 0, variables=9)
    for way in figure.ways_of(methods.METHODS):
        theta = methods.estimate(*way, table, seed)
        assert theta.shape == table.theta.shape
        assert np.allclose(theta.reshape(9, 4, 2).sum(axis=1), 1.0)
    with pytest.raises(InputError, match="no method 'hals' in the setting 'moments'"):
        methods.estimate("hals", "moments", table, seed)


def test_the_authors_scorer_may_take_a_column_twice():
    truth = np.array([[1.0, 0.8], [0.0, 0.2]])
    theta = np.array([[0.9, 0.0], [0.1, 1.0]])
    assert methods.error("fair", truth, theta) == pytest.approx(np.sqrt((0.02 + 2 * 0.64) / 4))
    assert methods.error("authors", truth, theta) <= methods.error("fair", truth, theta)


def test_what_takes_long_runs_on_some_tables_only():
    ways = tuple(figure.ways_of(["nojd0", "hals", "mixmem"]))
    long, default, cheap = ("nojd0", "authors"), ("mixmem", "default"), ("hals", "authors")
    extent = figure.Extent(ways)
    assert {long, default, cheap} <= set(extent.at(Unit(Cell(100, 0.0, 3), 0)))
    assert long not in extent.at(Unit(Cell(100, 0.1, 3), 0))
    assert default in extent.at(Unit(Cell(100, 0.1, 3), 0))
    assert {long, default} & set(extent.at(Unit(Cell(100, 0.0, 3), 1))) == set()
    assert {long, default} & set(figure.Extent(ways, quick=True).at(Unit(Cell(5000, 0.0, 3), 0))) == set()
    assert set(figure.Extent(ways, full=True).at(Unit(Cell(100, 0.1, 3), 4))) == set(ways)


def test_every_published_method_can_be_run():
    assert {method for _, method in published()} | {"mixmem"} == set(methods.METHODS) == set(methods.SETTINGS)


def test_tables_depend_on_seed_cell_and_try_alone():
    cell = Cell(100, 0.05, 3)
    (one, seed), (again, same) = draw(cell, 1, seed=7), draw(cell, 1, seed=7)
    assert (one.codes == again.codes).all()
    assert seed == same
    for other in (draw(cell, 0, seed=7), draw(cell, 1, seed=8), draw(Cell(100, 0.1, 3), 1, seed=7)):
        assert (other[0].theta != one.theta).any()
        assert other[1] != seed


# --- Units: resumed, in any order, in any number of processes


def test_an_interrupted_run_goes_on_to_the_same_result(fake, undrawn, tmp_path, monkeypatch):
    run(tmp_path / "whole")
    fake.clear()
    steady = methods.estimate

    def interrupted(method, setting, table, seed):
        if len(fake) == 8:  # in the middle of the third table of six
            raise KeyboardInterrupt
        return steady(method, setting, table, seed)

    monkeypatch.setattr(methods, "estimate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts")
    assert len(lines_of(tmp_path / "parts")) == 6
    assert not (tmp_path / "parts" / "results.csv").exists()
    fake.clear()
    monkeypatch.setattr(methods, "estimate", steady)
    run(tmp_path / "parts")
    assert len(fake) == 4 * 3
    assert lines_of(tmp_path / "parts") == lines_of(tmp_path / "whole")
    fake.clear()
    run(tmp_path / "parts")
    assert fake == []


def test_units_do_not_depend_on_their_order(fake, undrawn, tmp_path):
    run(tmp_path / "a")
    cells = list(SOME)
    random.Random(1).shuffle(cells)
    run(tmp_path / "b", cells=cells[::-1])
    assert lines_of(tmp_path / "a") == lines_of(tmp_path / "b")
    run(tmp_path / "c", names=["mixmem"])
    assert set(lines_of(tmp_path / "c")) < set(lines_of(tmp_path / "a"))


@pytest.mark.slow
def test_units_do_not_depend_on_the_number_of_processes(undrawn, tmp_path):
    """With the methods themselves: spawned processes know of no fakes."""
    options = {"cells": SOME[:2], "tries": 1, "names": ["tpm", "mixmem"], "settings": ["fair", "moments"]}
    run(tmp_path / "one", **options)
    run(tmp_path / "two", **options, jobs=2)
    assert lines_of(tmp_path / "one") == lines_of(tmp_path / "two")
    assert len(lines_of(tmp_path / "one")) == 2 * 2


@pytest.mark.parametrize("cut", ["100,0.0,3,1,hals,auth", "100,0.0,3,1,hals,authors,0.01,0.1,0.2,\n"])
def test_what_is_left_of_a_unit_is_dropped(fake, undrawn, tmp_path, cut):
    """A line cut in the middle, and whole lines of a unit whose other methods are missing."""
    run(tmp_path, cells=SOME[:1])
    path = tmp_path / "tries.csv"
    whole = lines_of(tmp_path)
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(text[:4]) + cut)
    fake.clear()
    run(tmp_path, cells=SOME[:1])
    assert len(fake) == 3
    assert lines_of(tmp_path) == whole


def test_damage_elsewhere_is_refused(fake, undrawn, tmp_path):
    run(tmp_path, cells=SOME[:1])
    path = tmp_path / "tries.csv"
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join([text[0], "100,0.0,thr", *text[2:]]))
    with pytest.raises(InputError, match=r"tries.csv is damaged in line 2: delete that line"):
        run(tmp_path, cells=SOME[:1])
    path.write_text("a,b\n")
    with pytest.raises(InputError, match="not written by this command"):
        run(tmp_path, cells=SOME[:1])
    (tmp_path / "settings.json").unlink()
    with pytest.raises(InputError, match=r"has tries.csv but no settings.json"):
        run(tmp_path, cells=SOME[:1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tries": 1}, "tries: 2 there, 1 now"),
        ({"seed": 3}, "seed: 0 there, 3 now"),
        ({"names": ["mixmem"]}, "methods: "),
        ({"cells": SOME[:2]}, "cells: "),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(fake, undrawn, tmp_path, change, message):
    run(tmp_path)
    before = (tmp_path / "tries.csv").read_text()
    with pytest.raises(InputError, match=message):
        run(tmp_path, **change)
    assert (tmp_path / "tries.csv").read_text() == before
    (tmp_path / "settings.json").write_text("[1")
    with pytest.raises(InputError, match=r"settings.json is damaged"):
        run(tmp_path)


def test_a_method_that_fails_is_recorded_and_stops_nothing(fake, undrawn, tmp_path, monkeypatch):
    steady = methods.estimate

    def failing(method, setting, table, seed):
        theta = steady(method, setting, table, seed)
        if setting == "authors":
            raise ValueError("no, \n'never'")
        if method == "hals":
            theta[0, 0] = np.inf if len(table.codes) == 500 else 0.0
        return theta[:, :2] if method == "mixmem" and len(table.codes) == 500 else theta

    monkeypatch.setattr(methods, "estimate", failing)
    found = run(tmp_path)
    with (tmp_path / "tries.csv").open() as file:
        rows = list(csv.DictReader(file))
    reasons = {(row["method"], row["setting"], row["n"]): row["reason"] for row in rows}
    assert reasons["hals", "authors", "100"] == "ValueError: no, 'never'"
    assert reasons["hals", "fair", "500"] == "theta is not finite"
    assert "shape (100, 2)" in reasons["mixmem", "moments", "500"]
    assert reasons["mixmem", "moments", "100"] == ""
    assert all((row["rmse"] == "nan") == (row["reason"] != "") for row in rows)
    assert found.failures == 6 + 2 + 2
    failed = found.frame.filter(pl.col("tries") == 0)
    assert failed["rmse"].null_count() == failed.height == 3 + 1 + 1
    assert run(tmp_path).failures == found.failures  # failures are finished too


# --- results.csv


def test_arithmetic_of_the_results():
    cell = Cell(1000, 0.05, 10)
    errors, seconds = (0.07, 0.09, math.nan), (3.0, 1.0, 50.0)
    lines = [
        Line(cell.n, cell.delta, cell.k, i, "ptpqp", "fair", errors[i], seconds[i], 0.1 * (i + 1), "x" * (i == 2))
        for i in (2, 1, 0)
    ]
    lines.append(Line(cell.n, cell.delta, cell.k, 0, "mixmem", "moments", 0.06, 1.0, 0.1))
    frame = figure.summarize(lines)
    assert frame.columns == [
        "n", "delta", "k", "method", "setting", "rmse", "spread", "published", "ratio", "authors_program",
        "cpu_seconds", "negative_fraction", "tries",
    ]  # fmt: skip
    ptpqp, ours = frame.to_dicts()
    assert ptpqp["rmse"] == pytest.approx(0.08)
    assert ptpqp["spread"] == pytest.approx(0.01)
    assert ptpqp["published"] == 0.071452
    assert ptpqp["ratio"] == pytest.approx(0.08 / 0.071452)
    assert ptpqp["cpu_seconds"] == 2.0
    assert ptpqp["negative_fraction"] == pytest.approx(0.2)
    assert ptpqp["tries"] == 2
    assert (ours["published"], ours["ratio"]) == (None, None)
    standing = {row["method"]: row for row in figure.standing(frame)}
    assert (standing["ptpqp"]["near"], standing["ptpqp"]["compared"]) == (1, 1)
    assert (standing["mixmem"]["near"], standing["mixmem"]["compared"]) == (0, 0)
    assert figure.Figure(frame, 1, 0.0).beaten("moments") == (1, 1)
    assert figure.Figure(frame, 1, 0.0).beaten("default") is None


def test_files_of_a_run(fake, tmp_path):
    found = run(tmp_path)
    written = {path.name for path in tmp_path.iterdir()}
    drawn = {f"{name}.{kind}" for name in ("figure", "figure_fair") for kind in ("png", "svg")}
    assert written == {"settings.json", "tries.csv", "results.csv", *drawn}
    assert pl.read_csv(tmp_path / "results.csv").columns == found.frame.columns
    assert found.frame.height == 3 * 3
    assert json.loads((tmp_path / "settings.json").read_text())["tries"] == 2
    assert (tmp_path / "tries.csv").read_text().splitlines()[0] == ",".join(HEADER)


# --- Processes and progress


def test_pieces_come_with_their_results():
    """Processes import the module of the function: these are there already."""
    assert dict(pool.results(operator.neg, [1, 2, 3], 2)) == {1: -1, 2: -2, 3: -3}
    assert list(pool.results(operator.neg, [3, 1], 1)) == [(3, -3), (1, -1)]
    assert list(pool.results(operator.neg, [], None)) == []


def test_processes_have_one_thread_and_the_environment_stays():
    before = dict(os.environ)
    found = dict(pool.results(os.getenv, ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS"], 2))
    assert found == {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    assert dict(os.environ) == before


def test_an_error_in_a_process_ends_the_run():
    with pytest.raises(ValueError, match="math domain error"):
        list(pool.results(math.sqrt, [-1.0, 4.0, 9.0], 2))


def test_lines_of_progress_hold_an_estimate(capsys, monkeypatch):
    monkeypatch.setattr(PacedProgress, "every", 0.0)
    with showing(PacedProgress), PacedProgress().stage("tables", 4) as step:
        step(1)
    said = capsys.readouterr().err
    assert said == "mixmem: tables: 25%, 0 s so far, about 0 s left\nmixmem: tables: done in 0 s\n"


# --- The other two studies


def test_negative_shares(tmp_path):
    cells = (Cell(100, 0.0, 3), Cell(1000, 0.0, 3))
    rows = negatives.run_negatives(tmp_path, tries=2, jobs=1, cells=cells).to_dicts()
    assert [row["variables"] for row in rows] == [10, 10, 25, 25]
    few, many = rows[2:]
    assert rows[1]["negative_full"] > 0.2 > many["negative_full"]  # 10 variables, as the authors counted, and 25
    assert few["negative_fraction"] > many["negative_fraction"] > 0.0
    assert few["smallest"] <= few["negative_fraction"] <= few["largest"]
    table = [draw(cells[0], attempt, 0)[0] for attempt in range(2)]
    assert few["negative_fraction"] == pytest.approx(np.mean([negative_share(t) for t in table]))
    assert few["negative_full"] == pytest.approx(np.mean([negatives.full_share(t) for t in table]))
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "negatives.png", "negatives.svg"}


def test_runtime_is_measured(tmp_path, monkeypatch):
    cases = runtime.cases_of(quick=False, most=2, seed=0)
    assert {(case.k, case.partitions, case.cores) for case in cases} == {
        (k, number, count) for k in (4, 8, 12) for number in (30, 40, 50, 100, 200, None) for count in (1, 2)
    }
    assert {case.repeats for case in cases} == {3}
    assert len(runtime.cases_of(quick=True, most=1, seed=0)) == 2 * 4
    measured = runtime.measure(runtime.Case(4, 5, 1, 2, 0, size=100))
    assert measured["seconds"] > 0.0
    assert 0.0 < measured["rmse"] < 0.2
    assert measured["peak_mb"] >= measured["base_mb"] > 10.0
    monkeypatch.setattr(runtime, "in_fresh_process", lambda case: measured)
    frame = runtime.run_runtime(tmp_path, quick=True, jobs=2)
    stars = frame.filter(pl.col("partitions") == 100)
    assert set(stars["paper_seconds"].to_list()) == {210.0, 300.0}
    assert stars["times_faster"][0] == pytest.approx(210.0 / measured["cpu_seconds"])
    assert frame.filter(pl.col("partitions") == 30)["paper_seconds"].null_count() == 4
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "runtime.png", "runtime.svg"}


@pytest.mark.slow
def test_a_measurement_has_a_process_of_its_own():
    measured = runtime.in_fresh_process(runtime.Case(4, None, 1, 1, 0, size=60))
    assert set(measured) == {"cpu_seconds", "seconds", "rmse", "peak_mb", "base_mb"}


# --- The command line


@pytest.mark.parametrize(
    ("module", "function", "arguments", "expected"),
    [
        (
            figure, "run_figure",
            "figure --tries 3 --quick --full --methods hals,tpm --settings fair --jobs 2 --seed 4",
            {"tries": 3, "quick": True, "full": True, "names": ["hals", "tpm"], "settings": ["fair"], "jobs": 2,
             "seed": 4},
        ),
        (
            figure, "run_figure", "figure",
            {"tries": None, "quick": False, "full": False, "names": None, "settings": None, "jobs": None, "seed": 0},
        ),
        (runtime, "run_runtime", "runtime --quick --jobs 3 --seed 1", {"quick": True, "jobs": 3, "seed": 1}),
        (negatives, "run_negatives", "negatives --quick --jobs 1",
         {"tries": None, "quick": True, "jobs": 1, "seed": 0}),
    ],
)  # fmt: skip
def test_options_reach_the_function(monkeypatch, tmp_path, capsys, module, function, arguments, expected):
    seen = {}

    class Stop(Exception):
        pass

    def stop(out, **options):
        seen.update(options, out=out)
        raise Stop("enough")

    monkeypatch.setattr(module, function, stop)
    assert main(["reproduce", *arguments.split(), "--out", str(tmp_path / "o"), "--quiet"]) == 1
    assert "failed with Stop: enough" in capsys.readouterr().err
    assert seen == {**expected, "out": tmp_path / "o"}


def test_what_figure_prints(fake, undrawn, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(figure, "CELLS", SOME)
    arguments = ["reproduce", "figure", "--tries", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "3 tables: done in" in err
    assert "within 25%" in out
    assert "hals     authors" in out
    assert "mixmem (moments alone) is below the published ptpqp in 3 of 3 cells" in out
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main([*arguments, "--seed", "1"]) == 2
    assert "seed: 0 there, 1 now" in capsys.readouterr().err


def test_what_the_other_studies_print(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runtime, "in_fresh_process", lambda case: MEASURED)
    assert main(["reproduce", "runtime", "--quick", "--jobs", "2", "--out", str(tmp_path / "r")]) == 0
    assert "420 x" in capsys.readouterr().out
    monkeypatch.setattr(negatives, "shares_of", lambda unit, seed: (0.1, 0.3))
    assert main(["reproduce", "negatives", "--tries", "1", "--jobs", "1", "--out", str(tmp_path / "n")]) == 0
    out = capsys.readouterr().out
    assert "10.0% to 10.0%" in out
    assert "10 variables, as the authors counted: 48 of 48 cells inside" in out
    assert "negatives.png" in out


def test_all_of_it_on_one_page(fake, undrawn, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("MIXMEM_DATA", raising=False)
    monkeypatch.setattr(figure, "QUICK", SOME)
    monkeypatch.setattr(runtime, "in_fresh_process", lambda case: MEASURED)
    monkeypatch.setattr(negatives, "shares_of", lambda unit, seed: (0.1, 0.3))
    assert main(["reproduce", "all", "--quick", "--jobs", "1", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert f"{tmp_path / 'reproduction.html'} (open this)" in out
    page = (tmp_path / "reproduction.html").read_text()
    for value in published().values():
        assert f"<b>{value:.3f}</b>" in page
    assert page.count("not run") > 288
    assert "Not run: where are the crowd labels?" in page
    assert "k = 4: 0.50, 0.50, 0.50 s (falls all the way)" in page
    assert "<b>15.37</b>" in page


def test_interruption_says_how_to_go_on(fake, tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(figure, "CELLS", SOME)
    monkeypatch.setattr(methods, "estimate", interrupted)
    assert main(["reproduce", "figure", "--jobs", "1", "--out", str(tmp_path), "--quiet"]) == 130
    assert "tries.csv: the same command goes on from there" in capsys.readouterr().err


def test_bad_usage_is_refused_before_anything_is_written(tmp_path, capsys):
    out = str(tmp_path / "o")
    assert main(["reproduce", "figure", "--out", out, "--methods", "halls"]) == 2
    assert "there is no method 'halls'; did you mean 'hals'?" in capsys.readouterr().err
    assert main(["reproduce", "figure", "--out", out, "--methods", ","]) == 2
    assert "--methods and --settings name none together" in capsys.readouterr().err
    assert main(["reproduce", "figure", "--out", out, "--settings", "autors"]) == 2
    assert "there is no setting 'autors'; did you mean 'authors'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["reproduce"]) == 0
    assert "negatives" in capsys.readouterr().out


def test_units_are_named_by_cell_and_try():
    line = Line(100, 0.05, 3, 2, "hals", "fair", 0.1, 1.0, 0.4)
    assert line.unit == Unit(Cell(100, 0.05, 3), 2)
    assert line.way == ("hals", "fair")
