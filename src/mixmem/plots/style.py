"""What all pictures share: colours, empty figures, plain axes, panels, files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT = "#1c2126", "#6b7580"

# Okabe and Ito's colours, then Tol's muted ones: both hold for the common kinds of colour blindness. From the fifteenth
# on they are merely distinct. A component keeps its colour whatever their number.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999",
    "#882255", "#44AA99", "#DDCC77", "#AA4499", "#117733", "#6699CC", "#332288", "#CC6677",
    "#88CCEE", "#999933", "#661100", "#A6D854", "#4D4D4D", "#F4A582", "#8073AC", "#01665E",
)  # fmt: skip


def colour(component: int) -> str:
    """Return the colour of a component, counted from 0."""
    return COLOURS[component % len(COLOURS)]


# Tol's bright ones, which no component has.
GROUP_COLOURS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#BBBBBB")


def group_colour(group: int) -> str:
    """Return the colour of a group of rows, counted from 0."""
    return GROUP_COLOURS[group] if group < len(GROUP_COLOURS) else colour(group)


def save(figure: Figure, stem: Path) -> None:
    """Write a figure as stem.png and stem.svg."""
    from matplotlib import rc_context

    # No date and no random ids in the SVG: the same results make the same file.
    with rc_context({"svg.hashsalt": "mixmem"}):
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"))


def blank(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    # Figure and its Agg canvas directly: pyplot would choose a backend and keep the figure alive.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def plain(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(SOFT)
    axes.tick_params(colors=SOFT, labelsize=10)


TITLE: dict[str, Any] = {"loc": "left", "color": INK, "fontsize": 12}


def own_axes(ax: Axes | None, width: float, height: float) -> tuple[Figure, Axes]:
    """Return the axes to draw into and their figure: those given, or the only ones of a new figure of that size."""
    if ax is not None:
        return cast("Figure", ax.figure), ax
    figure = blank(width, height)
    return figure, figure.add_subplot()


def panels_in(
    ax: Axes | None, rows: int, columns: int, size: tuple[float, float], **shared: Any
) -> tuple[Figure, np.ndarray]:
    """Return panels (rows, columns) in place of the axes given, or in a new figure of that size."""
    if ax is None:
        figure = blank(*size)
        return figure, figure.subplots(rows, columns, squeeze=False, **shared)
    ax.set_axis_off()
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("axes that are replaced by panels must come from a grid: make them with figure.subplots()")
    return cast("Figure", ax.figure), place.subgridspec(rows, columns).subplots(squeeze=False, **shared)


def name_components(figure: Figure, k: int) -> None:
    """Say above a figure which colour is which component."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour(h), label=str(h + 1)) for h in range(k)]
    figure.legend(
        handles=handles, title="component", loc="outside upper left", ncols=min(k, 12), frameon=False, fontsize=9,
        title_fontsize=9, handlelength=1.0, handleheight=1.0, alignment="left",
    )  # fmt: skip
