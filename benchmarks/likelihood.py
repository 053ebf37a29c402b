"""The marginal likelihood of rows against quadrature (k = 3) and a million draws of the memberships (k = 7, 20).

16 binary variables, 25 and 100 of four levels, alpha_h = 0.01, 0.1 and 1, 200 rows drawn from the model. "rough" is
what the search for alpha0 uses. Where brute force itself errs, "of reference" says by how much.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from mixmem import row_likelihood, simulate_gdlm
from mixmem.engine.local import threads
from mixmem.likelihood.marginal import _by_nodes
from mixmem.likelihood.nodes import Nodes, gauss_beta
from mixmem.likelihood.table import LikelihoodTable

ROWS, DRAWS, BATCHES = 200, 1_000_000, 10


def _quadrature(cells: LikelihoodTable, likely: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods for three components by a rule of twice the nodes that are needed, and their errors: none."""
    count = cells.codes.shape[1] + 1
    (first, w1), (second, w2) = gauss_beta(count, alpha[0], alpha[1:].sum()), gauss_beta(count, alpha[1], alpha[2])
    one, two = np.repeat(first, count), np.tile(second, count)
    points = np.array([one, (1.0 - one) * two, (1.0 - one) * (1.0 - two)])
    nodes = Nodes(points, np.outer(w1, w2).ravel(), True)
    return _by_nodes(cells, cells.codes, likely, nodes)[0], np.zeros(len(cells.codes))


def _brute_force(cells: LikelihoodTable, likely: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods by draws from the prior, and their errors by batches of them."""
    rng = np.random.default_rng(0)
    logs, count = [], DRAWS // BATCHES
    for _ in range(BATCHES):
        nodes = Nodes(np.nan_to_num(rng.dirichlet(alpha, count).T), np.full(count, 1.0 / count), True)
        logs.append(_by_nodes(cells, cells.codes, likely, nodes)[0])
    total = np.logaddexp.reduce(logs, axis=0) - np.log(BATCHES)
    return total, np.exp(np.array(logs) - total).std(axis=0, ddof=1) / np.sqrt(BATCHES)


def _timed(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    run()  # compiled
    began = time.process_time()
    return run(), 1e6 * (time.process_time() - began) / ROWS


def run(quick: bool = False) -> Iterator[dict[str, float | str]]:
    """One row per shape, k and alpha_h."""
    for p, levels in ((16, 2), (25, 4), (100, 4)):
        for k in (3, 7) if quick else (3, 7, 20):
            for strength in (0.01, 0.1, 1.0):
                drawn = simulate_gdlm(ROWS, p, k, n_levels=levels, alpha=strength, random_state=17)
                cells, alpha = LikelihoodTable(drawn.encoded), drawn.alpha
                with threads(1):
                    reference = (_quadrature if k == 3 else _brute_force)(cells, cells.likelihoods(drawn.theta), alpha)
                    found, micros = _timed(lambda c=cells, d=drawn: row_likelihood(c, d.theta, d.alpha))
                    rough, less = _timed(lambda c=cells, d=drawn: row_likelihood(c, d.theta, d.alpha, rough=True))
                errors, roughly = found - reference[0], rough - reference[0]
                yield {
                    "p": p, "k": k, "alpha_h": strength,
                    "mean error": float(errors.mean()), "rmse": float(np.sqrt((errors**2).mean())),
                    "of reference": float(np.sqrt((reference[1] ** 2).mean())), "us per row": micros,
                    "rough": float(roughly.mean()), "rmse, r.": float(np.sqrt((roughly**2).mean())), "us, r.": less,
                }  # fmt: skip
