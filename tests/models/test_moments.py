"""Sums over rows: counted in parts, merged in any order, fitted in rounds, added to later, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import safetensors
from safetensors.numpy import save_file

from mixmem import GDLM, InputError, Moments, MomentsPlan, rmse, simulate_gdlm, simulate_mixed
from mixmem.data import chunks
from mixmem.engine import rows as engine_rows
from mixmem.models import _from_moments
from mixmem.models.moments_plan import load_sample, save_sample
from mixmem.moments.few_passes import no_rows
from mixmem.moments.sums import first_moments
from mixmem.results.simulate import drawn_rows

ROWS = 12_000
CUTS = (0, 1024, 4096, 9728, ROWS)
SETTINGS = {"alpha0": 0.4, "refine": None, "random_state": 0}


@pytest.fixture(scope="module", autouse=True)
def _short_stretches():
    """Stretches of 512 rows and samples of 4,096: what is tested does not depend on their size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_rows, "MOST_BLOCKS", 1)
        patch.setattr(chunks, "SAMPLE_BLOCKS", 8)
        patch.setattr(_from_moments, "DRAWN_ROWS", 16_384)
        yield


@pytest.fixture(scope="module")
def drawn():
    return simulate_gdlm(ROWS, 9, 2, n_levels=3, alpha=0.2, random_state=1)


@pytest.fixture(scope="module")
def frame(drawn):
    return drawn.frame


def cut(table, cuts=CUTS):
    return {name: table[a:b] for name, a, b in zip("abcdef", cuts, cuts[1:], strict=False)}


def counted(plan, parts, weights=None):
    return {
        name: Moments.count(part, plan, name, sample_weight=(weights or {}).get(name)) for name, part in parts.items()
    }


def added(sums, order):
    total = sums[order[0]]
    for name in order[1:]:
        total = total + sums[name]
    return total


def in_rounds(model, parts, *, keep_sample, weights=None, most=8, plan=None):
    """Return the model at the end, the sums of the last round, and the stages."""
    joined = None if weights is None else np.concatenate(list(weights.values()))
    given = {"names": list(parts), "sample_weight": joined, "keep_sample": keep_sample}
    plan, sample = model.plan_moments(*parts.values(), **given) if plan is None else (plan, None)
    stages = []
    while plan is not None and len(stages) < most:
        stages.append(plan.stage)
        total = added(counted(plan, parts, weights), list(parts))
        found = GDLM.from_moments(total, sample)
        plan = found.next_plan_
    assert plan is None
    return found, total, stages


def test_four_parts_in_any_order_have_the_bits_of_a_fit_in_few_passes(frame, tmp_path):
    whole = GDLM(2, passes="few", **SETTINGS).fit(frame)
    parts = cut(frame)
    plan, sample = GDLM(2, **SETTINGS).plan_moments(*parts.values(), names=list(parts))
    assert [part.first_stretch for part in plan.parts] == [0, 2, 8, 19]
    save_sample(tmp_path / "sample", sample)
    for turn in range(len(whole.report_.start.correction.moved)):
        plan.save(tmp_path / "plan")
        sums = counted(MomentsPlan.load(tmp_path / "plan"), parts)
        for name, each in sums.items():
            each.save(tmp_path / name)
        files = {name: Moments.load(tmp_path / name) for name in sums}
        fits = []
        for number, order in enumerate(("abcd", "dbac", "cadb")):
            added(files, order).save(tmp_path / f"merged-{number}")
            fits.append(
                GDLM.from_moments(Moments.load(tmp_path / f"merged-{number}"), load_sample(tmp_path / "sample"))
            )
        contents = [(tmp_path / f"merged-{number}").read_bytes() for number in range(3)]
        assert contents[0] == contents[1] == contents[2]
        plan = fits[0].next_plan_
        assert (plan is None) == (turn == len(whole.report_.start.correction.moved) - 1)
    for found in fits:
        assert np.array_equal(found._theta, whole._theta)
        assert np.array_equal(found.alpha_, whole.alpha_)
        assert found.report_.start.correction == whole.report_.start.correction
        assert found.report_.rows == ROWS
        assert found.report_.passes.parts == ("a", "b", "c", "d")
    assert np.array_equal(fits[0].transform(frame[:50]), whole.transform(frame[:50]))


