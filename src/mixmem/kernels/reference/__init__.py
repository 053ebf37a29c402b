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
from mixmem.kernels.reference.corners import corner_sums, row_gaussians
from mixmem.kernels.reference.counts import block_triples, count_cells, plain_triples
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
from mixmem.kernels.reference.digits import whole_numbers
from mixmem.kernels.reference.document_memberships import (
    document_likelihood,
    document_rounds,
    expected_ratios,
    settle_documents,
    spread_counts,
)
from mixmem.kernels.reference.documents import (
    add_to_totals,
    add_to_words,
    collapsed_sweep,
    left_out_likelihood,
    topic_inverses,
)
from mixmem.kernels.reference.em import em_pass
from mixmem.kernels.reference.gibbs import assign_cells, drawn, membership_posterior, rows_above
from mixmem.kernels.reference.grams import gram_sums
from mixmem.kernels.reference.importance import importance_sums
from mixmem.kernels.reference.joint import diagonalizing_sweep
from mixmem.kernels.reference.layout import turn, turn_bytes
from mixmem.kernels.reference.long_rows import integrated_pass, posterior_memberships
from mixmem.kernels.reference.nodes import mix_at_nodes, node_sums
from mixmem.kernels.reference.noise import kept_cells, noise_evidence, noise_levels
from mixmem.kernels.reference.nqp import descend_rows, exact_row, exact_rows, pqp_rows
from mixmem.kernels.reference.ordered import ordered_fit
from mixmem.kernels.reference.passes import add_features, add_joined, group_sums, pair_sums, scatter_sums
from mixmem.kernels.reference.simplex import cholesky, memberships
from mixmem.kernels.reference.special import log_gamma
from mixmem.kernels.reference.streams import log_gamma_draw, mixed, mixed_bits, stream, unit
from mixmem.kernels.reference.tokens import begin_tokens, draw_tokens, move_tokens

__all__ = [
    "add_features",
    "add_joined",
    "add_to_totals",
    "add_to_words",
    "assign_cells",
    "begin_tokens",
    "block_triples",
    "box_steps",
    "by_task",
    "cholesky",
    "collapsed_sweep",
    "community_pass",
    "corner_sums",
    "count_cells",
    "descend_rows",
    "diagonalizing_sweep",
    "digamma",
    "document_likelihood",
    "document_rounds",
    "draw_tokens",
    "drawn",
    "em_pass",
    "exact_row",
    "exact_rows",
    "excess_agreement",
    "expected_labels",
    "expected_ratios",
    "factorize_one",
    "glad_pass",
    "gram_sums",
    "group_sums",
    "importance_sums",
    "integrated_pass",
    "kept_cells",
    "label_pass",
    "left_out_likelihood",
    "locus_sums",
    "log_gamma",
    "log_gamma_draw",
    "membership_posterior",
    "memberships",
    "minimax_pass",
    "mix_at_nodes",
    "mixed",
    "mixed_bits",
    "move_tokens",
    "node_sums",
    "noise_evidence",
    "noise_levels",
    "ordered_fit",
    "pair_sums",
    "plain_triples",
    "posterior_memberships",
    "pqp_rows",
    "row_gaussians",
    "row_sums",
    "rows_above",
    "scatter_sums",
    "settle_documents",
    "spread_counts",
    "stream",
    "strength_pass",
    "to_probabilities",
    "topic_inverses",
    "turn",
    "turn_bytes",
    "unit",
    "vote_pass",
    "vote_shares",
    "whole_numbers",
    "worker_programs",
]
