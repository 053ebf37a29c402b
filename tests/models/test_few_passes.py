"""Fits in few passes: the same bits from memory and files, as accurate as sweeps over all rows, and refusals."""

from __future__ import annotations

import os
import shutil

import numpy as np
import polars as pl
import pytest

from mixmem import GDLM, InputError, TableWarning, rmse, simulate_gdlm, simulate_mixed
from mixmem.data import chunks
from mixmem.data.read import read_table
from mixmem.engine import rows as engine_rows
from mixmem.models._passes import rows_per_chunk
from mixmem.moments import few_passes, part_of_rows

ROWS = 70_000


@pytest.fixture(scope="module", autouse=True)
def _small_samples():
    """A sample of 8,192 rows: what is tested does not depend on its size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "SAMPLE_BLOCKS", 16)
        yield


@pytest.fixture(scope="module")
def drawn():
    return simulate_gdlm(ROWS, 9, 2, n_levels=3, alpha=0.2, random_state=1)


@pytest.fixture(scope="module")
def frame(drawn):
    codes = drawn.codes.astype(np.int64)
    return pl.DataFrame({f"x{j}": codes[:, j] for j in range(codes.shape[1])})


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    for number, (begin, end) in enumerate([(0, 30_000), (30_000, 30_007), (30_007, ROWS)]):
        frame[begin:end].write_parquet(path / f"p{number}.parquet")
    frame.write_csv(path / "all.csv")
    return path


def fitted(X, chunk_rows=None, weights=None, **settings):
    model = GDLM(2, **{"alpha0": 0.4, "refine": None, "random_state": 0, "passes": "few"} | settings)
    model._chunk_rows = chunk_rows
    return model.fit(X, sample_weight=weights)


def assert_same(one, other):
    assert np.array_equal(one._theta, other._theta)
    assert np.array_equal(one.alpha_, other.alpha_)


@pytest.mark.slow
def test_memory_files_chunks_and_threads_give_the_same_bits(drawn, frame, folder):
    whole = fitted(frame)
    pattern = str(folder / "*.parquet")
    others = [
        fitted(pattern), fitted(pattern, 1, n_jobs=1), fitted(pattern, 40_000, scratch=folder), fitted(frame.lazy()),
        fitted(pattern, 40_000, memory_limit="2MB"),
        fitted(folder / "all.csv", 1), fitted(drawn.encoded),
        fitted(folder / "all.csv", passes="auto", memory_limit="2MB"),
    ]  # fmt: skip
    for other in others:
        assert_same(whole, other)
        assert other.report_.passes.sampled == 16 * 512
        assert other.report_.rows == ROWS
    assert sorted(os.listdir(folder)) == ["all.csv", "p0.parquet", "p1.parquet", "p2.parquet"]  # no scratch is left
    assert np.array_equal(whole.memberships_, whole.transform(frame))
    with pytest.raises(InputError, match="does not hold the rows"):
        others[0].memberships_


@pytest.mark.slow
def test_a_second_correction_takes_a_part_of_the_rows(drawn, frame, folder, monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_BLOCKS", 1)
    monkeypatch.setattr(chunks, "SAMPLE_BLOCKS", 8)
    monkeypatch.setattr(few_passes, "ENOUGH", 0.18)
    few, pattern = fitted(frame), str(folder / "*.parquet")
    report = few.report_.start.correction
    assert report.parts[0] == 1.0
    assert 0.0 < report.parts[1] < 0.25
    for other in (
        fitted(drawn.encoded), fitted(pattern, 1, memory_limit="2MB"), fitted(pattern, 3_000, scratch=folder, n_jobs=1)
    ):  # fmt: skip
        assert_same(few, other)
        assert other.report_.start.correction == report
    monkeypatch.setattr(part_of_rows, "MOST_PART", ROWS)
    every = fitted(frame)
    assert every.report_.start.correction.parts == [1.0, 1.0]
    assert rmse(few._theta, every._theta) < 0.18 * rmse(every._theta, drawn.theta)


@pytest.mark.slow
def test_sorted_rows_are_all_taken_by_a_second_correction(drawn, monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_BLOCKS", 1)
    monkeypatch.setattr(chunks, "SAMPLE_BLOCKS", 8)
    monkeypatch.setattr(few_passes, "ENOUGH", 0.18)
    rows = drawn.encoded.take(np.argsort(drawn.memberships[:, 0]))
    assert set(fitted(rows).report_.start.correction.parts) == {1.0}


@pytest.mark.slow
def test_as_accurate_as_sweeps_over_all_rows(drawn, frame):
    few, every = fitted(frame), fitted(frame, passes="all")
    sample = fitted(frame[: 16 * 512], passes="all")
    assert rmse(few._theta, drawn.theta) < 1.02 * rmse(every._theta, drawn.theta)
    assert rmse(few._theta, drawn.theta) < 0.6 * rmse(sample._theta, drawn.theta)
    moved = few.report_.start.correction.moved
    assert len(moved) >= 1
    assert few.report_.start.correction.left < 0.1 * moved[0]


@pytest.mark.slow
def test_sweeps_over_all_rows_that_are_read_in_pieces(drawn, frame, folder):
    pattern = str(folder / "*.parquet")
    limited = {"passes": "all", "memory_limit": "2MB"}
    whole = fitted(pattern, **limited)
    assert_same(whole, fitted(pattern, 40_000, n_jobs=1, scratch=folder, **limited))
    assert whole.report_.passes.sampled == 16 * 512
    assert whole.report_.start.correction is None
    assert whole.report_.start.sweeps.count >= 2
    every = fitted(frame, passes="all")  # by other groups of variables, from another start
    assert rmse(whole._theta, every._theta) < 0.1 * rmse(every._theta, drawn.theta)


@pytest.mark.slow
def test_mixed_kinds_missing_cells_weights_and_levels_outside_the_sample(tmp_path):
    table = simulate_mixed(ROWS, 2, n_categorical=5, n_count=2, n_continuous=2, missing=0.1, random_state=2)
    frame = pl.DataFrame({name: pl.Series(table.frame[name].to_numpy(), nan_to_null=True) for name in table.frame})
    texts = pl.Series(["rare" if row in (700, 60_000) else f"t{row % 3}" for row in range(ROWS)])
    frame = frame.with_columns(text=texts)
    weights = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 2.0], ROWS)
    frame.write_parquet(tmp_path / "x.parquet")
    alpha0 = float(table.alpha.sum())
    whole, read = (fitted(X, 1, weights, alpha0=alpha0) for X in (frame, tmp_path / "x.parquet"))
    assert_same(whole, read)
    assert whole.coding_ == read.coding_
    assert read.report_.passes.united == ["'text' holds 'rare'"]
    assert any("outside the sample" in notice.text for notice in read.report_.warnings)
    every = fitted(frame, None, weights, alpha0=alpha0, passes="all")
    numbers = whole.schema_.has("number")
    rows = np.concatenate([np.arange(whole.schema_.n_rows)[whole.schema_.rows(j)] for j in np.flatnonzero(numbers)])
    order = [int(np.argmin([rmse(every._theta[:, [h]], whole._theta[:, [g]]) for h in range(2)])) for g in range(2)]
    apart = np.abs(whole._theta[rows] - every._theta[rows][:, order])
    assert apart.max() < 0.05  # a fortieth of what tells components apart


@pytest.mark.slow
def test_em_goes_over_all_rows_a_round_per_pass(folder, frame):
    few, pattern = fitted(frame, refine="em"), str(folder / "*.parquet")
    assert_same(few, fitted(pattern, 1, refine="em", memory_limit="2MB"))
    assert_same(few, fitted(folder / "all.csv", 40_000, refine="em", n_jobs=1))
    every = GDLM(2, alpha0=0.4, refine="em", random_state=0).fit(frame)
    one, other = (model.report_.refine.em for model in (few, every))
    assert abs(one.log_likelihood - other.log_likelihood) < 1e-3 * ROWS
    assert "over all rows" in few.report_.reason
    assert few.report_.refine.reason == "asked for; every round is a pass over all rows"


def test_one_component_is_the_mean_of_all_rows(frame):
    model = GDLM(1, passes="few", random_state=0).fit(frame)
    shares = np.concatenate([np.bincount(frame[name].to_numpy()) / ROWS for name in frame.columns])
    assert np.allclose(model._theta[:, 0], shares, atol=1e-12)


def test_refusals(frame, folder, tmp_path, monkeypatch):
    for method in ("gibbs", "integrated"):
        with pytest.raises(InputError, match=rf"refine='{method}' .* does not hold them; expected refine=None"):
            fitted(frame, refine=method)
    with pytest.raises(InputError, match="passes must be 'auto', 'few'"):
        fitted(frame, passes="two")
    with pytest.raises(InputError, match=r"scratch folder .* does not exist; create it"):
        fitted(str(folder / "*.parquet"), scratch=tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"but memory_limit .* is 1 kB"):
        fitted(str(folder / "*.parquet"), memory_limit="1kB")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1000))
    with pytest.raises(InputError, match=r"codes of the table take about .* GB left; name a folder with more room"):
        fitted(folder / "all.csv", memory_limit="2MB")


def test_a_cell_that_cannot_be_coded_is_named_with_its_file(frame, tmp_path):
    bad = frame.with_columns(x1=pl.Series([0.5 + row % 50 for row in range(ROWS)]))
    bad[:40_000].write_csv(tmp_path / "p0.csv")
    late = bad[40_000:].with_columns(x1=pl.Series(["what" if row == 700 else str(row % 50) for row in range(30_000)]))
    late.write_csv(tmp_path / "p1.csv")
    with pytest.raises(InputError, match=r"rows .* of .*p1.csv.*column 'x1', row .* holds 'what'; expected a number"):
        fitted(tmp_path, 1)
    with pytest.warns(TableWarning, match="column 'x1' is constant: .* so it is left out"):
        assert fitted(frame.with_columns(x1=pl.lit(1))).schema_.left_out == ("x1",)


@pytest.mark.slow
def test_dialects_are_found_in_files_that_are_read_in_pieces(frame, tmp_path):
    size = pl.Series("size", np.round(np.random.default_rng(0).normal(5.0, 1.0, ROWS), 1))
    more = frame.with_columns(size, same=pl.lit(7))
    commas = more.with_columns(pl.col("size").cast(pl.String).str.replace(".", ",", literal=True))
    commas.write_csv(tmp_path / "semicolons.csv", separator=";")
    frame.write_csv(tmp_path / "bare.csv", include_header=False)
    with pytest.warns(TableWarning, match="column 'same' is constant"):
        whole = fitted(more)
    with pytest.warns(TableWarning, match="semicolons"):
        pieces = fitted(tmp_path / "semicolons.csv", 1)
    assert_same(whole, pieces)
    assert pieces.schema_.variables[-1].kind == "continuous"
    with pytest.warns(TableWarning, match="looks like a row"):
        assert_same(fitted(frame), fitted(tmp_path / "bare.csv", 1))


@pytest.mark.slow
@pytest.mark.parametrize("texts", [("x", "00", "01"), ("x", "0.0", "1.0"), ("x", "true", "True"), ("1", "07", "7.50")])
def test_levels_do_not_depend_on_how_long_pieces_are(frame, tmp_path, monkeypatch, texts):
    monkeypatch.setattr(engine_rows, "MOST_BLOCKS", 8)
    early, one, other = texts
    late = np.where(frame["x1"].to_numpy() > 0, one, other)
    column = np.where(np.arange(ROWS) < 2_000, early, np.where(np.arange(ROWS) < 20_000, "2", late))
    frame.with_columns(more=pl.Series(column)).write_csv(tmp_path / "x.csv")
    whole = fitted(read_table(tmp_path / "x.csv"))
    for rows in (1, 20_000, None):
        found = fitted(tmp_path / "x.csv", rows)
        assert found.schema_ == whole.schema_
        assert_same(found, whole)


def test_pieces_of_wide_rows_are_shorter():
    assert rows_per_chunk(10, 80_000_000) == rows_per_chunk(10, 80_000_000, 50) == 125_000
    assert rows_per_chunk(10, 80_000_000, 1_000) == 10_000
    assert rows_per_chunk(10, 80_000_000, 20) == 1_000_000
