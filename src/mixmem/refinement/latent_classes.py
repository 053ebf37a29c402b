"""Latent classes: every row in one component. The limit of small alpha0, and a start where the moments give none.

EM from several random starts on a part of the rows, the likelier ones on all of them. Centres are rows drawn one after
the other, each the likelier the worse those before explain it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixmem.data.encode import Encoded
from mixmem.engine.rows import Arrays, Blocks, map_rows, sum_over
from mixmem.errors import InputError
from mixmem.kernels.passes import add_features, scatter_sums
from mixmem.likelihood.table import LikelihoodTable, largest
from mixmem.moments.anchors import largest_k, spread_table
from mixmem.moments.estimate import Account, Start
from mixmem.moments.sums import FirstMoments
from mixmem.moments.theta_from_factors import theta_of
from mixmem.progress import Progress
from mixmem.refinement.gibbs import UNMIXED
from mixmem.typing import Array

STARTS, KEPT, TRIED_ROWS = 12, 2, 4_000
"""Random starts, how many of them go on with all rows, and the rows that they are tried on."""
TRIED_ROUNDS, MOST_ROUNDS, CLOSE = 25, 300, 1e-6
"""Rounds on the part and on all rows, and the gain per row at which they end."""
SMOOTH = 1.0
"""Rows of the table's means that every class is taken to hold: no level is impossible for lack of rows."""


def within_reach(table: Encoded, k: int) -> bool:
    """Whether the moments of a table can tell k components; refuse what not even its rows could.

    With fewer than three variables there are no third moments, and rows are split instead.
    """
    coding = table.coding
    if k == 1 or coding.n_variables < 3 or largest_k(coding) >= k:
        return True
    sizes = table.schema.sizes[table.schema.has("plain")]
    patterns = np.log(sizes).sum() if table.schema.has("plain").all() else np.inf
    unknown = k * (int((sizes - 1).sum()) + 1) - 1
    if np.log(unknown + 1) > patterns:
        raise InputError(
            f"n_components={k} has {unknown:,} unknowns, more than the {round(float(np.exp(patterns))) - 1:,} shares "
            f"of different rows that the variables allow; use at most {largest_k(coding)} components, or more variables"
        )
    rows, each = int(np.count_nonzero(table.each)), int((sizes - 1).sum()) + 1
    if unknown > rows:
        raise InputError(
            f"n_components={k} has {unknown:,} unknowns, more than the {rows:,} rows can tell; use at most "
            f"{max(largest_k(coding), (rows + 1) // each)} components, or more rows"
        )
    return False


def is_doubtful(start: Start) -> bool:
    """Whether a start by moments is to be held against latent classes."""
    return not start.account.converged or float(start.alpha.sum()) < UNMIXED


@dataclass(frozen=True)
class ClassAccount(Account):
    """What latent classes say of themselves: the mean log-likelihood of a row, and that of every start tried."""

    way: str = "latent classes"
    log_likelihood: float = 0.0
    tried: list[float] | None = None


@dataclass(frozen=True)
class Classes:
    """Theta (rows, k), shares (k,) and the mean log-likelihood of a row under them."""

    theta: Array
    shares: Array
    likelihood: float
    converged: bool


def latent_class_start(
    table: Encoded,
    first: FirstMoments,
    k: int,
    alpha0: float,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    more: int = 1,
) -> Start:
    """Return the likeliest of several sets of k latent classes as a start, with alpha = alpha0 times their shares.

    ``more`` times as many sets are tried and kept.
    """
    alone = theta_of(first.means[:, None], first)
    part = spread_table(table, TRIED_ROWS)
    some, every = _Rows(part), _Rows(table) if part is not table else None
    tried = []
    with progress.stage("latent classes", more * (STARTS + KEPT)) as step:
        for stream in np.random.SeedSequence([*seed.generate_state(4), 5]).spawn(more * STARTS):
            tried.append(some.climb(*some.centres(alone, k, np.random.default_rng(stream)), TRIED_ROUNDS))
            step(1)
        tried.sort(key=lambda found: -found.likelihood)
        best: list[Classes] = []
        for found in tried[: more * KEPT]:
            best.append((every or some).climb(found.theta, found.shares, MOST_ROUNDS))
            step(1)
    found = max(best, key=lambda classes: classes.likelihood)
    reason = f"the likeliest of {more * STARTS} sets of latent classes"
    account = ClassAccount(
        found.converged, reason, log_likelihood=found.likelihood, tried=[each.likelihood for each in tried]
    )
    return Start(found.theta, alpha0 * np.maximum(found.shares, 1e-4), account)


class _Rows:
    """A table's cells, and EM of latent classes over its rows."""

    def __init__(self, table: Encoded):
        self.cells = LikelihoodTable(table)
        self.weights = np.asarray(table.each, dtype=float)
        self.members = np.arange(self.cells.codes.shape[1])
        self.all = self._counts(np.ones((table.n_rows, 1)))

    def _counts(self, shares: Array) -> Array:
        """Return the weight of the rows of every class in which each cell occurs (table's rows, k), from (n, k)."""
        values = shares * self.weights[:, None]

        def fill(first: int, partials: Arrays) -> None:
            scatter_sums(self.cells.codes, self.cells.starts, self.members, values, first, partials[0])

        return sum_over(Blocks([(self.cells.n_rows, shares.shape[1])], fill), *self.cells.codes.shape).root[0]

    def _fitted(self, shares: Array, theta: Array) -> Array:
        return self.cells.fitted(self._counts(shares) + SMOOTH * self.all / self.weights.sum(), theta)

    def centres(self, alone: Array, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return theta (rows, k) of classes about k rows, and equal shares; ``alone`` (rows, 1) is that of all rows."""
        n = len(self.weights)
        held = np.zeros((n, k))
        chosen = rng.choice(n, p=self.weights / self.weights.sum())
        far = np.full(n, np.inf)
        for h in range(k):
            differs = (self.cells.codes != self.cells.codes[chosen]).sum(axis=1)
            far = np.minimum(far, differs)
            held[chosen, h] = 1.0
            chance = self.weights * far**2
            chosen = rng.choice(n, p=chance / chance.sum()) if chance.sum() > 0.0 else rng.choice(n)
        # a centre counts as much as all rows' mean, so that its class is open to other rows
        theta = self.cells.fitted(self._counts(held) + self.all / self.weights.sum(), np.repeat(alone, k, axis=1))
        return theta, np.full(k, 1.0 / k)

    def climb(self, theta: Array, shares: Array, rounds: int) -> Classes:
        """Return what EM finds from theta (rows, k) and shares (k,)."""
        total, before = self.weights.sum(), -np.inf
        for _ in range(rounds):
            logs = self._logs(theta) + np.log(np.maximum(shares, 1e-300))
            top = largest(logs)
            held = np.exp(logs - top)
            mass = held.sum(axis=1, keepdims=True)
            value = float(self.weights @ (top + np.log(mass))[:, 0]) / total
            if value - before < CLOSE:
                return Classes(theta, shares, value, True)
            before = value
            held /= mass
            shares = self.weights @ held / total
            theta = self._fitted(held, theta)
        return Classes(theta, shares, before, False)

    def _logs(self, theta: Array) -> Array:
        """Return the log-likelihood of every row in every class (n, k)."""
        cells, says = self.cells, self.cells.log_likelihoods(theta)
        out = np.zeros((len(self.weights), theta.shape[1]))
        map_rows(lambda rows: add_features(cells.codes[rows], cells.starts, self.members, says, out[rows]), len(out))
        return out
