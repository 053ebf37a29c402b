"""Groups of rows and covariates: means, effects and their errors, beside averages of estimated memberships."""

import json

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, FitWarning, InputError, align_components
from mixmem.cli import main
from mixmem.results.covariates import Design, Score, mean_memberships_given
from mixmem.results.simulate import simulate_gdlm

pytestmark = pytest.mark.usefixtures("quick_halves")


def two_groups(seed, n=800, p=15, k=3):
    """A table of two groups whose Dirichlet means differ, the groups, their means (2, k), and theta."""
    rng = np.random.default_rng(seed)
    theta = np.concatenate([rng.dirichlet(np.full(3, 0.5), size=k).T for _ in range(p)])
    groups = rng.integers(0, 2, n)
    means = np.stack([np.full(k, 1 / k), rng.dirichlet(np.full(k, 3.0))])
    shares = np.stack([rng.dirichlet(0.6 * means[group]) for group in groups])
    components = (rng.random((n, p, 1)) > shares.cumsum(axis=1)[:, None, :]).sum(axis=2).clip(max=k - 1)
    levels = theta.reshape(p, 3, k).cumsum(axis=1)
    cells = np.stack([levels[j][:, components[:, j]].T for j in range(p)], axis=1)
    codes = (rng.random((n, p, 1)) > cells).sum(axis=2).clip(max=2)
    return codes, groups, means, theta


@pytest.fixture(scope="module")
def fitted():
    codes, groups, means, theta = two_groups(0)
    frame = pd.DataFrame(codes, columns=[f"q{j}" for j in range(codes.shape[1])])
    model = GDLM(3, alpha0=0.6, refine=None, random_state=0).fit(frame)
    frame["group"] = np.where(groups == 1, "new", "old")
    return model, frame, means[:, align_components(model._theta, theta)]


def test_the_slope_is_that_of_the_likelihood(fitted):
    model, frame, _ = fitted
    rng = np.random.default_rng(0)
    design = Design(np.column_stack([np.ones(len(frame)), rng.normal(size=len(frame))]), rng.uniform(1, 2, len(frame)))
    score = Score(model._encoded(frame), model._noisy, design)
    at = rng.normal(size=4)
    slope = score.loss(at)[1]
    for j in range(4):
        step = np.eye(4)[j] * 1e-5
        np.testing.assert_allclose((score.loss(at + step)[0] - score.loss(at - step)[0]) / 2e-5, slope[j], rtol=1e-5)


def test_groups_are_found_where_they_are(fitted):
    model, frame, truth = fitted
    found = model.compare(frame, by="group")
    means = found.means.pivot(index="group", columns="component", values="mean").loc[["old", "new"]].to_numpy()
    errors = found.means.pivot(index="group", columns="component", values="standard_error").to_numpy()
    np.testing.assert_allclose(means.sum(axis=1), 1.0)
    assert np.abs(means - truth).max() < 4 * errors.max()
    naive = found.means.pivot(index="group", columns="component", values="naive").loc[["old", "new"]].to_numpy()
    assert np.abs(np.diff(naive, axis=0)).sum() < np.abs(np.diff(means, axis=0)).sum()  # drawn towards each other
    assert (found.degrees, found.left_out, found.notes) == (2, 0, ())
    assert found.p_value < 1e-6
    assert found.summary.startswith("the groups by group differ (p < 0.001), most surely in component")
    assert ((found.means["lower"] < found.means["mean"]) & (found.means["mean"] < found.means["upper"])).all()
    same = model.compare(frame.drop(columns="group"), by=frame["group"].to_numpy())
    pd.testing.assert_frame_equal(found.means, same.means)


def test_groups_of_chance_do_not_differ(fitted):
    model, frame, _ = fitted
    values = [
        model.compare(frame, by=np.random.default_rng(seed).integers(0, 3, len(frame))).p_value for seed in range(8)
    ]
    assert min(values) > 0.001
    assert max(values) > 0.2


def test_a_small_group_at_the_edge_is_not_sure(fitted):
    """Eight rows of which none shows a component may have some of it."""
    model, frame, _ = fitted
    memberships = model.transform(frame.drop(columns="group"))
    small = np.argsort(memberships[:, 2], kind="stable")[:8]
    found = model.compare(frame, by=np.where(np.isin(np.arange(len(frame)), small), "few", "most"))
    means = found.means.set_index(["group", "component"]).loc[("few", 3)]
    assert means["mean"] < 0.01
    assert means["upper"] > 0.05
    assert (found.means["standard_error"] > 0.0).all()


def test_what_speaks_against_a_comparison_is_told(fitted):
    model, frame, _ = fitted
    (note,) = model.compare(frame, by="q0").notes
    assert note.startswith("the fit had 'q0' among its columns, so groups by it differ by what the components")
    noise = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (300, 6)), columns=list("abcdef"))
    with pytest.warns(FitWarning, match="does not show more than one component"):
        doubtful = GDLM(2, alpha0=0.5, refine=None, random_state=0).fit(noise)
    notes = doubtful.compare(noise, by=np.arange(300) % 2).notes
    assert notes[0].startswith("the fit is to be doubted: the table does not show more than one component")


