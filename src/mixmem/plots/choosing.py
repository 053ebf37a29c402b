"""The number of components: what speaks for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixmem.plots.style import INK, SOFT, TITLE, colour, panels_in, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ChooseKPlot:
    """Held-out likelihood, stability and spectrum against k, one under the other; the recommended k is marked.

    Parameters
    ----------
    rows : sequence of mappings
        Each with k, held_out, held_out_se, stability, stability_worst, singular_value and noise.
    recommended : int
        The number of components to mark.

    Attributes
    ----------
    axes_, figure_ : array of matplotlib axes, and their figure
        What was drawn into, after :meth:`plot`.

    Examples
    --------
    >>> row = dict.fromkeys(("held_out", "held_out_se", "stability", "stability_worst", "singular_value", "noise"), 0.5)
    >>> len(ChooseKPlot([{"k": 1, **row}, {"k": 2, **row}], 2).plot().axes_)
    3
    """

    axes_: np.ndarray
    figure_: Figure

    def __init__(self, rows: Sequence[Mapping[str, Any]], recommended: int) -> None:
        self.rows, self.recommended = list(rows), recommended

    @classmethod
    def from_choice(cls, choice: Any) -> Self:
        """Return the plot of what :func:`mixmem.choose_k` found."""
        return cls(choice.table.to_dict("records"), choice.k)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into three panels in place of these axes, or in a new figure."""
        from matplotlib.ticker import MaxNLocator

        rows = self.rows
        columns = {key: np.array([row[key] for row in rows], dtype=float) for key in rows[0] if key != "why"}
        ks = columns["k"]
        figure, grid = panels_in(ax, 3, 1, (8.0, 9.0), sharex=True)
        panels = grid[:, 0]
        strong: dict[str, Any] = {"color": colour(0), "linewidth": 1.8, "marker": "o", "markersize": 5}
        weak = {**strong, "color": SOFT, "linestyle": (0, (4, 2)), "markersize": 3}
        panels[0].errorbar(ks, columns["held_out"], columns["held_out_se"], capsize=3, **strong)
        panels[0].set_title("Log-likelihood of a row that was not fitted (higher is better)", **TITLE)
        panels[1].plot(ks, columns["stability"], **strong, label="mean of components")
        panels[1].plot(ks, columns["stability_worst"], **weak, label="worst component")
        panels[1].set_title("Stability: agreement of components found on halves of the rows (1: the same)", **TITLE)
        panels[2].plot(ks, columns["singular_value"], **strong, label="singular value the k-th component brings")
        panels[2].plot(ks, columns["noise"], **weak, label="noise it has to exceed")
        panels[2].set_title("Spectrum of the second moments", **TITLE)
        panels[2].set_ylim(bottom=0)
        panels[2].set_xlabel("components k", color=INK, fontsize=11)
        panels[2].xaxis.set_major_locator(MaxNLocator(integer=True))
        for axes in panels:
            mark = axes.axvline(self.recommended, color=colour(1), linewidth=9, alpha=0.25, zorder=0)
            axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
            axes.set_axisbelow(True)
            plain(axes)
        mark.set_label(f"recommended: k = {self.recommended}")
        for axes in panels[1:]:
            axes.legend(frameon=False, fontsize=10)
        self.axes_, self.figure_ = panels, figure
        return self