def test_numbers_missing_cells_and_weights_have_the_same_bits_too():
    drawn = simulate_mixed(
        9_000, 2, n_categorical=4, n_count=2, n_continuous=2, missing=0.1, alpha=0.3, random_state=3
    ).frame
    weights = np.random.default_rng(0).integers(1, 4, len(drawn)).astype(float)
    whole = GDLM(2, passes="few", **SETTINGS).fit(drawn, sample_weight=weights)
    cuts = (0, 2048, 5120, 9_000)
    parts, own = cut(drawn, cuts), cut(weights, cuts)
    found, _, stages = in_rounds(GDLM(2, **SETTINGS), parts, keep_sample=True, weights=own)
    assert stages[-1] == "numbers"
    assert np.array_equal(found._theta, whole._theta)
    assert np.array_equal(found.alpha_, whole.alpha_)


@pytest.mark.slow
def test_rounds_without_a_sample_end_where_sweeps_over_all_rows_do(drawn, frame):
    every = GDLM(2, passes="all", **SETTINGS).fit(frame)
    found, total, stages = in_rounds(GDLM(2, **SETTINGS), cut(frame, (0, 5000, ROWS)), keep_sample=False)
    assert stages[0] == "start"
    assert len(stages) <= 4
    assert rmse(found._theta, every._theta) < 0.1 * rmse(every._theta, drawn.theta)
    one = Moments.count(frame[:5000], total.plan, "a")
    assert [len(sums.nodes) for sums in one.sums.asked.values()] == [1]  # a part gives one sum, not those of stretches
    assert found.report_.passes.sampled == 0


def test_rounds_that_do_not_settle_end_with_a_warning(frame):
    parts = cut(frame[:3000], (0, 1000, 3000))
    plan, _ = GDLM(2, **SETTINGS).plan_moments(*parts.values(), names=list(parts), keep_sample=False, start="rows")
    far = replace(plan, moved=(0.1,) * 7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_from_moments, "ENOUGH", 0.0)
        last = GDLM.from_moments(added(counted(far, parts), "ab"))
    assert last.next_plan_ is None
    assert "8 rounds did not settle" in last.report_.reason
    assert [notice.code for notice in last.report_.warnings][:1] == ["not-converged"]
    once = GDLM.from_moments(added(counted(replace(plan, moved=(1e-9,)), parts), "ab"))
    whole = GDLM.from_moments(added(counted(plan, parts), "ab"))
    start = plan.theta[:, np.argsort(-plan.alpha)]
    assert np.allclose(once._theta - start, 0.5 * (whole._theta - start))  # too far: half of it is taken


@pytest.mark.slow
def test_variables_beside_the_anchors_take_a_round_of_their_own():
    drawn = simulate_gdlm(4_000, 60, 2, n_levels=3, alpha=0.2, random_state=2)
    anchors = [[f"x{j}" for j in range(m, 12, 3)] for m in range(3)]
    settings = SETTINGS | {"anchors": anchors}
    every = GDLM(2, passes="all", **settings).fit(drawn.frame)
    found, _, stages = in_rounds(GDLM(2, **settings), cut(drawn.frame, (0, 1500, 4000)), keep_sample=False)
    assert stages[:3] == ["start", "extend", "pass"]
    assert rmse(found._theta, every._theta) < 0.1 * rmse(every._theta, drawn.theta)


