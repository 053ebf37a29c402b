"""What gold labels tell of the errors among the other tasks."""

from __future__ import annotations

import numpy as np

from mixmem.models.crowd.scoring import error_rate, expected_error
from mixmem.typing import Array

IMAGINED = 20.0
"""Gold tasks that are imagined to be wrong as often as expected: a few real ones must not decide alone."""


def expected_beside_gold(posterior: Array, known: np.ndarray, unaware: Array) -> float:
    """Return the share of tasks without gold whose label is expected to be wrong.

    ``posterior`` and ``unaware`` (n, K) are class probabilities found with and without the classes ``known`` (n,), -1
    where there is none. Where workers agree on the wrong class, labels alone cannot show it. Gold can: by how much more
    often the labels found without it were wrong on its tasks than was expected there.

    >>> import numpy as np
    >>> sure = np.array([[0.9, 0.1]] * 40)
    >>> round(expected_beside_gold(sure, np.array([0] * 10 + [1] * 10 + [-1] * 20), sure), 2)
    0.3
    """
    gold = known >= 0
    if gold.all():
        return 0.0
    stated = expected_error(posterior[~gold])
    if not gold.any():
        return stated
    more = error_rate(unaware, known) - expected_error(unaware[gold])
    return float(np.clip(stated + gold.sum() / (gold.sum() + IMAGINED) * more, 0.0, 1.0))
