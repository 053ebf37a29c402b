"""Pictures as objects: they hold what they draw, draw into axes of the caller's, and colour components alike."""

import numpy as np
import pandas as pd
import pytest

from mixmem import GDLM, simulate_gdlm
from mixmem.plots import ChooseKPlot, ComparePlot, ConvergencePlot, ProfilePlot, StructurePlot, colour, group_colour
from mixmem.plots.style import COLOURS, blank

pytestmark = pytest.mark.usefixtures("quick_halves")


@pytest.fixture(scope="module")
def drawn():
    return simulate_gdlm(400, 12, 3, n_levels=3, random_state=0).frame


@pytest.fixture(scope="module")
def model(drawn):
    return GDLM(3, alpha0=0.3, refine=None, random_state=0).fit(drawn)


def rows(ks=(1, 2, 3)):
    keys = ("held_out", "held_out_se", "stability", "stability_worst", "singular_value", "noise")
    return [{"k": k, "why": "", **dict.fromkeys(keys, 0.1 * k)} for k in ks]


def test_every_plot_draws_alone_and_into_given_axes(drawn, model):
    means = pd.DataFrame(
        [(group, h, 0.3, 0.2, 0.4, 0.33) for group in "ab" for h in (1, 2, 3)],
        columns=["group", "component", "mean", "lower", "upper", "naive"],
    )
    plots = [
        StructurePlot.from_model(model), ProfilePlot.from_model(model), ConvergencePlot.from_model(model),
        ChooseKPlot(rows(), 2), ComparePlot(means, "town"),
    ]  # fmt: skip
    for plot in plots:
        assert plot.plot() is plot
        own = plot.figure_
        own.draw_without_rendering()
        figure = blank(12.0, 9.0)
        left, right = figure.subplots(1, 2)
        plot.plot(left)
        assert plot.figure_ is figure is not own
        assert not right.lines
        figure.draw_without_rendering()
        assert len(figure.axes) > 1


def test_rows_are_sorted_within_groups(drawn, model):
    plot = StructurePlot.from_model(model, drawn.assign(town=["b", "a"] * 200), by="town")
    towns = np.array(["b", "a"] * 200)[plot.order]
    assert towns.tolist() == ["a"] * 200 + ["b"] * 200
    leading = model.memberships_[plot.order].argmax(axis=1)
    assert (np.diff(leading[:200]) >= 0).all()
    assert [text.get_text() for text in plot.plot().ax_.get_xticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="names a column"):
        StructurePlot.from_model(model, by="town")
    with pytest.raises(ValueError, match="expected one each"):
        StructurePlot(np.ones((3, 1)), groups=["a"])


def test_profiles_show_theta_and_its_intervals(model):
    plot = ProfilePlot.from_model(model, ["x3", "x1"]).plot()
    assert [axes.get_title(loc="left") for axes in plot.axes_] == ["x3", "x1"]
    own = model.theta_[model.theta_["variable"] == "x3"]
    widths = [bar.get_width() for bar in plot.axes_[0].patches]
    np.testing.assert_allclose(widths, own[["component_1", "component_2", "component_3"]].to_numpy().T.ravel())
    best = ProfilePlot.from_model(model, intervals=False).variables
    assert best == model.spread_of_variables().index[:9].tolist()
    with pytest.raises(ValueError, match="no variable 'nothing'"):
        ProfilePlot(model.theta_, variables=["nothing"])


def test_profiles_of_numbers():
    theta = pd.DataFrame(
        {"variable": "age", "level": "", "statistic": ["mean", "variance"], "component_1": [30.0, 4.0],
         "component_2": [50.0, 9.0]},
    )  # fmt: skip
    axes = ProfilePlot(theta).plot().axes_[0]
    assert sorted(float(line.get_xdata()[0]) for line in axes.lines) == [30.0, 50.0]


def test_convergence_of_a_climb_and_of_sweeps(model):
    assert ConvergencePlot.from_model(model).values == model.report_.start.sweeps.changes
    table = simulate_gdlm(50, 2, 1, random_state=0).frame
    with pytest.raises(ValueError, match="kept nothing"):
        ConvergencePlot.from_model(GDLM(1, refine=None, random_state=0).fit(table))


def test_colours_stay_and_differ():
    assert len(set(COLOURS)) == len(COLOURS) == 24
    assert colour(24) == colour(0)
    assert colour(0) == "#0072B2"
    assert not {group_colour(g) for g in range(7)} & set(COLOURS)