def test_a_part_with_more_levels_joins_a_plan(frame):
    more = frame.copy()
    more.loc[more.index[6000:6400], "x0"] = 7
    parts = {"a": more[:6000], "b": more[6000:]}
    model = GDLM(2, **SETTINGS)
    plan, _ = model.plan_moments(parts["a"], names=["a"], keep_sample=False)
    with pytest.raises(InputError, match=r"part 'b': 'x0' holds '7', which the plan does not know.*--plan"):
        Moments.count(parts["b"], plan.with_parts([("b", 6000)]), "b")
    plan = model.extended_plan(plan, parts["b"], names=["b"])
    assert plan.coding.columns[0].levels == ("0", "1", "2", "7")
    total = added(counted(plan, parts), "ba")
    assert total.first.of(0)[3] == 400.0
    assert GDLM.from_moments(total).next_plan_.stage == "pass"


@pytest.mark.slow
def test_a_plan_that_begins_at_rows_of_one_part_ends_at_the_same_theta(drawn, frame):
    more = frame.copy()
    more.loc[more.index[9000:9500], "x0"] = 7
    parts, model = {"a": more[:2000], "b": more[2000:]}, GDLM(2, **SETTINGS)
    plan, sample = model.plan_moments(parts["a"], names=["a"], keep_sample=False, start="rows")
    plan = model.extended_plan(plan, parts["b"], names=["b"])
    assert sample is None
    found, _, stages = in_rounds(model, parts, keep_sample=False, plan=plan)
    assert set(stages) == {"pass"}
    every = GDLM(2, passes="all", **SETTINGS).fit(more)
    assert rmse(found._theta, every._theta) < 0.1 * rmse(GDLM(2, **SETTINGS).fit(frame)._theta, drawn.theta)
    with pytest.raises(InputError, match="start must be 'triples' or 'rows'; got 'x'"):
        model.plan_moments(frame, start="x")


@pytest.mark.slow
def test_rows_added_later_move_the_model_to_where_all_rows_have_it(drawn, frame):
    found, total, _ = in_rounds(GDLM(2, **SETTINGS), cut(frame[:9000], (0, 5000, 9000)), keep_sample=False)
    later = Moments.count(frame[9000:], total.plan, "later", after=total)
    again = GDLM.from_moments(total + later)
    every = GDLM(2, passes="all", **SETTINGS).fit(frame)
    assert again.report_.rows == ROWS
    assert rmse(again._theta, every._theta) < 0.15 * rmse(found._theta, every._theta)
    assert again.next_plan_ is None
    assert again.report_.start.correction.left < 0.1 * rmse(every._theta, drawn.theta)


@pytest.mark.slow
def test_partial_fit_adds_rows_without_those_of_before(frame, tmp_path):
    model = GDLM(2, **SETTINGS).partial_fit(frame[:8000])
    few = GDLM(2, passes="few", **SETTINGS).fit(frame[:8000])
    assert np.array_equal(model._theta, few._theta)
    model.save(tmp_path / "model")
    again = GDLM.load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(frame[8000:10_000]).partial_fit(frame[10_000:])
    assert np.array_equal(model._theta, again._theta)
    assert model.report_.rows == ROWS
    every = GDLM(2, passes="all", **SETTINGS).fit(frame)
    assert rmse(model._theta, every._theta) < 0.2 * rmse(few._theta, every._theta)
    assert np.array_equal(few.partial_fit(frame[8000:10_000]).partial_fit(frame[10_000:])._theta, model._theta)
    with pytest.raises(InputError, match=r"has no rows; leave it out"):
        model.partial_fit(frame[:0])
    every.save(tmp_path / "model")
    with pytest.raises(InputError, match=r"fitted by fit, which keeps no sums.*begin with partial_fit"):
        GDLM.load(tmp_path / "model").partial_fit(frame)


def test_levels_and_missing_cells_that_come_later_are_added():
    table = simulate_mixed(9_000, 2, n_categorical=6, n_count=2, n_continuous=0, alpha=0.3, random_state=4).frame
    table["x0"] = table["x0"].astype(object)
    late = np.random.default_rng(0).random(9_000) < 0.2
    late[:6_000] = False
    table.loc[late & (table["x0"] == 1), "x0"] = 7
    table.loc[late & (table["x1"] == 1), "x1"] = None
    model = GDLM(2, **SETTINGS).partial_fit(table[:6_000])
    assert not model.coding_.missing[1]
    model.partial_fit(table[6_000:])
    every = GDLM(2, passes="all", **SETTINGS).fit(table)
    assert model.schema_ == every.schema_
    assert model.coding_.missing.tolist() == every.coding_.missing.tolist()
    levels = np.flatnonzero(every.theta_["statistic"] == "probability")
    assert rmse(model._theta[levels], every._theta[levels]) < 0.01


