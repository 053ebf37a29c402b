"""The posterior of theta, alpha and the contamination, by a collapsed Gibbs sampler started at a given estimate.

Every cell has a component z_ij, drawn from the row's memberships, which are integrated out. A cell of component h has
level c with probability (1 - delta) theta_jch + delta / d_j: with probability delta it is noise, uniform over the
levels. A sweep draws every z_ij given the others, then, from the counts of cells by level and component alone:

- which of them are noise, theta_jh ~ Dirichlet(eta + the others), and delta ~ Beta(1 + noise, 1 + the others).
- delta with theta integrated out, every five sweeps (:mod:`mixmem.refinement.noise_draw`): noise that levels share is
  the one thing that theta given delta, and delta given theta, would hardly find or lose. It may be zero.
- eta: theta has a Dirichlet(eta) prior, one eta for the table, with log eta ~ Normal(log 0.5, 1).
- alpha = alpha0 pi with pi ~ Dirichlet(1). The Dirichlet-multinomial of a row's counts is a mixture over numbers of
  tables l_ih (each of the n_ih cells opens one with probability alpha_h / (alpha_h + cells before it)); given their
  sums, pi ~ Dirichlet(1 + l). alpha0, where it is not given, is drawn by slice sampling of its logarithm.

Theta's posterior mean and variance are averages over sweeps of the conditional ones given the cells' components, which
have less noise than averages of draws. Chains differ by their seed and by the noise they start with, and run side by
side. Noise settles slowly, since cells are placed by what was taken for noise before. To push it on the way it goes is
no way out: where components are many it ends at none, or at three times too much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixmem.data.encode import Encoded
from mixmem.data.soft_levels import starts_of
from mixmem.engine.local import in_threads
from mixmem.kernels.gibbs import assign_cells, rows_above
from mixmem.kernels.special import log_gamma
from mixmem.likelihood.contamination import Noise, clean_theta
from mixmem.likelihood.memberships import fit_rows
from mixmem.likelihood.table import LikelihoodTable
from mixmem.moments.components import align_components
from mixmem.progress import Progress
from mixmem.refinement.noise_draw import NoiseCounts, draw_noise
from mixmem.refinement.ordered_prior import OrderedPrior
from mixmem.refinement.slice_sampling import draw_slice
from mixmem.typing import Array

CHAINS, BATCH = 2, 25
"""Chains, and sweeps after which one is asked whether there are enough."""
WARM_BATCHES, MOST_WARM, LEAST_BATCHES = 5, 20, 6
"""Batches before sweeps are kept, at least and at most: until alpha0 and the contamination have settled; and batches
kept at least."""
MOST_BATCHES, MORE_BATCHES, MORE_SECONDS = 40, 160, 5.0
"""Batches kept at most, and of a small table, where chains may go on for so many seconds by a count of their work."""
ENOUGH = 0.02
"""Sampling ends when the variance of the sampled mean of theta is this share of theta's posterior variance: its error
is then one per cent above that of the exact posterior mean. The chains must agree as well."""
LARGEST_RHAT = 1.3
"""Of nineteen in twenty entries of theta, for the chains to count as converged."""
FIRST_DELTA = (0.04, 0.1)
"""Where the chains' contamination starts, if it is drawn: from above, since cells that were placed without noise hide
it."""
STILL = (0.0005, 0.01)
"""Moves of the contamination and of log alpha0 from batch to batch that are none."""
UNMIXED = 0.1
"""The alpha0 below which rows hardly leave the component of their first cells: chains begin at the rows' memberships,
and latent classes are tried as a start."""
NOISE_EVERY, FAR_EVERY = 5, 25
"""Sweeps after which the contamination is drawn with theta integrated out, near where it stands or from far; in the
others it is drawn given theta."""
PLACING = (50, 5)
"""Sweeps before that, and so many more per component: as long as theta is poor, no noise is seen behind its errors."""
NO_NOISE = 0.5
"""Prior probability that no cell is noise."""
LOG_ALPHA0 = (np.log(0.01), np.log(200.0))
LOG_ETA = (np.log(0.02), np.log(50.0))


@dataclass(frozen=True)
class Posterior:
    """What the chains found, pooled.

    ``theta`` and ``theta_error`` (rows, k) posterior mean and standard deviation, ``alpha`` (k,) posterior mean;
    ``alpha_draws`` (draws, k), ``delta_draws`` and ``eta_draws`` (draws,) every sweep kept, chain after chain;
    ``rhat`` and ``ess`` (rows, k) split R-hat and effective sample size of theta, which is at most the number of draws;
    ``effective`` the effective sample size of theta as a whole; ``n_sweeps`` kept per chain; ``converged`` whether
    that and the agreement of the chains are as good as asked for.
    """

    theta: Array
    theta_error: Array
    alpha_draws: Array
    delta_draws: Array
    eta_draws: Array
    rhat: Array
    ess: Array
    effective: float
    n_chains: int
    n_warm: int
    n_sweeps: int
    converged: bool

    @property
    def agreement(self) -> float:
        """R-hat that nineteen of twenty entries of theta do not exceed."""
        return _agreement(self.rhat)

    @property
    def alpha(self) -> Array:
        """Posterior mean of alpha (k,)."""
        return np.asarray(self.alpha_draws.mean(axis=0))

    def ordered(self, order: NDArray[np.int64]) -> Posterior:
        """Return the same with components in another order."""
        by_component = ("theta", "theta_error", "alpha_draws", "rhat", "ess")
        return replace(self, **{name: getattr(self, name)[:, order] for name in by_component})

    @property
    def delta(self) -> float:
        """Posterior mean of the background's weight."""
        return float(self.delta_draws.mean())


