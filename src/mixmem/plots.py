"""Pictures, as matplotlib figures: nothing is shown and no global state is touched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.page import colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS, PIXELS = 400, 400
"""Rows drawn as bars, which are then wide enough to be seen, and the resolution of their heights."""
INK, SOFT = "#1c2126", "#6b7580"


def comparison(
    true_theta: np.ndarray,
    theta: np.ndarray,
    true_memberships: np.ndarray,
    memberships: np.ndarray,
    names: Sequence[str],
) -> Figure:
    """Estimate against truth, components matched: theta (rows, k) on the left, memberships (n, k) on the right."""
    # Figure and its Agg canvas directly: pyplot would choose a backend and keep the figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 6.0), dpi=120, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.25))
    _scatter(figure.add_subplot(grid[:, 0]), true_theta, theta, names)
    above, below = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
    order = sorted_rows(true_memberships)
    order = order[np.arange(min(len(order), BARS)) * len(order) // min(len(order), BARS)]
    _bars(above, true_memberships[order], "Memberships of rows: truth")
    _bars(below, memberships[order], "Memberships of the same rows: estimate")
    below.set_xlabel(f"{len(order)} of {len(memberships):,} rows, sorted by true leading component", color=INK)
    return figure


def sorted_rows(memberships: np.ndarray) -> np.ndarray:
    """Rows by leading component, the purest of each first."""
    return np.lexsort((-memberships.max(axis=1), memberships.argmax(axis=1)))


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
    _plain(axes)


def _bars(axes: Any, memberships: np.ndarray, title: str) -> None:
    from matplotlib.colors import to_rgb

    n = len(memberships)
    # Painted as a picture, pixel by pixel: patches for every row and component take seconds.
    heights = (np.arange(PIXELS) + 0.5) / PIXELS
    component = (heights[:, None, None] > np.cumsum(memberships, axis=1)[:, :-1]).sum(axis=2)
    paint = np.array([to_rgb(colour(h)) for h in range(memberships.shape[1])])
    axes.imshow(paint[component], origin="lower", extent=(0, n, 0, 1), aspect="auto", interpolation="nearest")
    axes.set_xlim(0, n)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1])
    axes.set_xticks([])
    axes.set_title(title, loc="left", color=INK, fontsize=12)
    _plain(axes)


def _plain(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(SOFT)
    axes.tick_params(colors=SOFT, labelsize=10)
