"""Profiles: what the components say of variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixmem.plots.style import INK, SOFT, TITLE, colour, name_components, panels_in, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN, COLUMNS = 9, 3
"""Variables that are drawn unless others are named, and panels side by side."""


class ProfilePlot:
    """Profiles of variables, a panel each: probabilities of levels, or means, in every component, with intervals.

    Parameters
    ----------
    theta : DataFrame
        variable, level, statistic, component_1..component_k, as ``model.theta_``.
    intervals : DataFrame or None
        As ``model.intervals()``.
    variables : sequence of str or None
        Those to draw, in this order; None for the first nine.

    Attributes
    ----------
    axes_, figure_ : array of matplotlib axes, and their figure
        What was drawn into, after :meth:`plot`.

    Examples
    --------
    >>> import pandas as pd
    >>> theta = pd.DataFrame({"variable": ["rain", "rain"], "level": ["no", "yes"], "statistic": "probability",
    ...                       "component_1": [0.9, 0.1], "component_2": [0.3, 0.7]})
    >>> len(ProfilePlot(theta).plot().axes_)
    1
    """

    axes_: np.ndarray
    figure_: Figure

    def __init__(
        self, theta: pd.DataFrame, intervals: pd.DataFrame | None = None, variables: Sequence[str] | None = None
    ) -> None:
        known = list(dict.fromkeys(theta["variable"]))
        self.theta, self.intervals = theta, intervals
        self.variables = known[:SHOWN] if variables is None else list(variables)
        if unknown := [name for name in self.variables if name not in known]:
            raise ValueError(f"there is no variable {unknown[0]!r}; expected some of {', '.join(map(repr, known[:8]))}")

    @classmethod
    def from_model(
        cls, model: Any, variables: Sequence[str] | None = None, *, intervals: bool = True, level: float = 0.95
    ) -> Self:
        """Return the plot of a fitted model's variables: those named, or the nine that tell components apart best.

        ``intervals`` of a fit that did not sample are computed when first asked for.
        """
        if variables is None:
            variables = model.spread_of_variables().index[:SHOWN].tolist()
        return cls(model.theta_, model.intervals(level) if intervals else None, variables)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into panels in place of these axes, or in a new figure."""
        columns = min(COLUMNS, len(self.variables))
        rows = -(-len(self.variables) // columns)
        components = [name for name in self.theta.columns if name.startswith("component_")]
        most = max(int((self.theta["variable"] == name).sum()) for name in self.variables)
        size = (4.0 * columns, rows * (0.9 + max(1.2, 0.11 * most * len(components))))
        figure, panels = panels_in(ax, rows, columns, size)
        flat = panels.ravel()
        for axes, name in zip(flat, self.variables, strict=False):
            self._draw(axes, name, components)
        for axes in flat[len(self.variables) :]:
            axes.set_axis_off()
        if ax is None:
            name_components(figure, len(components))
        self.axes_, self.figure_ = flat[: len(self.variables)], figure
        return self

    def _draw(self, axes: Axes, name: str, components: list[str]) -> None:
        own = self.theta[self.theta["variable"] == name]
        levels = own[own["statistic"] == "probability"]
        lines = levels if len(levels) else own[own["statistic"] == "mean"]
        lines = lines if len(lines) else own.head(1)
        k = len(components)
        thick = 0.8 / k
        for h, component in enumerate(components):
            places = np.arange(len(lines)) + (h - (k - 1) / 2) * thick
            values = lines[component].to_numpy()
            low, high = self._bounds(name, lines, h)
            if len(levels):
                axes.barh(places, values, height=0.9 * thick, color=colour(h))
            else:
                axes.plot(values, places, "o", color=colour(h))
            axes.hlines(places, low, high, color=INK, linewidth=1)
        texts = [str(level) for level in lines["level"]] if len(levels) else ["mean"]
        axes.set_yticks(range(len(lines)), texts)
        axes.invert_yaxis()
        axes.set_title(name, **TITLE)
        if len(levels):
            axes.set_xlim(0, 1)
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.grid(axis="x", color="#e6e9ec", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0, colors=SOFT)
        plain(axes)

    def _bounds(self, name: str, lines: pd.DataFrame, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals of some lines of theta; those of no length where there are none."""
        if self.intervals is None:
            values = lines[f"component_{h + 1}"].to_numpy()
            return values, values
        own = self.intervals[(self.intervals["variable"] == name) & (self.intervals["component"] == h + 1)]
        own = own[own["statistic"].isin(lines["statistic"])].iloc[: len(lines)]
        return own["lower"].to_numpy(), own["upper"].to_numpy()