@dataclass(frozen=True)
class Unknowns:
    """What the chains draw beside theta and the shares of alpha: alpha0, and the contamination delta.

    ``delta`` is where it stays, if it is not drawn.
    """

    alpha0: bool
    contamination: bool
    delta: float = 0.0


def sample_posterior(
    table: Encoded,
    theta: Array,
    alpha: Array,
    unknowns: Unknowns,
    *,
    seed: np.random.SeedSequence,
    progress: Progress,
    most_batches: int | None = None,
) -> Posterior:
    """Run chains from theta (rows, k) and alpha (k,) until the posterior mean is known well enough."""
    most_batches = most_batches or batches_for(table.codes.size, len(alpha))
    streams = np.random.SeedSequence([*seed.generate_state(4), 4]).spawn(CHAINS)
    cells = LikelihoodTable(table)
    unknowns = _told_apart(unknowns, table)
    chains = [
        Chain(cells, theta, alpha, unknowns, stream, delta) for stream, delta in zip(streams, FIRST_DELTA, strict=True)
    ]
    _seat(table, theta, alpha, chains)
    with progress.stage("gibbs", (MOST_WARM + most_batches) * BATCH) as step:
        warm = 0
        while warm < WARM_BATCHES or (warm < MOST_WARM and not (_met(chains) and _still(chains))):
            in_threads(lambda c: chains[c].run(BATCH, keep=False), CHAINS)
            step(BATCH)
            warm += 1
        enough = False
        while not enough and len(chains[0].batches) < most_batches:
            in_threads(lambda c: chains[c].run(BATCH, keep=True), CHAINS)
            step(BATCH)
            kept = len(chains[0].batches)
            if kept >= LEAST_BATCHES and (kept <= MOST_BATCHES or kept % 8 == 0):  # looking takes longer with each
                enough = _noise_share(chains) <= ENOUGH and _agree(chains)
    return _pooled(chains, enough, warm * BATCH)