def test_sums_that_do_not_belong_together_are_refused(frame):
    parts = cut(frame, (0, 5000, ROWS))
    model = GDLM(2, **SETTINGS)
    plan, sample = model.plan_moments(*parts.values(), names=list(parts))
    sums = counted(plan, parts)
    total = added(sums, "ab")
    with pytest.raises(InputError, match=r"part 'a' is in both sums, so its rows would count twice"):
        total + sums["a"]
    with pytest.raises(InputError, match="the sums lack part 'b' of the plan"):
        GDLM.from_moments(sums["a"], sample)
    with pytest.raises(InputError, match=r"a sample of rows, which stays in a file of its own; give it too"):
        GDLM.from_moments(total)
    with pytest.raises(InputError, match="not the one that the plan was made with"):
        GDLM.from_moments(total, sample.take(slice(100)))
    twice = Moments.count(parts["b"], plan, "c", after=total)
    with pytest.raises(InputError, match=r"parts 'b' and 'c' have the same sums, so they are the same rows"):
        total + twice
    one, two = (Moments.count(frame[a : a + 700], plan, name, after=total) for name, a in (("u", 0), ("v", 900)))
    with pytest.raises(InputError, match=r"parts 'u' and 'v' were both counted after the same sums.*--after"):
        total + one + two
    other, _ = GDLM(2, **SETTINGS | {"random_state": 1}).plan_moments(*parts.values(), names=list(parts))
    with pytest.raises(InputError, match="of different plans: they differ in 'random_state'"):
        sums["a"] + Moments.count(parts["b"], other, "b")
    with pytest.raises(InputError, match="one is of round 1, the other of round 2"):
        sums["a"] + Moments.count(parts["b"], replace(plan, round=2), "b")
    renamed = {name: part.rename(columns={"x0": "y0"}) for name, part in parts.items()}
    strange, _ = model.plan_moments(*renamed.values(), names=list(parts))
    with pytest.raises(InputError, match="of two codings: variable 'x0' stands where the other has 'y0'"):
        sums["a"] + Moments.count(renamed["b"], strange, "b")


def test_rows_that_do_not_go_with_the_plan_are_refused(frame):
    parts = cut(frame, (0, 5000, ROWS))
    model = GDLM(2, **SETTINGS)
    plan, _ = model.plan_moments(*parts.values(), names=list(parts))
    with pytest.raises(InputError, match=r"the plan has no part 'z'.*--after"):
        Moments.count(parts["a"], plan, "z")
    with pytest.raises(InputError, match=r"part 'a' has 4,999 rows, and 5,000 in the plan"):
        Moments.count(parts["a"][1:], plan, "a")
    with pytest.raises(InputError, match="lack 1 of the model's 9 columns: 'x3'"):
        Moments.count(parts["a"].drop(columns="x3"), plan, "a")
    with pytest.raises(InputError, match=r"comes with weights of rows, and the plan was made without"):
        Moments.count(parts["a"], plan, "a", sample_weight=np.ones(5000))
    with pytest.raises(InputError, match="part 'a' has no rows"):
        Moments.count(parts["a"][:0], plan, "a")
    with pytest.raises(InputError, match="part 'c' has no rows; leave it out"):
        model.plan_moments(*parts.values(), frame[:0], names=["a", "b", "c"])
    with pytest.raises(InputError, match="two parts are called 'a'"):
        model.plan_moments(*parts.values(), names=["a", "a"])
    with pytest.raises(InputError, match=r"two components or more"):
        GDLM(1, random_state=0).plan_moments(frame)
    with pytest.raises(InputError, match=r"parts can join a plan before its first round"):
        model.extended_plan(plan, parts["a"], names=["c"])


