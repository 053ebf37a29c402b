"""Pictures, as matplotlib figures: nothing is shown and no global state is touched.

Objects hold what they draw, and draw it into axes of yours or a figure of their own, as scikit-learn's displays do:

>>> import numpy as np
>>> from mixmem.plots import StructurePlot
>>> drawn = StructurePlot(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])).plot()
>>> drawn.ax_.get_ylim() == (0.0, 1.0)
True

A component has the same colour in every picture and on every page, whatever the number of components.
"""

from __future__ import annotations

from mixmem.plots.choosing import ChooseKPlot
from mixmem.plots.comparing import ComparePlot
from mixmem.plots.convergence import ConvergencePlot
from mixmem.plots.figures import (
    comparison,
    crowd_figure,
    error_figure,
    goodness_figure,
    negatives_figure,
    runtime_figure,
)
from mixmem.plots.profiles import ProfilePlot
from mixmem.plots.structure import StructurePlot
from mixmem.plots.style import colour, group_colour, save

__all__ = [
    "ChooseKPlot",
    "ComparePlot",
    "ConvergencePlot",
    "ProfilePlot",
    "StructurePlot",
    "colour",
    "comparison",
    "crowd_figure",
    "error_figure",
    "goodness_figure",
    "group_colour",
    "negatives_figure",
    "runtime_figure",
    "save",
]
