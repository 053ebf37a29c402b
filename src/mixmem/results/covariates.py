"""Memberships against what else is known of the rows: means by group, and effects of covariates.

Averages of estimated memberships are drawn towards the mean of all rows, and their spread is not that of the true ones,
so groups compared by them look too much alike. But a cell's distribution is linear in the row's memberships: over rows
with the same covariates it is theta_j times their *mean* membership, whatever its distribution. So mean memberships
softmax(B c_i), c_i the covariates of row i, are found directly, as those that make the cells likeliest one by one,

    sum_i w_i sum_j log sum_h softmax(B c_i)_h L_ijh,

L_ijh the likelihood of cell (i, j) in component h. That is a composite likelihood: cells of one row are not
independent, so standard errors come from rows (or clusters of rows, by strata), not cells. No distribution of
memberships is assumed, and no row's are estimated; weights are those of a survey.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, sum_over
from mixmem.kernels.em import em_pass
from mixmem.likelihood.table import LikelihoodTable
from mixmem.typing import Array

STEP = 1e-4
"""Of a coefficient, for the curvature of the likelihood."""
LARGEST = 12.0
"""Coefficients beyond are as good as infinite: a mean membership of zero."""


@dataclass(frozen=True)
class Design:
    """What is known of the rows: covariates (n, q), weights (n,), and the cluster and the stratum of every row (n,)."""

    covariates: Array
    weights: Array
    clusters: np.ndarray | None = None
    strata: np.ndarray | None = None


@dataclass(frozen=True)
class MeanMemberships:
    """Mean memberships softmax(B c): B (k, q), its first row zero, and the covariance of its other rows, row by row."""

    coefficients: Array
    covariance: Array
    converged: bool

    def at(self, covariates: Array) -> Array:
        """Return mean memberships (m, k) of rows with these covariates (m, q)."""
        return _softmax(covariates @ self.coefficients.T)

    def slopes(self, covariates: Array) -> Array:
        """Return the slopes (k, (k - 1) q) by the coefficients of the mean memberships at covariates (1, q)."""
        return _slopes(self.at(covariates), covariates, np.ones(1))

    def covariance_of(self, covariates: Array, weights: Array) -> tuple[Array, Array]:
        """Return the mean (k,) over rows of covariates (m, q) and weights (m,) of their mean memberships, and its
        covariance (k, k)."""
        share = weights / weights.sum()
        means = self.at(covariates)
        slopes = _slopes(means, covariates, share)
        return share @ means, slopes @ self.covariance @ slopes.T

    def effect(self, covariates: Array, weights: Array, changed: Array) -> tuple[Array, Array]:
        """Return how mean memberships differ (k,) between rows of other covariates (m, q), ``changed``, and these, on
        average, and the covariance (k, k) of that."""
        share = weights / weights.sum()
        before, after = self.at(covariates), self.at(changed)
        slopes = _slopes(after, changed, share) - _slopes(before, covariates, share)
        return share @ (after - before), slopes @ self.covariance @ slopes.T


def mean_memberships_given(table: Encoded, theta: Array, design: Design) -> MeanMemberships:
    """Find mean memberships as functions of covariates; theta (rows, k), noise included."""
    score = Score(table, theta, design)
    k, q = theta.shape[1], design.covariates.shape[1]
    start = np.zeros((k - 1) * q)
    found = minimize(
        score.loss, start, jac=True, method="L-BFGS-B", bounds=[(-LARGEST, LARGEST)] * len(start),
        options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-9},
    )  # fmt: skip
    bread = score.curvature(found.x)
    meat = score.between_rows(found.x)
    inverse = np.linalg.pinv(bread, rcond=1e-10, hermitian=True)
    coefficients = np.vstack([np.zeros((1, q)), found.x.reshape(k - 1, q)])
    return MeanMemberships(coefficients, inverse @ meat @ inverse, bool(found.success))


class Score:
    """The composite likelihood and its slopes, per unit of the rows' weight."""

    def __init__(self, table: Encoded, theta: Array, design: Design):
        self.cells = LikelihoodTable(table)
        self.likelihoods = np.ascontiguousarray(self.cells.likelihoods(theta))
        self.design, self.total = design, float(design.weights.sum())
        self.k = theta.shape[1]

    def loss(self, vector: Array) -> tuple[float, Array]:
        """Return minus the likelihood, and its slope."""
        value, slopes = self._rows(vector)
        gradient = (self.design.weights[:, None] * slopes)[:, 1:].T @ self.design.covariates
        return -value / self.total, -gradient.ravel() / self.total

    def curvature(self, vector: Array) -> Array:
        """Return minus the second derivatives, by central differences."""
        out = np.empty((len(vector), len(vector)))
        for at in range(len(vector)):
            step = np.zeros_like(vector)
            step[at] = STEP
            out[at] = (self.loss(vector + step)[1] - self.loss(vector - step)[1]) / (2.0 * STEP)
        return (out + out.T) / 2.0

    def between_rows(self, vector: Array) -> Array:
        """Return the variance of the slope: of sums over clusters about their stratum's mean."""
        _, slopes = self._rows(vector)
        design, n = self.design, len(slopes)
        each = (slopes[:, 1:, None] * design.covariates[:, None, :]).reshape(n, -1) * design.weights[:, None]
        clusters = np.arange(n) if design.clusters is None else np.unique(design.clusters, return_inverse=True)[1]
        strata = np.zeros(n, np.int64) if design.strata is None else np.unique(design.strata, return_inverse=True)[1]
        units, firsts = np.unique(np.column_stack([strata, clusters]), axis=0, return_inverse=True)
        sums = np.zeros((len(units), each.shape[1]))
        np.add.at(sums, firsts.ravel(), each)
        out = np.zeros((each.shape[1], each.shape[1]))
        for stratum in np.unique(units[:, 0]):
            own = sums[units[:, 0] == stratum]
            if len(own) > 1:
                apart = own - own.mean(axis=0)
                out += len(own) / (len(own) - 1) * apart.T @ apart
        return out / self.total**2

    def _rows(self, vector: Array) -> tuple[float, Array]:
        """Return the likelihood, and the slope of every row's part by its logits (n, k)."""
        coefficients = np.vstack([np.zeros((1, self.design.covariates.shape[1])), vector.reshape(self.k - 1, -1)])
        means = np.ascontiguousarray(_softmax(self.design.covariates @ coefficients.T))
        cells, slopes = self.cells, np.empty_like(means)

        def fill(first: int, partials: Arrays) -> None:
            em_pass(
                cells.codes, cells.starts, cells.absent, self.likelihoods, means, self.design.weights, first, slopes,
                partials[0], partials[1],
            )  # fmt: skip

        _, value = sum_over(Blocks([self.likelihoods.shape, ()], fill), *cells.codes.shape).root
        return float(value), means * (slopes - cells.lengths[:, None])


def _softmax(logits: Array) -> Array:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _slopes(means: Array, covariates: Array, share: Array) -> Array:
    """Slopes (k, (k - 1) q) of the shares' mean of means (m, k) by the coefficients, row by row without the first."""
    k = means.shape[1]
    by_logit = means[:, :, None] * (np.eye(k) - means[:, None, :])
    return np.einsum("m,mhg,mq->hgq", share, by_logit[:, :, 1:], covariates).reshape(k, -1)