def test_weights_clusters_and_strata(fitted):
    model, frame, _ = fitted
    twice = pd.concat([frame, frame], ignore_index=True)
    once = model.compare(frame, by="group")
    alike = model.compare(twice.assign(who=np.tile(np.arange(len(frame)), 2)), by="group", clusters="who")
    np.testing.assert_allclose(alike.means["standard_error"], once.means["standard_error"], rtol=1e-6)
    apart = model.compare(twice, by="group")
    np.testing.assert_allclose(apart.means["standard_error"], once.means["standard_error"] / np.sqrt(2.0), rtol=1e-2)
    weighed = model.compare(frame.assign(w=3.5), by="group", sample_weight="w")
    np.testing.assert_allclose(weighed.means["mean"], once.means["mean"], rtol=1e-6)
    np.testing.assert_allclose(weighed.means["standard_error"], once.means["standard_error"], rtol=1e-4)
    layers = model.compare(frame, by="group", strata=frame["group"])
    np.testing.assert_allclose(layers.means["mean"], once.means["mean"], rtol=1e-6)


def test_covariates_have_effects_and_others_have_none(fitted):
    model, frame, truth = fitted
    rng = np.random.default_rng(1)
    frame = frame.assign(age=rng.normal(50, 10, len(frame)))
    frame.loc[:9, "age"] = np.nan
    found = model.regress(frame, on=["group", "age"])
    assert (found.rows, found.left_out, found.converged) == (len(frame) - 10, 10, True)
    effects = found.effects.set_index(["covariate", "component"])
    of_group = effects.loc["group"]
    assert of_group["change"].unique().tolist() == ["old (not new)"]
    assert (np.abs(of_group["effect"] - (truth[0] - truth[1])) < 4 * of_group["standard_error"]).all()
    assert np.abs(of_group["effect"]).sum() > np.abs(of_group["naive"]).sum()
    assert (effects.loc["age"]["p_value"] > 0.001).all()
    np.testing.assert_allclose(effects.groupby("covariate")["effect"].sum(), 0.0, atol=1e-9)


def test_coefficients_that_are_infinite_end():
    drawn = simulate_gdlm(300, 9, 2, alpha=0.05, random_state=0)
    groups = (drawn.memberships[:, 0] > 0.5).astype(float)
    found = mean_memberships_given(
        drawn.encoded, drawn.theta, Design(np.column_stack([groups, 1 - groups]), np.ones(300))
    )
    means = found.at(np.eye(2))
    assert means[0, 0] > 0.9
    assert means[1, 0] < 0.1
    assert np.isfinite(found.covariance).all()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"by": "gruop"}, "by: there is no column 'gruop'; did you mean 'group'"),
        ({"by": [1, 2]}, "by has 2 values; expected one for each of the 800 rows"),
        ({"by": "one"}, r"'one' has 1 group\(s\); expected 2 to 40"),
        ({"by": "number"}, "'number' holds 800 distinct numbers; expected groups"),
        ({"by": "group", "sample_weight": "number"}, "expected finite weights of at least 0"),
    ],
)
def test_refusals(fitted, how, message):
    model, frame, _ = fitted
    with pytest.raises(InputError, match=message):
        model.compare(frame.assign(one=1, number=np.arange(800) - 3.5), **how)


def test_the_command(fitted, tmp_path, capsys):
    model, frame, _ = fitted
    (tmp_path / "fit").mkdir()
    model.save(tmp_path / "fit" / "model.mixmem")
    frame.assign(w=np.linspace(0.5, 2, len(frame))).to_csv(tmp_path / "d.csv", index=False)
    assert main(["compare", str(tmp_path / "fit"), str(tmp_path / "d.csv"), "--by", "group", "--weight", "w"]) == 0
    out = capsys.readouterr().out
    assert "The groups by group differ (p < 0.001)" in out
    folder = tmp_path / "fit" / "compare-group"
    assert sorted(path.name for path in folder.iterdir()) == [
        "compare.json",
        "compare.png",
        "differences.csv",
        "means.csv",
    ]
    assert json.loads((folder / "compare.json").read_text())["test"]["degrees"] == 2
    assert main(["compare", str(tmp_path / "fit"), str(tmp_path / "d.csv"), "--by", "gr"]) == 2
    assert "--by: there is no column 'gr'" in capsys.readouterr().err


def test_the_command_takes_ids_and_model_files(fitted, tmp_path, capsys):
    model, frame, _ = fitted
    model.save(tmp_path / "model.mixmem")
    frame.assign(who=[f"p{i}" for i in range(len(frame))]).to_csv(tmp_path / "d.csv", index=False)
    arguments = ["compare", str(tmp_path / "model.mixmem"), str(tmp_path / "d.csv"), "--by", "group", "--id", "who"]
    assert main(arguments) == 0, capsys.readouterr().err
    assert (tmp_path / "compare-group" / "means.csv").is_file()
    with pytest.raises(InputError, match="on is the name of a column, or a list of names"):
        model.regress(frame, np.ones(len(frame)))
