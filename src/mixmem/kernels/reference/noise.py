"""Slow forms of :mod:`mixmem.kernels.noise`: all levels and components at once; whole sums where cells are few."""

from __future__ import annotations

import math

import numpy as np

REACH = 16.0
TILTS = 4
FEW = 256

_log_gamma = np.vectorize(math.lgamma, otypes=[float])


def _kept_laws(counts, etas, noise):
    """Return for each level, one after another, the logarithms of the weights of 0, 1, …, count cells that are no
    noise, with what weights them by their sum left out."""
    laws = []
    for count, eta in zip(counts, etas, strict=True):
        kept = np.arange(count + 1)
        ways = _log_gamma(count + 1.0) - _log_gamma(kept + 1.0) - _log_gamma(count - kept + 1.0)
        laws.append(ways + (count - kept) * math.log(noise) + _log_gamma(eta + kept))
    return laws


def _log_convolved(left, right):
    """Return the logarithms of the convolution of two laws, given by theirs."""
    both = np.full((len(right), len(left) + len(right) - 1), -np.inf)
    for j, weight in enumerate(right):
        both[j, j : j + len(left)] = weight + left
    return np.logaddexp.reduce(both, axis=0)


def _sums_before(laws):
    """Return the logarithms of the weights of the sums of kept cells over no level, the first, the first two, …"""
    sums = [np.zeros(1)]
    for law in laws:
        sums.append(_log_convolved(sums[-1], law))
    return sums


def _by_sum(sums, etas):
    """Return the logarithms of the weights of the sums of kept cells over all levels, the whole integral's."""
    return sums[-1] - _log_gamma(etas.sum() + np.arange(len(sums[-1])))


def _fallen_on(logs, chance):
    """Return where a chance in [0, 1) falls among weights given by their logarithms."""
    passed = np.cumsum(np.exp(logs - logs.max()))
    return min(int((passed < passed[-1] * chance).sum()), len(logs) - 1)


def _balanced(tilt, counts, noise, etas):
    """Return t >= 0 with tilt t^2 + (tilt noise - eta - counts) t = eta noise, and the discriminant's root."""
    middle = etas + counts - tilt * noise
    root = np.maximum(np.sqrt(middle**2 + 4.0 * tilt * etas * noise), 1e-300)
    return np.where(middle > 0.0, (middle + root) / (2.0 * tilt), 2.0 * etas * noise / (root - middle + 1e-300)), root


def _reaches(at, power):
    """Return how far to the left and right of ``at`` t^power exp(-power t / at) has fallen by REACH, or further."""
    reach = REACH / np.maximum(power, 1e-9)
    return at * np.sqrt(2.0 * reach), at * (reach + np.sqrt(2.0 * reach))


def _tilts(counts, etas, bounds, noises):
    """Return the tilts (variables, k) at which the means of the parts sum to one."""
    sizes, starts = np.diff(bounds), bounds[:-1]
    noise = np.repeat(noises, sizes)[:, None]
    tilt = np.add.reduceat(counts + etas, starts) / (1.0 + sizes * noises)[:, None]
    for _ in range(TILTS):
        at, root = _balanced(np.repeat(tilt, sizes, axis=0), counts, noise, etas)
        slope = -np.add.reduceat((at + noise) * at / root, starts)
        tilt = tilt * np.exp(np.clip((1.0 - np.add.reduceat(at, starts)) / (slope * tilt), -1.0, 1.0))
    return tilt


def _parts(tilts, counts, etas, bounds, noises, from_zero, rules, plain):
    """Return nodes and weights (rows, k, m) of all parts, and the logarithms (rows, k) of their masses over those of
    the weights."""
    sizes = np.diff(bounds)
    tilt, noise = np.repeat(tilts, sizes, axis=0), np.repeat(noises, sizes)[:, None]
    beyond = np.maximum(etas - 1.0, 0.0)
    mode = np.maximum(_balanced(tilt, counts, noise, beyond)[0], 0.0)
    at = mode + noise
    left, right = _reaches(at, counts)
    nearer = (np.where(beyond > 0.0, side, np.inf) for side in _reaches(mode, beyond))
    left, right = (np.minimum(*both) for both in zip((left, right), nearer, strict=True))
    falls = tilt - counts / at - beyond / np.maximum(mode, 1e-300)
    high = mode + np.minimum(right, REACH / np.maximum(falls, 1e-300))
    low = np.maximum(mode - left, 0.0)
    zero = (low <= 0.0)[..., None]
    nodes = low[..., None] + (high - low)[..., None] * np.where(zero, from_zero[rules, 0], plain[0])
    logs = counts[..., None] * np.log((nodes + noise[..., None]) / at[..., None])
    logs -= tilt[..., None] * (nodes - mode[..., None])
    middle = np.where(zero[..., 0], 1.0, mode)
    logs += np.where(zero, 0.0, (etas - 1.0)[..., None] * np.log(np.maximum(nodes, 1e-300) / middle[..., None]))
    weights = np.exp(logs) * np.where(zero, from_zero[rules, 1], plain[1])
    with np.errstate(divide="ignore"):
        within = (etas - 1.0) * np.log(middle) + np.log(high - low)
        unit = np.where(zero[..., 0], etas * np.log(high) - np.log(etas), within)
    return nodes, weights, counts * np.log(at) - tilt * mode + unit