def seconds_for(n_cells: int, k: int) -> float:
    """Roughly the seconds of a sweep over cells, as measured once: a decision may not depend on the clock."""
    return n_cells * (5.0 + 1.2 * k) * 1e-9


def batches_for(n_cells: int, k: int) -> int:
    """Return how many batches a chain keeps at most."""
    batch = BATCH * (seconds_for(n_cells, k) + 4e-4)
    return int(np.clip(MORE_SECONDS / batch, MOST_BATCHES, MORE_BATCHES))


def try_start(
    table: Encoded,
    cells: LikelihoodTable,
    theta: Array,
    alpha: Array,
    unknowns: Unknowns,
    *,
    seed: np.random.SeedSequence,
    batches: int = WARM_BATCHES,
    kept: int = 1,
) -> tuple[Array, Array]:
    """Return where a short chain of so many batches has come from theta (rows, k) and alpha (k,), noise included: both
    as they started, on average over ``kept`` further batches. ``cells`` are those of the table."""
    unknowns = _told_apart(unknowns, table)
    stream = np.random.SeedSequence([*seed.generate_state(4), 6])
    chain = Chain(cells, theta, alpha, unknowns, stream, FIRST_DELTA[0])
    _seat(table, theta, alpha, [chain])
    chain.run(batches * BATCH, keep=False)
    for _ in range(kept):
        chain.run(BATCH, keep=True)
    theta, delta, alpha = (
        np.mean([getattr(batch, part) for batch in chain.batches], axis=0) for part in ("mean", "delta", "alpha")
    )
    return chain.noise.added(theta, float(delta.mean())), alpha.mean(axis=0)


def _told_apart(unknowns: Unknowns, table: Encoded) -> Unknowns:
    """Return what is to be drawn of the unknowns: noise is uniform over levels, and of two it cannot be told.

    A yes that is noise in one of ten cells is a component that says yes a little less: any share explains the table.
    """
    noise = Noise(table.schema)
    sizes = table.schema.sizes[~table.schema.has("number")]
    if not noise.n_free or (len(sizes) and sizes.max() < 3):
        return replace(unknowns, contamination=False)
    return unknowns


def _seat(table: Encoded, theta: Array, alpha: Array, chains: list[Chain]) -> None:
    """Let chains begin at the rows' memberships where alpha0 is so small that they would not find there."""
    if alpha.sum() < UNMIXED:
        memberships = fit_rows(table, theta, alpha, memberships="mode").memberships
        for chain in chains:
            chain.seat(memberships)


@dataclass(frozen=True)
class Batch:
    """Of a batch of sweeps: mean and variance over it of theta's conditional mean, mean of its conditional variance
    (rows, k); the draws of alpha (BATCH, k), delta and eta."""

    mean: Array
    spread: Array
    inner: Array
    alpha: Array
    delta: Array
    eta: Array


