"""Figures of experiments and diagnostics, each made by a function of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.plots.structure import draw_bars, sorted_rows, spread
from mixmem.plots.style import INK, SOFT, blank, colour, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def comparison(
    true_theta: np.ndarray,
    theta: np.ndarray,
    true_memberships: np.ndarray,
    memberships: np.ndarray,
    names: Sequence[str],
) -> Figure:
    """Estimate against truth, components matched: theta (rows, k) on the left, memberships (n, k) on the right."""
    figure = blank(13.0, 6.0)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.25))
    _scatter(figure.add_subplot(grid[:, 0]), true_theta, theta, names)
    above, below = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    order = spread(sorted_rows(true_memberships))
    draw_bars(above, true_memberships[order], "Memberships of rows: truth")
    draw_bars(below, memberships[order], "Memberships of the same rows: estimate")
    below.set_xlabel(f"{len(order)} of {len(memberships):,} rows, sorted by true leading component", color=INK)
    return figure


def _scatter(axes: Any, truth: np.ndarray, estimate: np.ndarray, names: Sequence[str]) -> None:
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1, zorder=1)
    for h, name in enumerate(names):
        axes.scatter(truth[:, h], estimate[:, h], s=30, color=colour(h), alpha=0.75, linewidth=0, label=name, zorder=2)
    error = float(np.sqrt(((truth - estimate) ** 2).mean()))
    axes.set_title(f"Answer probabilities of the components (RMSE {error:.3f})", loc="left", color=INK, fontsize=12)
    axes.set_xlabel("truth", color=INK)
    axes.set_ylabel("estimate", color=INK)
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_aspect("equal")
    axes.legend(title="profile", loc="upper left", frameon=False, fontsize=11, alignment="left")
    plain(axes)


# --- The paper's experiments

EMPHASIS = "mixmem"
"""What the name of a line drawn over all others, in black, begins with."""
MARKERS = "osD^vPX*"


def error_figure(rows: Sequence[Mapping[str, Any]], methods: Sequence[str], title: str) -> Figure:
    """Errors in the paper's layout: a row of panels for each delta, a column for each n, k along, RMSE up.

    ``rows`` hold n, delta, k, method, rmse and published; one line a method, the published values as open marks.
    """
    deltas, sizes, ks = (sorted({row[key] for row in rows}) for key in ("delta", "n", "k"))
    drawn = [method for method in methods if any(row["method"] == method for row in rows)]
    figure = blank(1.2 + 2.9 * max(2, len(sizes)), 1.5 + 2.35 * len(deltas))
    panels = figure.subplots(len(deltas), len(sizes), sharex=True, sharey=True, squeeze=False)
    style = {method: _style(method, methods) for method in drawn}
    for i, delta in enumerate(deltas):
        for j, n in enumerate(sizes):
            here = [row for row in rows if row["delta"] == delta and row["n"] == n]
            for method in drawn:
                of_method = {row["k"]: row for row in here if row["method"] == method}
                aside = 0.025 * (methods.index(method) - (len(methods) - 1) / 2)  # equal errors stay visible
                _line(panels[i, j], ks, of_method, "published", {**style[method], **PUBLISHED}, aside)
                _line(panels[i, j], ks, of_method, "rmse", style[method], aside)
            _error_axes(panels[i, j], ks)
            if i == 0:
                panels[i, j].set_title(f"n = {n:,}", color=INK, fontsize=12)
        panels[i, 0].set_ylabel(f"contamination {delta:.0%}\nRMSE of theta", color=INK, fontsize=11)
    for axes in panels[-1]:
        axes.set_xlabel("components k", color=INK, fontsize=11)
    _legend(figure, [(method, style[method]) for method in drawn], title)
    return figure


PUBLISHED: dict[str, Any] = {
    "linestyle": "none", "markersize": 7, "markerfacecolor": "none", "markeredgewidth": 1.3, "alpha": 0.75, "zorder": 5,
}  # fmt: skip
FAINT: dict[str, Any] = {"alpha": 0.45, "linewidth": 1.2, "linestyle": (0, (4, 2)), "markersize": 0, "zorder": 1}


def _style(method: str, methods: Sequence[str]) -> dict[str, Any]:
    place = list(methods).index(method)
    first = method.startswith(EMPHASIS)
    return {
        "color": INK if first else colour(place),
        "linewidth": 2.6 if first else 1.6,
        "linestyle": "-" if place < len(methods) - 1 or not first else (0, (4, 2)),
        "marker": MARKERS[place % len(MARKERS)],
        "markersize": 6 if first else 4.5,
        "markeredgewidth": 0,
        "zorder": 4 if first else 3 - 0.1 * place,  # the paper's own method above those it is compared with
    }


def _line(
    axes: Any,
    ks: Sequence[int],
    rows: Mapping[int, Mapping[str, Any]],
    key: str,
    style: dict[str, Any],
    aside: float = 0.0,
) -> None:
    points = [(place + aside, rows[k][key]) for place, k in enumerate(ks) if k in rows and rows[k][key] is not None]
    if points:
        axes.plot(*zip(*points, strict=True), **style)


def _error_axes(axes: Any, ks: Sequence[int]) -> None:
    # Evenly spaced as in the paper's figure; errors span more than a decade, so ratios are what can be compared.
    axes.set_xticks(range(len(ks)), [str(k) for k in ks])
    axes.set_xlim(-0.25, len(ks) - 0.75)
    _log_scale(axes, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))


def _log_scale(axes: Any, ticks: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
    axes.set_axisbelow(True)
    plain(axes)


def _legend(figure: Figure, lines: Sequence[tuple[str, dict[str, Any]]], title: str) -> None:
    from matplotlib.lines import Line2D

    plain: dict[str, Any] = {"color": SOFT, "linewidth": 1.6}
    handles = [Line2D([], [], label=name, **style) for name, style in lines]
    marked = {**plain, "marker": "o", **PUBLISHED}
    handles += [Line2D([], [], label="this run", **plain), Line2D([], [], label="published in the paper", **marked)]
    columns = min(len(handles), int(figure.get_figwidth() / 2.1))
    legend = figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, frameon=False, fontsize=11,
        title=title, title_fontsize=12, handlelength=2.2, columnspacing=1.4,
    )  # fmt: skip
    legend.get_title().set_color(INK)


def runtime_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Seconds, error and memory against the number of partitions, a column for each k; the paper's time as a star.

    ``rows`` hold k, partitions (None: the default way), cores, seconds, cpu_seconds (drawn for one core), rmse, peak_mb
    and paper_seconds.
    """
    rows = [{**row, "seconds": row["cpu_seconds"] if row["cores"] == 1 else row["seconds"]} for row in rows]
    ks = sorted({row["k"] for row in rows})
    places = {number: i for i, number in enumerate(sorted({row["partitions"] for row in rows if row["partitions"]}))}
    cores = sorted({row["cores"] for row in rows})
    figure = blank(1.4 + 3.3 * len(ks), 7.6)
    panels = figure.subplots(3, len(ks), sharex=True, sharey="row", squeeze=False)
    labels = {"seconds": "seconds (one core: CPU)", "rmse": "RMSE of theta", "peak_mb": "peak memory, MB"}
    for j, k in enumerate(ks):
        for i, (key, label) in enumerate(labels.items()):
            axes = panels[i, j]
            for c, count in enumerate(cores):
                here = [row for row in rows if row["k"] == k and row["cores"] == count]
                name = f"{count} core{'s' * (count > 1)}"
                by_number = sorted((places[row["partitions"]], row[key]) for row in here if row["partitions"])
                way = {"color": colour(c * 5), "linewidth": 1.8}
                axes.plot(
                    *zip(*by_number, strict=True), **way, marker=MARKERS[c], markersize=5, label=f"partitioned, {name}"
                )
                for row in here:
                    if not row["partitions"]:
                        axes.axhline(row[key], **way, linestyle=(0, (4, 2)), label=f"default way, {name}")
            if i == 0:
                paper = next(row["paper_seconds"] for row in rows if row["k"] == k and row["paper_seconds"])
                star = {"color": INK, "markersize": 13, "linestyle": "none", "label": "the paper, 1 core"}
                axes.plot(places.get(100, 0), paper, "*", **star)
                axes.set_title(f"k = {k}", color=INK, fontsize=12)
                _log_scale(axes, (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 100, 300))
            else:
                axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
                plain(axes)
            if j == 0:
                axes.set_ylabel(label, color=INK, fontsize=11)
        panels[-1, j].set_xticks(list(places.values()), [str(number) for number in places])
        panels[-1, j].set_xlabel("partitions", color=INK, fontsize=11)
    for row_of_panels in panels[1:]:
        row_of_panels[0].set_ylim(bottom=0)  # last: it fixes the upper end too, for the whole row
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False, fontsize=11
    )  # fmt: skip
    return figure


