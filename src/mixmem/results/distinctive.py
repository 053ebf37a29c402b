"""Which variables tell components apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mixmem.typing import Array

Label = tuple[str, str, str]
"""Variable, level and statistic of a row of theta."""

SLICES, SLICED = 64, 4.0
"""To be compared as categories are, numbers are cut into so many slices, over so many standard deviations."""
VARIABLES_AT_ONCE = 500


@dataclass(frozen=True)
class Contents:
    """Whose the rows of theta are: variable j has rows offsets[j] to offsets[j + 1], and is a number or not; the first
    ``atoms[j]`` rows of a number are probabilities of atoms and, last, of any other number."""

    labels: Sequence[Label]
    names: list[str]
    offsets: np.ndarray
    number: np.ndarray
    atoms: np.ndarray

    @classmethod
    def of(cls, labels: Sequence[Label]) -> Contents:
        """Return the contents that go with the label of every row."""
        names, sizes, number, atoms = [], [], [], []
        for name, rows in groupby(labels, key=lambda label: label[0]):
            own = list(rows)
            names.append(name)
            sizes.append(len(own))
            number.append(own[-1][2] != "probability")
            atoms.append(sum(statistic == "probability" for _, _, statistic in own) if number[-1] else 0)
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        return cls(labels, names, offsets, np.array(number, dtype=bool), np.array(atoms, dtype=np.int64))

    def moments(self, theta: Array, j: int) -> Array:
        """Return mean and variance of a number in every component (2, k), of those that are no atoms.

        A kind without a row called "mean" is seen by its first row, one without "variance" by how its means differ.
        """
        rows = range(int(self.offsets[j] + self.atoms[j]), int(self.offsets[j + 1]))
        at = {self.labels[row][2]: row for row in rows}
        mean = theta[at.get("mean", rows[0])]
        spread = max(float(mean.var()), 1e-12 * max(float((mean**2).mean()), 1e-300))
        return np.stack([mean, theta[at["variance"]] if "variance" in at else np.full_like(mean, spread)])


def spread_of_variables(theta: Array, labels: Sequence[Label], shares: Array) -> Array:
    """Return how far each variable differs between components (p,), from 0 to 1.

    The mean over components (weighted by ``shares``, (k,)) of the total variation distance between the component's
    distribution and the average row's; theta (rows, k) with the label of every row.
    """
    weights = shares / shares.sum()
    return np.asarray(distances(theta, Contents.of(labels), weights) @ weights)


def distances(theta: Array, contents: Contents, weights: Array) -> Array:
    """Return the total variation distance of every variable in every component from the average row's (p, k)."""
    out = 0.5 * np.add.reduceat(np.abs(theta - (theta @ weights)[:, None]), contents.offsets[:-1], axis=0)
    members = np.flatnonzero(contents.number)
    for start in range(0, len(members), VARIABLES_AT_ONCE):
        some = members[start : start + VARIABLES_AT_ONCE]
        slices = _slices(np.stack([contents.moments(theta, j) for j in some.tolist()], axis=1))
        for at in np.flatnonzero(contents.atoms[some]).tolist():
            slices[at] *= theta[contents.offsets[some[at]] + contents.atoms[some[at]] - 1]
        out[some] = 0.5 * np.abs(slices - (slices @ weights)[..., None]).sum(axis=1)
        for j in some[contents.atoms[some] > 0].tolist():
            atoms = theta[contents.offsets[j] : contents.offsets[j] + contents.atoms[j] - 1]
            out[j] += 0.5 * np.abs(atoms - (atoms @ weights)[:, None]).sum(axis=0)
    return out


def ordered_distances(theta: Array, contents: Contents) -> Array:
    """Return how far components are apart (k, k), levels taken in their order: by the shares of levels up to each.

    The way over components that all variables put in one order is then as long as the direct one. Numbers are compared
    by their means.
    """
    sums = np.cumsum(theta, axis=0)
    before = np.concatenate([np.zeros((1, theta.shape[1])), sums])[contents.offsets[:-1]]
    shares = sums - np.repeat(before, np.diff(contents.offsets), axis=0)
    for j in np.flatnonzero(contents.number).tolist():
        mean, variance = contents.moments(theta, j)
        shares[contents.offsets[j] : contents.offsets[j + 1]] = 0.0
        shares[contents.offsets[j]] = mean / np.sqrt(max(float(variance.mean()), 1e-300))
    return np.array([np.abs(shares - shares[:, [g]]).sum(axis=0) for g in range(theta.shape[1])])


def _slices(own: Array) -> Array:
    """Return probabilities of slices (variables, slices, k) in every component, from means and variances
    (2, variables, k).

    Those of normal distributions, of counts too: it is to compare variables with each other.
    """
    from scipy.special import ndtr

    spread = SLICED * np.sqrt(own[1])
    low, high = (own[0] - spread).min(axis=1), (own[0] + spread).max(axis=1)
    edges = np.linspace(low, high, SLICES + 1, axis=1)[:, 1:-1, None]
    above = ndtr((own[0][:, None, :] - edges) / np.sqrt(own[1][:, None, :]))
    ends = np.ones_like(above[:, :1])
    return np.asarray(-np.diff(np.concatenate([ends, above, 0.0 * ends], axis=1), axis=1))