class Chain:
    """The state of one chain."""

    def __init__(
        self,
        cells: LikelihoodTable,
        theta: Array,
        alpha: Array,
        unknowns: Unknowns,
        seed: np.random.SeedSequence,
        first_delta: float = FIRST_DELTA[0],
    ):
        n, q = cells.codes.shape
        k = len(alpha)
        self.cells, self.unknowns = cells, unknowns
        self.rng = np.random.default_rng(seed)
        self.cell_seed = seed.generate_state(1, np.uint64)[0]
        self.n_done = 0
        self.longer = (cells.lengths[:, None] > np.arange(q)).sum(axis=0)  # rows with more than m cells (q,)
        self.noise = Noise(cells.schema)
        self.alpha, self.eta = alpha.copy(), 0.5
        self.ordered = OrderedPrior(cells, k)
        free = ~self.ordered.which
        self.free_sizes = np.unique(cells.level_sizes[free], return_counts=True)
        self.free_rows = cells.level_theta[np.repeat(free, cells.level_sizes)]
        self.delta = first_delta if unknowns.contamination else unknowns.delta
        self.theta = clean_theta(theta, self.delta, cells.schema, least=1e-3)
        kind = np.uint16 if k > 250 else np.uint8
        self.assigned = np.full((q, n), np.iinfo(kind).max, kind)
        self.row_counts = np.zeros((n, k))
        self.counts = np.zeros((cells.n_rows, k), np.int64)
        self.above = np.zeros((k, q), np.int64)
        self.batches: list[Batch] = []
        self.path: list[tuple[float, float]] = []  # mean contamination and log alpha0 of every batch

    def seat(self, memberships: Array) -> None:
        """Draw the cells' components given memberships (n, k), before the first sweep."""
        expected = np.rint(memberships * self.cells.lengths[:, None])  # counts are whole numbers
        self.row_counts += expected
        self._draw_cells()
        self.row_counts -= expected

    def run(self, n_sweeps: int, *, keep: bool) -> None:
        """Make sweeps, and remember their batch."""
        total, squares, inner = (np.zeros_like(self.theta) for _ in range(3))
        alphas, deltas, etas = np.empty((n_sweeps, len(self.alpha))), np.empty(n_sweeps), np.empty(n_sweeps)
        for t in range(n_sweeps):
            mean, variance = self.sweep()
            alphas[t], deltas[t], etas[t] = self.alpha, self.delta, self.eta
            if keep:
                total += mean
                squares += mean**2
                inner += variance
        self.path.append((float(deltas.mean()), float(np.log(alphas.sum(axis=1)).mean())))
        if keep:
            mean = total / n_sweeps
            spread = np.maximum(squares / n_sweeps - mean**2, 0.0)
            self.batches.append(Batch(mean, spread, inner / n_sweeps, alphas, deltas, etas))

    def sweep(self) -> tuple[Array, Array]:
        """Draw everything once; returns theta's mean and variance (rows, k) given the cells' components."""
        cells = self.cells
        self._draw_cells()
        mean, variance = np.empty_like(self.theta), np.empty_like(self.theta)
        if len(cells.level_theta):
            placed = self.n_done > PLACING[0] + PLACING[1] * len(self.alpha)
            if self.unknowns.contamination and placed and self.n_done % NOISE_EVERY == 0:
                self._draw_noise(far=self.n_done % FAR_EVERY == 0)
            shapes = self._draw_levels()
            if len(self.free_rows):
                self._draw_eta()
            size = cells.level_sums(shapes)
            share = shapes / size
            mean[cells.level_theta], variance[cells.level_theta] = share, share * (1.0 - share) / (size + 1.0)
        for rows, drawn in cells.draw_numbers(self.counts.astype(np.float64), self.theta, self.rng):
            self.theta[rows], mean[rows], variance[rows] = drawn.theta, drawn.mean, drawn.variance
        self._draw_alpha()
        return mean, variance

    def _draw_cells(self) -> None:
        """Draw the component of every cell given the others."""
        cells = self.cells
        assign_cells(
            cells.by_column, cells.starts, cells.absent, cells.likelihoods(self.noisy), self.alpha, self.cell_seed,
            self.n_done, self.assigned, self.row_counts, self.counts,
        )  # fmt: skip
        self.n_done += 1

    @property
    def noisy(self) -> Array:
        """Theta (rows, k), noise included."""
        return self.noise.added(self.theta, self.delta)

    @property
    def prior(self) -> Array | float:
        """Shapes of theta's Dirichlet prior: eta, or by level (level rows, k) where some levels have an order."""
        if not len(self.ordered.rows):
            return self.eta
        shapes = np.full((len(self.cells.level_theta), len(self.alpha)), self.eta)
        shapes[self.ordered.rows] = self.ordered.shapes
        return shapes

    def _draw_levels(self) -> Array:
        """Draw the noise cells, theta's levels, the prior of ordered ones and delta given the counts; returns the
        shapes of the levels' Dirichlet (level rows, k)."""
        rows = self.cells.level_theta
        counts = self.cells.level_counts(self.counts)
        kept = counts
        if self.delta > 0.0:
            of_noise = self.delta * self.noise.level[rows] / np.maximum(self.noisy[rows], 1e-300)
            noise = self.rng.binomial(counts, of_noise)
            kept = counts - noise
            if self.unknowns.contamination:
                noisy = self.noise.takes_part[rows]
                self.delta = float(self.rng.beta(1 + noise[noisy].sum(), 1 + kept[noisy].sum()))
        if len(self.ordered.rows):
            self.ordered.draw(kept[self.ordered.rows].astype(np.float64), self.rng)
        shapes = kept + self.prior
        draws = np.maximum(self.rng.standard_gamma(shapes), 1e-300)
        self.theta[rows] = draws / self.cells.level_sums(draws)
        return np.asarray(shapes)

    def _draw_noise(self, *, far: bool) -> None:
        """Draw delta given the counts, and with it theta's levels; ``far`` tries to come to none at all, or from it."""
        rows = self.cells.level_theta
        taking = self.noise.takes_part[rows]
        sizes = self.cells.level_sizes[taking[starts_of(self.cells.level_sizes)]]
        counts, prior = self.cells.level_counts(self.counts)[taking].astype(np.float64), self.prior
        held = NoiseCounts(counts, sizes, prior if isinstance(prior, float) else prior[taking])
        self.delta = draw_noise(held, self.delta, NO_NOISE, self.rng, far=far)
        if self.delta > 0.0:
            self.theta[rows[taking]] = held.theta(self.delta, self.rng)

    def _draw_alpha(self) -> None:
        k, q = self.above.shape
        if k == 1 and not self.unknowns.alpha0:
            return
        rows_above(self.row_counts, self.above)
        before = np.arange(q)
        tables = self.rng.binomial(self.above, self.alpha[:, None] / (self.alpha[:, None] + before)).sum(axis=1)
        alpha0 = float(self.alpha.sum())
        if self.unknowns.alpha0:

            def log_density(at: float) -> float:
                return float(tables.sum()) * at - float((self.longer * np.log(np.exp(at) + before)).sum())

            alpha0 = float(np.exp(draw_slice(log_density, np.log(alpha0), 0.2, LOG_ALPHA0, self.rng)))
        # a component that no cell is in keeps a positive alpha
        self.alpha = alpha0 * np.maximum(self.rng.dirichlet(1.0 + tables), 1e-6)

    def _draw_eta(self) -> None:
        levels, how_many = self.free_sizes
        k = len(self.alpha)
        logs = float(np.log(self.theta[self.free_rows]).sum())

        def log_density(at: float) -> float:
            eta = np.exp(at)
            prior = -0.5 * (at - np.log(0.5)) ** 2
            each = log_gamma(levels * eta) - levels * math.lgamma(eta)
            return float(k * (how_many * each).sum() + eta * logs + prior)

        self.eta = float(np.exp(draw_slice(log_density, np.log(self.eta), 0.3, LOG_ETA, self.rng)))