def test_small_counts_are_refused_where_they_are_to_be(frame):
    rare = frame.copy()
    rare.loc[rare.index[:3], "x4"] = 8
    plan, _ = GDLM(2, **SETTINGS).plan_moments(rare, names=["a"])
    with pytest.raises(InputError, match=r"part 'a': 3 rows hold 8 in 'x4', fewer than the 5 asked for"):
        Moments.count(rare, plan, "a", least=5)
    plan, _ = GDLM(2, **SETTINGS).plan_moments(frame, names=["a"], keep_sample=False)
    with pytest.raises(InputError, match=r"triples of the anchors are held by fewer than 90 rows.*--sample"):
        Moments.count(frame, plan, "a", least=90)
    assert Moments.count(frame, plan, "a", least=2).n_rows == ROWS


def test_small_counts_are_those_of_rows_whatever_they_weigh(frame):
    rare = frame.copy()
    rare.loc[rare.index[:3], "x4"] = 8
    weights = np.full(ROWS, 100.0)
    options = {"names": ["a"], "sample_weight": weights, "keep_sample": False}
    plan, _ = GDLM(2, **SETTINGS).plan_moments(rare, start="rows", **options)
    with pytest.raises(InputError, match=r"part 'a': 3 rows hold 8 in 'x4', fewer than the 5 asked for"):
        Moments.count(rare, plan, "a", sample_weight=weights, least=5)
    assert Moments.count(rare, plan, "a", sample_weight=weights / 1000.0, least=2).n_rows == ROWS
    plan, _ = GDLM(2, **SETTINGS).plan_moments(frame, **options)
    with pytest.raises(InputError, match=r"triples of the anchors are held by fewer than 90 rows"):
        Moments.count(frame, plan, "a", sample_weight=weights, least=90)


@pytest.mark.parametrize("damage", ["nan", "bit", "short", "missing"])
def test_damaged_sums_are_refused(frame, tmp_path, damage):
    plan, _ = GDLM(2, **SETTINGS).plan_moments(frame, names=["a"], keep_sample=False)
    Moments.count(frame, plan, "a").save(tmp_path / "m")
    assert Moments.load(tmp_path / "m").n_rows == ROWS
    with safetensors.safe_open(tmp_path / "m", framework="numpy") as file:
        arrays, told = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    name = next(name for name in sorted(arrays) if name.startswith("sums.cells") and arrays[name].ndim)
    array = arrays.pop(name)
    if damage == "nan":
        arrays[name] = np.where(np.arange(len(array)) == 1, np.nan, array)
    elif damage == "bit":
        arrays[name] = np.nextafter(array, np.inf)
    elif damage == "short":
        arrays[name] = array[:-1]
    save_file(arrays, tmp_path / "m", metadata=told)
    with pytest.raises(InputError, match=r"m is damaged: its sums are not those that were written; copy it or count"):
        Moments.load(tmp_path / "m")


def test_drawn_rows_are_those_of_the_model():
    truth = simulate_mixed(3_000, 2, n_categorical=2, n_count=1, n_continuous=1, missing=0.2, random_state=0)
    first = first_moments(truth.encoded)
    model = GDLM(2, alpha0=0.6, refine=None, random_state=0).fit(truth.encoded)
    rows = drawn_rows(first, model._theta, model.alpha_, 50_000, np.random.default_rng(0))
    own = first_moments(rows)
    assert np.abs(own.observed - first.observed).max() < 0.01
    numbers = np.flatnonzero(truth.coding.schema.has("number"))
    for j in numbers:
        spread = np.sqrt(np.average((truth.coding.columns[j].values - first.mean(j)) ** 2, weights=first.of(j)))
        assert abs(own.mean(j) - first.mean(j)) < 0.1 * spread
    assert no_rows(truth.coding).n_rows == 0
    assert isinstance(model.sample(2, random_state=0), pd.DataFrame)
