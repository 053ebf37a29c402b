"""Which variables tell components apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mixmem.data.kinds import Continuous

Label = tuple[str, str, str]
"""Variable, level and statistic of a row of theta."""


CONTINUOUS = Continuous()
SLICES, SLICED = 64, 4.0
"""To be compared as categories are, numbers are cut into so many slices, over so many standard deviations."""
VARIABLES_AT_ONCE = 500


@dataclass(frozen=True)
class Contents:
    """Whose the rows of theta are: variable j has rows offsets[j] to offsets[j + 1], and is a number or not."""

    labels: Sequence[Label]
    names: list[str]
    offsets: np.ndarray
    number: np.ndarray

    @classmethod
    def of(cls, labels: Sequence[Label]) -> Contents:
        """From the label of every row."""
        names, sizes, number = [], [], []
        for name, rows in groupby(labels, key=lambda label: label[0]):
            own = list(rows)
            names.append(name)
            sizes.append(len(own))
            number.append(own[0][2] != "probability")
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return cls(labels, names, offsets, np.array(number, dtype=bool))


def spread_of_variables(theta: np.ndarray, labels: Sequence[Label], shares: np.ndarray) -> np.ndarray:
    """How far a variable differs between components, 0 to 1, for every variable (p,).

    The mean over components (weighted by ``shares``, (k,)) of the total variation distance between the component's
    distribution and the average row's; theta (rows, k) with the label of every row.
    """
    weights = shares / shares.sum()
    return np.asarray(_distances(theta, Contents.of(labels), weights) @ weights)


def _distances(theta: np.ndarray, contents: Contents, weights: np.ndarray) -> np.ndarray:
    """Total variation distance of every variable in every component from the average row's (p, k)."""
    out = 0.5 * np.add.reduceat(np.abs(theta - (theta @ weights)[:, None]), contents.offsets[:-1], axis=0)
    members = np.flatnonzero(contents.number)
    for start in range(0, len(members), VARIABLES_AT_ONCE):
        some = members[start : start + VARIABLES_AT_ONCE]
        slices = _slices(theta[contents.offsets[some] + np.arange(2)[:, None]])
        out[some] = 0.5 * np.abs(slices - (slices @ weights)[..., None]).sum(axis=1)
    return out


def _slices(own: np.ndarray) -> np.ndarray:
    """Probabilities of slices (variables, slices, k) in every component, from means and variances (2, variables, k).

    Those of normal distributions, of counts too: it is to compare variables with each other.
    """
    spread = SLICED * np.sqrt(own[1])
    low, high = (own[0] - spread).min(axis=1), (own[0] + spread).max(axis=1)
    edges = np.linspace(low, high, SLICES + 1, axis=1)[:, 1:-1, None]
    above = CONTINUOUS.upper_tail(edges, own[:, :, None, :])
    ends = np.ones_like(above[:, :1])
    return -np.diff(np.concatenate([ends, above, 0.0 * ends], axis=1), axis=1)