def _met(chains: list[Chain]) -> bool:
    """Whether the chains' contamination and log alpha0 were alike in the last batch."""
    ends = np.array([chain.path[-1] for chain in chains])
    apart = np.ptp(ends, axis=0)
    return bool(apart[0] <= max(0.002, 0.15 * ends[:, 0].mean()) and apart[1] <= 0.2)


def _still(chains: list[Chain]) -> bool:
    """Whether neither the chains' contamination nor their log alpha0 is on its way somewhere: that is where all chains
    moved the same way twice, of which there is a chance of one in eighteen where they only vary."""
    moves = np.diff([chain.path[-3:] for chain in chains], axis=1)  # (chains, 2, 2)
    one_way = np.abs(np.sign(moves).sum(axis=(0, 1))) == moves.shape[0] * moves.shape[1]
    return not (one_way & (np.abs(moves).mean(axis=(0, 1)) > STILL)).any()


def _orders(chains: list[Chain]) -> list[NDArray[np.int64]]:
    """The order of each chain's components that goes with the first chain's."""
    means = [np.mean([batch.mean for batch in chain.batches], axis=0) / chain.cells.units for chain in chains]
    return [align_components(means[0], mean) for mean in means]


def _stacked(chains: list[Chain], part: str) -> Array:
    """A part of all batches (chains, batches, …, k), components in the first chain's order."""
    orders = _orders(chains)
    return np.array(
        [
            [getattr(batch, part)[..., order] for batch in chain.batches]
            for chain, order in zip(chains, orders, strict=True)
        ]
    )


