"""The structure plot: memberships of rows as stacked bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixmem.plots.style import INK, SOFT, colour, name_components, own_axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS, PIXELS = 400, 400
"""Rows drawn as bars, which are then wide enough to be seen, and the resolution of their heights."""

LETTERS = 100
"""Letters that stand side by side under the bars, about."""


class StructurePlot:
    """Memberships of rows as stacked bars, sorted by leading component, group by group.

    Parameters
    ----------
    memberships : array (n, k)
        Memberships, rows sum to one.
    groups : sequence (n,) or None
        Label of every row; groups stand beside each other in the order of their names.
    by : str
        What the groups go by, for the axis.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        What was drawn into, after :meth:`plot`.

    Examples
    --------
    >>> memberships = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [0.1, 0.9]])
    >>> StructurePlot(memberships, groups=["b", "a", "a", "b"]).order.tolist()
    [2, 1, 0, 3]
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, memberships: Any, groups: Sequence[Any] | None = None, by: str = "") -> None:
        self.memberships = np.asarray(memberships, dtype=float)
        self.groups = None if groups is None else np.array([str(group) for group in groups])
        self.by = by
        if self.groups is not None and len(self.groups) != len(self.memberships):
            raise ValueError(f"there are {len(self.groups)} labels for {len(self.memberships)} rows; expected one each")

    @classmethod
    def from_model(cls, model: Any, X: Any = None, *, by: Any = None) -> Self:
        """Return the plot of a fitted model's rows: those of ``X``, or those it was fitted to.

        ``by`` is a column of the frame ``X``, or the label of every row.
        """
        memberships = model.memberships_ if X is None else model.transform(X)
        if isinstance(by, str):
            if X is None or by not in getattr(X, "columns", ()):
                raise ValueError(f"by={by!r} names a column; expected a frame X that has it, or the labels themselves")
            return cls(memberships, list(X[by]), by)
        return cls(memberships, by)

    @property
    def order(self) -> np.ndarray:
        """The rows in the order they are drawn in (n,)."""
        order = sorted_rows(self.memberships)
        return order if self.groups is None else order[np.argsort(self.groups[order], kind="stable")]

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into these axes, or into a new figure."""
        figure, axes = own_axes(ax, 10.0, 3.0)
        order = spread(self.order)
        draw_bars(axes, self.memberships[order], "")
        if self.groups is not None:
            _name_groups(axes, self.groups[order])
        axes.set_ylabel("membership", color=INK)
        rows = f"{len(order):,} of {len(self.memberships):,} rows" if len(order) < len(self.memberships) else "rows"
        axes.set_xlabel(f"{rows}, by {self.by or 'group'} and leading component" if self.groups is not None else
                        f"{rows}, by leading component", color=INK)  # fmt: skip
        if ax is None:
            name_components(figure, self.memberships.shape[1])
        self.ax_, self.figure_ = axes, figure
        return self


def _name_groups(axes: Any, groups: np.ndarray) -> None:
    names, starts, counts = np.unique(groups, return_index=True, return_counts=True)
    for start in starts[1:]:
        axes.axvline(start, color="white", linewidth=1.5)
    wide = max(len(name) for name in names) > LETTERS * counts.min() / len(groups)
    axes.set_xticks(starts + counts / 2, names, rotation=40 if wide else 0, ha="right" if wide else "center")
    axes.tick_params(axis="x", length=0, colors=SOFT)


def sorted_rows(memberships: np.ndarray) -> np.ndarray:
    """Rows by leading component, the purest of each first."""
    return np.lexsort((-memberships.max(axis=1), memberships.argmax(axis=1)))


def spread(order: np.ndarray) -> np.ndarray:
    """Return as many of the rows as can be seen, evenly spread, in the same order."""
    return order[np.arange(min(len(order), BARS)) * len(order) // max(min(len(order), BARS), 1)]


def draw_bars(axes: Any, memberships: np.ndarray, title: str) -> None:
    """Draw a bar per row (n, k), in the order given."""
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
    plain(axes)