def negatives_figure(rows: Sequence[Mapping[str, Any]], stated: tuple[float, float]) -> Figure:
    """Share of negative entries against k, panels by number of variables and delta, over the range stated.

    ``rows`` hold variables, n, delta, k, negative_fraction (distinct variables, solid) and negative_full (all, faint).
    A line for each n.
    """
    from matplotlib.lines import Line2D

    deltas, sizes, ks, widths = (sorted({row[key] for row in rows}) for key in ("delta", "n", "k", "variables"))
    figure = blank(1.2 + 3.4 * len(deltas), 1.2 + 3.0 * len(widths))
    grid = figure.subplots(len(widths), len(deltas), sharey=True, sharex=True, squeeze=False)
    panels, facets = grid.ravel(), [(width, delta) for width in widths for delta in deltas]
    shades = ("#b3cde3", "#6fa8d6", "#0072B2", "#003a5c")  # rows are ordered, so their colours are
    band = None
    for axes, (width, delta) in zip(panels, facets, strict=True):
        band = axes.axhspan(*stated, color="#E69F00", alpha=0.15, linewidth=0, label="stated in the paper")
        for n, shade in zip(sizes, shades, strict=False):
            mine = (row for row in rows if (row["variables"], row["delta"], row["n"]) == (width, delta, n))
            here = {row["k"]: row for row in mine}
            _line(axes, ks, here, "negative_full", {"color": shade, **FAINT, "alpha": 0.8})
            _line(axes, ks, here, "negative_fraction", {"color": shade, "linewidth": 2, "marker": "o", "markersize": 5})
        axes.set_title(f"{width} variables, contamination {delta:.0%}", color=INK, fontsize=12)
        axes.set_xticks(range(len(ks)), [str(k) for k in ks])
        axes.set_ylim(0, 0.6)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
        plain(axes)
    for axes in grid[:, 0]:
        axes.set_ylabel("negative entries", color=INK, fontsize=11)
    for axes in grid[-1]:
        axes.set_xlabel("components k", color=INK, fontsize=11)
    handles: list[Any] = [
        Line2D([], [], color=shade, linewidth=2, marker="o", label=f"n = {n:,}")
        for n, shade in zip(sizes, shades, strict=False)
    ]
    handles += [
        Line2D([], [], color=SOFT, linewidth=2, label="distinct variables"),
        Line2D([], [], label="with same-variable blocks", **{"color": SOFT, **FAINT, "alpha": 0.8}),
        band,
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=7, frameon=False, fontsize=10, columnspacing=1.2)
    return figure