def _noise(means: Array) -> Array:
    """Variance of the mean over all batches (rows, k), from how batches (chains, batches, rows, k) differ."""
    n_chains, n_batches = means.shape[:2]
    flat = means.reshape(n_chains * n_batches, *means.shape[2:])
    within = flat.var(axis=0, ddof=1) / (n_chains * n_batches)
    between = means.mean(axis=1).var(axis=0, ddof=1) / n_chains
    # two chains' difference is a poor estimate for one entry but no worse than batches' on average over entries
    return np.asarray(np.maximum(within, 0.5 * (within + between)))


def _variance(chains: list[Chain], means: Array) -> Array:
    """Theta's posterior variance (rows, k): conditional variances on average and the variance of conditional means."""
    inner = _stacked(chains, "inner") + _stacked(chains, "spread")
    return np.asarray(inner.mean(axis=(0, 1)) + means.var(axis=(0, 1)))


def _noise_share(chains: list[Chain]) -> float:
    means, units = _stacked(chains, "mean"), chains[0].cells.units
    return float((_noise(means) / units**2).sum() / (_variance(chains, means) / units**2).sum())


def _rhat(chains: list[Chain]) -> Array:
    """Split R-hat of theta (rows, k): halves of chains against each other."""
    means = _stacked(chains, "mean")
    half = means.shape[1] // 2
    halves = np.concatenate([means[:, :half].mean(axis=1), means[:, -half:].mean(axis=1)])
    between = halves.var(axis=0, ddof=1)
    within = np.maximum(_variance(chains, means) - halves.var(axis=0), 1e-12 * chains[0].cells.units ** 2)
    return np.asarray(np.sqrt((within + between) / within))


def _agreement(rhat: Array) -> float:
    """The R-hat (rows, k) that nineteen of twenty entries do not exceed."""
    return float(np.quantile(rhat, 0.95))


def _agree(chains: list[Chain]) -> bool:
    """Whether the chains are alike in nineteen of twenty entries of theta."""
    return _agreement(_rhat(chains)) <= LARGEST_RHAT


def _pooled(chains: list[Chain], enough: bool, n_warm: int) -> Posterior:
    means = _stacked(chains, "mean")
    variance, noise = _variance(chains, means), _noise(means)
    orders = _orders(chains)
    kept = [batch for chain in chains for batch in chain.batches]
    return Posterior(
        theta=means.mean(axis=(0, 1)),
        theta_error=np.sqrt(variance),
        alpha_draws=np.concatenate(
            [batch.alpha[:, order] for chain, order in zip(chains, orders, strict=True) for batch in chain.batches]
        ),
        delta_draws=np.concatenate([batch.delta for batch in kept]),
        eta_draws=np.concatenate([batch.eta for batch in kept]),
        rhat=_rhat(chains),
        ess=np.minimum(variance / np.maximum(noise, 1e-300), len(kept) * BATCH),
        effective=min(1.0 / max(_noise_share(chains), 1e-300), float(len(kept) * BATCH)),
        n_chains=len(chains),
        n_warm=n_warm,
        n_sweeps=means.shape[1] * BATCH,
        converged=enough,
    )
