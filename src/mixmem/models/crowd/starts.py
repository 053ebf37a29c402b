"""Where the rounds begin: labels expected of every worker in every class, without knowing the classes.

Three ways: majority vote; moments between three groups of workers (Zhang, Chen, Zhou, Jordan); and PTPQP's, with
workers as variables and the most prolific ones as anchors. The last two differ in their references only: what a mode
of the small tensor holds is the vote shares of a group, or the labels of single workers. Either way every worker is
then found from the pair moments with the references, two modes held, by nonnegative least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from mixmem.errors import InputError
from mixmem.kernels.crowd_workers import worker_programs
from mixmem.models.crowd.labels import Labels
from mixmem.moments.solvers import factorize
from mixmem.moments.solvers.contract import Factors
from mixmem.typing import Array

GROUPINGS = 10
"""Random groupings of the workers that are averaged."""
ANCHORS = 20
"""Workers in each of the three anchor sets."""
PSEUDO = 10.0
"""Tasks that a combination of references is given beside its own, with the mean over all combinations."""
CHUNK = 4096
"""Tasks whose products are formed at once."""


@dataclass(frozen=True)
class References:
    """What workers are held against: ``shares`` (n, R, K) with rows that sum to one, or to zero where a reference has
    no label for a task; ``mode`` (R,) 0, 1 or 2; ``own`` (W, R): the worker is part of the reference."""

    shares: Array
    mode: np.ndarray
    own: np.ndarray

    def of_mode(self, mode: int) -> Array:
        """Shares of one mode's references, (n, R_mode, K)."""
        return self.shares[:, self.mode == mode]


def tensor_counts(labels: Labels, solver: str, rng: np.random.Generator) -> Array:
    """The start of the published experiment: moments between three groups, mean of several groupings, (W, K, K)."""
    with threadpool_limits(limits=1):  # the rounding of a threaded product depends on the number of threads
        draws = [_counts_from(labels, group_references(labels, rng), solver, rng) for _ in range(GROUPINGS)]
    return np.asarray(np.mean(draws, axis=0))


def ptpqp_counts(labels: Labels, solver: str, rng: np.random.Generator) -> Array:
    """PTPQP's start: the block of the most prolific workers, then every other worker against it, (W, K, K)."""
    with threadpool_limits(limits=1):
        return _counts_from(labels, anchor_references(labels), solver, rng)


def group_references(labels: Labels, rng: np.random.Generator) -> References:
    """Vote shares of three groups, dealt in random order to the group with the fewest labels so far."""
    volume = np.bincount(labels.workers, minlength=labels.n_workers)
    group, filled = np.zeros(labels.n_workers, dtype=np.int64), [0, 0, 0]
    for w in rng.permutation(labels.n_workers):
        group[w] = int(np.argmin(filled))
        filled[group[w]] += int(volume[w])
    return References(_shares(labels, group[labels.workers], 3), np.arange(3), group[:, None] == np.arange(3))


def anchor_references(labels: Labels) -> References:
    """Single workers, the most prolific dealt to the three modes in turn."""
    volume = np.bincount(labels.workers, minlength=labels.n_workers)
    anchors = np.argsort(-volume, kind="stable")[: 3 * ANCHORS]
    place = np.full(labels.n_workers, -1)
    place[anchors] = np.arange(len(anchors))
    shares = _shares(labels, place[labels.workers], len(anchors))
    return References(shares, np.arange(len(anchors)) % 3, place[:, None] == np.arange(len(anchors)))


def _shares(labels: Labels, reference: np.ndarray, n_references: int) -> Array:
    """Vote shares by task and reference, (n, R, K); ``reference`` (m,) of every label, -1 for none."""
    votes = np.zeros((labels.n_tasks, n_references, labels.n_classes))
    used = reference >= 0
    np.add.at(votes, (labels.task_of[used], reference[used], labels.labels[used]), 1.0)
    totals = votes.sum(axis=2, keepdims=True)
    return np.divide(votes, totals, out=votes, where=totals > 0.0)


def _counts_from(labels: Labels, references: References, solver: str, rng: np.random.Generator) -> Array:
    modes = [references.of_mode(mode) for mode in range(3)]
    if not _seen_together(modes).any():
        raise InputError(
            "no task has labels from three different groups of workers, which moments need; use start='majority'"
        )
    tables = _reference_tables(modes, references, solver, rng)
    sums, together = _pair_sums(labels, references)
    together = np.where(references.own, 0.0, together)
    volume = np.bincount(labels.workers, minlength=labels.n_workers)
    return _joint_tables(sums, together, tables) * volume[:, None, None]


def _seen_together(modes: Sequence[Array]) -> np.ndarray:
    return np.logical_and.reduce([mode.any(axis=(1, 2)) for mode in modes])


