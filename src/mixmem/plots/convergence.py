"""How a fit came to rest, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from mixmem.plots.style import INK, colour, own_axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class ConvergencePlot:
    """A value at every round of a fit.

    Parameters
    ----------
    values : sequence of float
        What was kept at every round.
    label : str
        What it is.
    rounds : str
        What a round is called.
    log : bool
        Whether ratios are what is to be compared, as of changes that should fall.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        What was drawn into, after :meth:`plot`.

    Examples
    --------
    >>> ConvergencePlot([0.1, 0.01, 0.001], log=True).plot().ax_.get_yscale()
    'log'
    """

    ax_: Axes
    figure_: Figure

    def __init__(
        self, values: Sequence[float], label: str = "change of theta", rounds: str = "sweep", log: bool = False
    ) -> None:
        self.values, self.label, self.rounds, self.log = list(values), label, rounds, log

    @classmethod
    def from_model(cls, model: Any) -> Self:
        """Return the plot of a fitted model: the likelihood it climbed, or else how theta changed at every sweep."""
        report = model.report_
        if report.refine.em is not None:
            label = "mean log-likelihood of a row, given memberships"
            return cls(report.refine.em.likelihood_given_memberships, label, "round")
        sweeps = getattr(report.start, "sweeps", None)
        if sweeps is None or not sweeps.changes:
            raise ValueError("this fit kept nothing round by round: it made no sweeps and climbed no likelihood")
        return cls(sweeps.changes, "change of theta (root mean square)", "sweep", log=min(sweeps.changes) > 0)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into these axes, or into a new figure."""
        from matplotlib.ticker import MaxNLocator

        figure, axes = own_axes(ax, 6.0, 3.4)
        first = 1 if self.rounds == "sweep" else 0
        axes.plot(range(first, first + len(self.values)), self.values, "o-", color=colour(0), markersize=4)
        if self.log:
            axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel(self.rounds, color=INK)
        axes.set_ylabel(self.label, color=INK)
        axes.grid(axis="y", color="#e6e9ec", linewidth=0.8)
        plain(axes)
        self.ax_, self.figure_ = axes, figure
        return self
