"""Sums over nodes against their slow forms."""

from __future__ import annotations

import numpy as np
import pytest

from mixmem.kernels import nodes, reference
from tests.kernels.cases import agree, empty, random_cells


def test_mix_at_nodes():
    rng = np.random.default_rng(0)
    agree(nodes.mix_at_nodes, reference.mix_at_nodes, rng.random((7, 3)), rng.random((3, 5)), empty(7, 5))


@pytest.mark.parametrize(("precision", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize(("n", "levels", "m"), [(1, (3,), 1), (12, (2, 3, 5, 4), 9), (3, (2,) * 300, 20)])
def test_node_sums(n, levels, m, missing, precision, tolerance):
    """The longest rows are less likely than the smallest number there is."""
    cells = random_cells(n, levels, missing=missing)
    at_nodes, weights = cells.likelihoods(m) ** 2, np.random.default_rng(1).random(m)
    agree(
        nodes.node_sums, reference.node_sums, cells.codes, cells.starts, cells.absent, at_nodes.astype(precision),
        weights, np.random.default_rng(2).random((2, m)), empty(n), empty(n), empty(n, 2),
        rtol=tolerance, atol=tolerance,
    )  # fmt: skip


def test_a_node_without_weight_has_no_say():
    cells = random_cells(4, (3, 3))
    at_nodes, sums, squares, means = cells.likelihoods(2), empty(4), empty(4), empty(4, 2)
    nodes.node_sums(
        cells.codes, cells.starts, cells.absent, at_nodes, np.array([1.0, 0.0]), np.eye(2), sums, squares, means
    )
    assert np.allclose(sums, np.log(at_nodes[cells.starts + cells.codes, 0]).sum(axis=1))
    assert np.allclose(squares, 2 * sums)
    assert (means == [1.0, 0.0]).all()
