"""Names for the arrays that stages hand to each other; shapes stand in the docstrings."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Codes = NDArray[np.unsignedinteger]
Modes = tuple[Positions, Positions, Positions]
"""The variables of a block's three modes."""

SolverName = Literal["pqp", "hals", "wnmf", "lee_seung", "tpm", "nojd0", "nojd1", "meld"]
MatchingName = Literal["procrustes", "angle"]
RefineName = Literal["auto", "gibbs", "integrated", "em"]