def _reference_tables(modes: Sequence[Array], references: References, solver: str, rng: np.random.Generator) -> Array:
    """p(label | class) of every reference, (R, K, K), [r, l, j], from the block of third moments between the modes."""
    k = modes[0].shape[2]
    tensor = _moments(modes)
    first, second, third = modes
    pairs = _moments([first, second]), _moments([first, third]), _moments([second, third])
    marginal = modes[2].sum(axis=(0, 1)) / max(modes[2].sum(), 1.0)
    found = factorize(
        tensor, k, solver=solver, starts=[_first_factors(modes, marginal)], pairs=pairs, max_iter=300, tol=1e-7,
        random_state=rng,
    )  # fmt: skip
    tables = np.empty((len(references.mode), k, k))
    for mode, factor in enumerate(found.factors):
        blocks = np.maximum(factor, 0.0).reshape(-1, k, k) + 1e-6
        tables[references.mode == mode] = blocks / blocks.sum(axis=1, keepdims=True)
    # A factor's columns are classes in an unknown order: the one in which references are right most often.
    order = linear_sum_assignment(-tables.sum(axis=0))[1]
    return tables[:, :, order]


def _moments(modes: Sequence[Array]) -> Array:
    """Mean product of the modes' shares over the tasks that two or three references have in common.

    A combination of references counts as having ``PSEUDO`` more tasks, with the mean over all combinations: workers who
    rarely meet say little together. Modes (n, R, K) -> one axis of R K each.
    """
    k = modes[0].shape[2]
    widths = [mode.shape[1] for mode in modes]
    flat = [mode.reshape(len(mode), -1) for mode in modes]
    present = [mode.sum(axis=2) for mode in modes]
    sums = _product(flat).reshape([size for width in widths for size in (width, k)])
    counts = _product(present)
    references, levels = tuple(range(0, sums.ndim, 2)), tuple(range(1, sums.ndim, 2))
    mean = sums.sum(axis=references, keepdims=True) / max(counts.sum(), 1.0)
    together = np.expand_dims(counts, levels)
    return np.asarray((sums + PSEUDO * mean) / (together + PSEUDO)).reshape([width * k for width in widths])


def _product(matrices: Sequence[Array]) -> Array:
    """Sums over rows of the outer products of two or three matrices' rows."""
    *first, last = matrices
    total = np.zeros((np.prod([matrix.shape[1] for matrix in first]), last.shape[1]))
    for begin in range(0, len(last), CHUNK):
        part = first[0][begin : begin + CHUNK]
        for matrix in first[1:]:
            part = (part[:, :, None] * matrix[begin : begin + CHUNK, None, :]).reshape(len(part), -1)
        total += part.T @ last[begin : begin + CHUNK]
    return total.reshape([matrix.shape[1] for matrix in matrices])


def _first_factors(modes: Sequence[Array], marginal: Array) -> Factors:
    """Workers who are right in six of ten tasks and guess in the others, in every mode."""
    k = len(marginal)
    table = 0.6 * np.eye(k) + 0.4 / k
    a, b, c = (np.tile(table, (mode.shape[1], 1)) for mode in modes)
    return a, b, c * np.maximum(marginal, 1e-3)


def _pair_sums(labels: Labels, references: References) -> tuple[Array, Array]:
    """Products of every worker's labels with the references, (W, R, K, K) [w, r, l, m]; tasks in common (W, R)."""
    n_references, k = references.shares.shape[1:]
    task = labels.task_of
    rows = labels.workers.astype(np.int64) * k + labels.labels
    given = csr_matrix((np.ones(len(task)), (rows, task)), shape=(labels.n_workers * k, labels.n_tasks))
    sums = given @ references.shares.reshape(labels.n_tasks, -1)
    sums = np.asarray(sums).reshape(labels.n_workers, k, n_references, k).transpose(0, 2, 1, 3)
    return sums, sums.sum(axis=(2, 3))


def _joint_tables(sums: Array, together: Array, tables: Array) -> Array:
    """Joint probabilities of label and class for every worker, (W, K, K), which sum to one.

    Minimises sum_r n_r |S_r / n_r - X T_r'|^2 over X >= 0, with S_r (K, K) the sums of products with reference r, n_r
    the tasks in common and T_r its table. A worker without any is taken for a mean reference.
    """
    q = np.einsum("wr,rmj,rmh->wjh", together, tables, tables)
    z = -np.einsum("wrlm,rmj->wlj", sums * (together > 0.0)[:, :, None, None], tables)
    x = np.zeros_like(z)
    worker_programs(q, z, x, 1000, 1e-10)
    empty = x.sum(axis=(1, 2)) <= 0.0
    x[empty] = tables.mean(axis=0)
    return np.asarray(x / x.sum(axis=(1, 2), keepdims=True))
