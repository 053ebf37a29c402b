"""Contamination: a share delta of the cells is noise, uniform over the levels of their variable.

Only categories can be contaminated so: numbers have no uniform distribution, and alleles of genotypes are left as read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mixmem.data.schema import Schema
from mixmem.typing import Array


class Noise:
    """Which rows of theta take part (``takes_part`` (rows,), their numbers ``rows``), what the noise adds to each
    (``level`` (rows, 1), one over the number of levels), and the free parameters of a component among them."""

    def __init__(self, schema: Schema):
        categories = schema.has("contaminable")
        self.takes_part: NDArray[np.bool_] = np.repeat(categories, schema.sizes)
        self.rows = np.flatnonzero(self.takes_part)
        self.level = np.where(self.takes_part, 1.0 / np.repeat(schema.sizes, schema.sizes), 0.0)[:, None]
        self.n_free = int((schema.sizes[categories] - 1).sum())

    def added(self, theta: Array, delta: float) -> Array:
        """(1 - delta) theta + delta / d where noise takes part; theta (rows, k)."""
        return np.asarray(np.where(self.takes_part[:, None], (1.0 - delta) * theta + delta * self.level, theta))


def noisy_theta(theta: Array, delta: float, schema: Schema) -> Array:
    """Probabilities of levels (rows, k) with a share delta of uniform noise: (1 - delta) theta + delta / d.

    >>> import numpy as np
    >>> from mixmem.data.schema import Schema, Variable
    >>> noisy_theta(np.array([[0.0], [1.0]]), 0.1, Schema((Variable("a", ("no", "yes")),)))
    array([[0.05],
           [0.95]])
    """
    return Noise(schema).added(theta, delta)


def clean_theta(theta: Array, delta: float, schema: Schema, least: float = 0.0) -> Array:
    """Theta (rows, k) without a share delta of uniform noise: (theta - delta / d) / (1 - delta), on the simplex again.

    No probability is left below ``least``.

    >>> import numpy as np
    >>> from mixmem.data.schema import Schema, Variable
    >>> clean_theta(np.array([[0.05], [0.95]]), 0.1, Schema((Variable("a", ("no", "yes")),)))
    array([[0.],
           [1.]])
    """
    noise = Noise(schema)
    levels = np.repeat(~schema.has("number"), schema.sizes)[:, None]
    clean = np.where(noise.takes_part[:, None], (theta - delta * noise.level) / (1.0 - delta), theta)
    inside = np.maximum(clean, least)
    sums = np.add.reduceat(inside, schema.offsets[:-1], axis=0)
    return np.asarray(np.where(levels, inside / np.repeat(sums, schema.sizes, axis=0), theta))
