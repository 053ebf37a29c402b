"""Groups of rows compared by their mean memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixmem.plots.style import INK, SOFT, colour, panels_in, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ComparePlot:
    """Mean memberships of groups with their intervals: a panel per component, a line per group.

    Parameters
    ----------
    means : DataFrame
        group, component, mean, lower, upper, naive, as :class:`mixmem.Comparison` has them.
    by : str
        What the groups go by.

    Attributes
    ----------
    axes_, figure_ : array of matplotlib axes, and their figure
        What was drawn into, after :meth:`plot`.

    Examples
    --------
    >>> import pandas as pd
    >>> means = pd.DataFrame({"group": ["a", "b"], "component": 1, "mean": [0.2, 0.4], "lower": [0.1, 0.3],
    ...                       "upper": [0.3, 0.5], "naive": [0.25, 0.35]})
    >>> len(ComparePlot(means, "town").plot().axes_)
    1
    """

    axes_: np.ndarray
    figure_: Figure

    def __init__(self, means: pd.DataFrame, by: str) -> None:
        self.means, self.by = means, by

    @classmethod
    def from_model(cls, model: Any, X: Any, by: Any, **options: Any) -> Self:
        """Return the plot of a fitted model's comparison of groups; the options are those of ``model.compare``."""
        return cls.from_comparison(model.compare(X, by, **options))

    @classmethod
    def from_comparison(cls, found: Any) -> Self:
        """Return the plot of a comparison that was made."""
        return cls(found.means, found.by)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into panels in place of these axes, or in a new figure."""
        means = self.means
        groups, components = list(dict.fromkeys(means["group"])), sorted(set(means["component"]))
        size = (2.4 + 2.1 * len(components), 1.4 + 0.34 * len(groups))
        figure, grid = panels_in(ax, 1, len(components), size, sharey=True)
        panels = grid[0]
        for axes, component in zip(panels, components, strict=True):
            own = means[means["component"] == component].set_index("group").loc[groups]
            places = np.arange(len(groups))
            axes.hlines(places, own["lower"], own["upper"], color=colour(component - 1), linewidth=2.2)
            axes.plot(own["mean"], places, "o", color=colour(component - 1), label="mean, with its interval")
            axes.plot(own["naive"], places, "|", color=SOFT, markersize=9, label="average of estimated memberships")
            axes.set_title(f"Component {component}", color=INK, fontsize=10)
            axes.set_yticks(places, groups)
            axes.set_ylim(len(groups) - 0.5, -0.5)
            axes.margins(x=0.12)
            plain(axes)
        panels[0].set_ylabel(self.by, color=INK)
        if ax is None:
            figure.supxlabel("Mean membership", color=INK, fontsize=10)
            handles, labels = panels[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=8)
        self.axes_, self.figure_ = panels, figure
        return self