# --- Goodness of fit


def goodness_figure(pairs: pd.DataFrame, misfit: float, n_beyond_chance: int, names: int = 6) -> Figure:
    """Observed against fitted shares of the two levels that fit worst in each pair of variables; the worst are named.

    A line marks where the two are equal; the farther above it, the more often two answers go together than the
    components explain.
    """
    figure = blank(7.5, 8.0)
    axes = figure.add_subplot()
    edge = 1.06 * max(float(pairs[["observed", "fitted"]].to_numpy().max()), 0.01)
    axes.plot([0, edge], [0, edge], color=SOFT, linewidth=1, zorder=1)
    axes.scatter(pairs.fitted, pairs.observed, s=22, color=colour(0), alpha=0.45, linewidth=0, zorder=2)
    for place, row in enumerate(pairs.head(min(names, n_beyond_chance)).itertuples(), start=1):
        label = f"{place}   {row.variable} = {row.level} with {row.partner} = {row.partner_level}: "
        label += f"{row.observed:.1%} of the rows, fitted {row.fitted:.1%}"
        axes.scatter(row.fitted, row.observed, s=40, color=colour(1), linewidth=0, zorder=3, label=label)
        away = -9 if row.observed > row.fitted else 9  # on the side where no other points are
        axes.annotate(
            str(place), (row.fitted, row.observed), xytext=(away, 0), textcoords="offset points",
            ha="center", va="center", fontsize=10, color=INK, zorder=4,
        )  # fmt: skip
    title = f"Answers given together: misfit {misfit:.2f} (up to about 1 is chance)"
    axes.set_title(title, loc="left", color=INK, fontsize=12)
    axes.set_xlabel("fitted share of the rows", color=INK)
    axes.set_ylabel("observed share of the rows", color=INK)
    axes.set_xlim(0, edge)
    axes.set_ylim(0, edge)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_aspect("equal")
    plain(axes)
    if n_beyond_chance:
        figure.legend(loc="outside lower left", frameon=False, fontsize=10, handlelength=1.0)
    return figure


# --- Crowd labels


def crowd_figure(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> Figure:
    """Errors on every set of crowd labels: a panel a set, a line a method, the published value beside ours.

    ``rows`` hold dataset, method, setting, error, lowest, highest (percent) and published.
    """
    sets = list(dict.fromkeys(row["dataset"] for row in rows))
    figure = blank(1.4 + 2.5 * len(sets), 1.6 + 0.36 * len(methods))
    panels = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    drawn = {
        "votes": ("o", INK, "run as published"),
        "published": ("o", INK, "run as published"),
        "em": ("s", colour(0), "after ten rounds"),
        "community": ("D", colour(2), "with the default model"),
        "default": ("D", colour(2), "with the default model"),
    }
    for axes, dataset in zip(panels, sets, strict=True):
        for row in (row for row in rows if row["dataset"] == dataset):
            place = methods.index(row["method"])
            marker, ink, name = drawn[row["setting"]]
            axes.plot([row["lowest"], row["highest"]], [place, place], color=ink, linewidth=1.4, alpha=0.6)
            axes.plot(row["error"], place, marker, color=ink, markersize=6, linestyle="none", label=name)
            if row["published"] is not None and row["setting"] == "published":
                axes.plot(
                    row["published"], place, "|", color=colour(5), markersize=15, markeredgewidth=2, linestyle="none",
                    label="the paper",
                )  # fmt: skip
        axes.set_title(dataset, color=INK, fontsize=12)
        axes.set_xlabel("error in %", color=INK, fontsize=11)
        axes.grid(axis="x", color="#e6e9ec", linewidth=0.8)
        plain(axes)
    panels[0].set_yticks(range(len(methods)), list(methods))
    panels[0].invert_yaxis()
    names = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        names.values(), names.keys(), loc="outside upper center", ncols=len(names), frameon=False, fontsize=11
    )  # fmt: skip
    return figure
