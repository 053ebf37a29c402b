"""Slow forms of the kernels, written for reading: what each kernel computes, in NumPy.

A form has its kernel's name, arguments and shapes, fills the same arrays in place, and stands in a file of the same
name. ``tests/kernels`` compares the two. Nothing in the package calls these: a kernel that seems wrong is checked by
calling its form on the same arguments.

>>> import numpy as np
>>> x = np.ones((1, 2))
>>> exact_rows(np.eye(2), np.array([[-3.0, 4.0]]), x, 100, 1e-12)
>>> x
array([[3., 0.]])
"""

from mixmem.kernels.reference.admixture import box_steps, locus_sums, row_sums
from mixmem.kernels.reference.blocks import factorize_one
from mixmem.kernels.reference.counts import block_triples, count_cells
from mixmem.kernels.reference.crowd import (
    by_task,
    excess_agreement,
    expected_labels,
    label_pass,
    to_probabilities,
    vote_pass,
    vote_shares,
)
from mixmem.kernels.reference.crowd_tasks import glad_pass, minimax_pass
from mixmem.kernels.reference.crowd_workers import community_pass, digamma, strength_pass, worker_programs
from mixmem.kernels.reference.em import em_pass
from mixmem.kernels.reference.gibbs import assign_cells, drawn, membership_posterior, rows_above
from mixmem.kernels.reference.grams import gram_sums
from mixmem.kernels.reference.importance import importance_sums
from mixmem.kernels.reference.joint import diagonalizing_sweep
from mixmem.kernels.reference.nodes import mix_at_nodes, node_sums
from mixmem.kernels.reference.nqp import descend_rows, exact_row, exact_rows, pqp_rows
from mixmem.kernels.reference.passes import add_features, pair_sums, scatter_sums
from mixmem.kernels.reference.simplex import cholesky, memberships
from mixmem.kernels.reference.special import log_gamma
from mixmem.kernels.reference.streams import log_gamma_draw, mixed, stream, unit

__all__ = [
    "add_features",
    "assign_cells",
    "block_triples",
    "box_steps",
    "by_task",
    "cholesky",
    "community_pass",
    "count_cells",
    "descend_rows",
    "diagonalizing_sweep",
    "digamma",
    "drawn",
    "em_pass",
    "exact_row",
    "exact_rows",
    "excess_agreement",
    "expected_labels",
    "factorize_one",
    "glad_pass",
    "gram_sums",
    "importance_sums",
    "label_pass",
    "locus_sums",
    "log_gamma",
    "log_gamma_draw",
    "membership_posterior",
    "memberships",
    "minimax_pass",
    "mix_at_nodes",
    "mixed",
    "node_sums",
    "pair_sums",
    "pqp_rows",
    "row_sums",
    "rows_above",
    "scatter_sums",
    "stream",
    "strength_pass",
    "to_probabilities",
    "unit",
    "vote_pass",
    "vote_shares",
    "worker_programs",
]