def noise_evidence(counts, etas, bounds, noises, from_zero, rules, plain, evidence):
    """Fill evidence (variables, k) with the logarithm of the integral of theta's density, without its constants."""
    few = _are_few(counts, bounds)
    for j, h in np.argwhere(few):
        rows = slice(bounds[j], bounds[j + 1])
        sums = _sums_before(_kept_laws(counts[rows, h], etas[rows, h], noises[j]))
        evidence[j, h] = np.logaddexp.reduce(_by_sum(sums, etas[rows, h]))
    tilts = _tilts(counts, etas, bounds, noises)
    nodes, weights, log_mass = _parts(tilts, counts, etas, bounds, noises, from_zero, rules, plain)
    mass = weights.sum(axis=2)
    means = (weights * nodes).sum(axis=2) / mass
    variances = (weights * (nodes - means[..., None]) ** 2).sum(axis=2) / mass
    mean, variance, found = (np.add.reduceat(x, bounds[:-1]) for x in (means, variances, log_mass + np.log(mass)))
    shape = mean**2 / variance
    gammas = np.vectorize(math.lgamma, otypes=[float])(shape)
    density = shape * np.log(shape) - shape - gammas - np.log(mean) - (mean - 1.0) ** 2 / (2.0 * variance)
    evidence[~few] = (tilts + found + density)[~few]


def _are_few(counts, bounds):
    """Return which variables in which components (variables, k) hold few cells."""
    return np.add.reduceat(counts, bounds[:-1]) <= FEW


def kept_cells(counts, etas, bounds, noises, chances, kept):
    """Draw how many cells (rows, k) are no noise, by chances (rows, k); -1 for variables with many cells."""
    kept[:] = -1.0
    for j, h in np.argwhere(_are_few(counts, bounds)):
        rows = np.arange(bounds[j], bounds[j + 1])
        laws = _kept_laws(counts[rows, h], etas[rows, h], noises[j])
        sums = _sums_before(laws)
        left = _fallen_on(_by_sum(sums, etas[rows, h]), chances[rows[0], h])
        kept[rows, h] = 0.0
        held = rows[counts[rows, h] > 0.0]
        for row in held[:0:-1]:
            at = row - rows[0]
            least = max(left - len(sums[at]) + 1, 0)
            own = np.arange(least, min(int(counts[row, h]), left) + 1)
            kept[row, h] = own[_fallen_on(laws[at][own] + sums[at][left - own], chances[row, h])]
            left -= int(kept[row, h])
        kept[held[:1], h] = left


def noise_levels(counts, etas, bounds, noises, from_zero, rules, plain, chances, theta):
    """Draw theta (rows, k) of variables with many cells given the noise, nearly: at the nodes that chances (rows, k) in
    [0, 1) fall on. The others are left as they are."""
    tilts = _tilts(counts, etas, bounds, noises)
    nodes, weights, _ = _parts(tilts, counts, etas, bounds, noises, from_zero, rules, plain)
    sums = np.cumsum(weights, axis=2)
    taken = np.minimum((sums < sums[..., -1:] * chances[..., None]).sum(axis=2), weights.shape[2] - 1)
    drawn = np.maximum(np.take_along_axis(nodes, taken[..., None], axis=2)[..., 0], 1e-300)
    many = np.repeat(~_are_few(counts, bounds), np.diff(bounds), axis=0)
    theta[many] = (drawn / np.repeat(np.add.reduceat(drawn, bounds[:-1]), np.diff(bounds), axis=0))[many]
