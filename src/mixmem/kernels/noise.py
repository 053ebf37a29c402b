"""The law of theta's levels where a share of the cells is noise: its mass, and draws from it.

Of a variable in a component, level l has c_l cells. Up to a factor theta has the density
prod_l theta_l^(eta_l - 1) (theta_l + b)^(c_l) on the simplex, b = delta / (d (1 - delta)): a product of parts, each
tilted by exp(-tilt theta_l) until the means of the parts sum to one.
"""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel

REACH = 16.0
"""How far down in logarithms a part is followed to either side of its mode."""
TILTS = 4
"""Newton's steps towards the tilt at which means sum to one; a parabola does the rest."""


@kernel
def _balanced(tilt, count, noise, eta):
    """Return t, not negative, with tilt t^2 + (tilt noise - eta - count) t = eta noise, and the discriminant's root.

    That is nearly the mean of a part, and exactly so without noise.
    """
    middle = eta + count - tilt * noise
    root = max(math.sqrt(middle * middle + 4.0 * tilt * eta * noise), 1e-300)
    if middle > 0.0:
        return (middle + root) / (2.0 * tilt), root
    return 2.0 * eta * noise / (root - middle + 1e-300), root


@kernel
def _reaches(at, power):
    """Return how far to the left and right of ``at`` t^power exp(-power t / at) has fallen by REACH, or further."""
    reach = REACH / max(power, 1e-9)
    side = math.sqrt(2.0 * reach)
    return at * side, at * (reach + side)


@kernel
def _tilt_of(counts, etas, first, last, h, noise):
    """Return the tilt of the levels first to last of component h."""
    size, weight = 0.0, 0.0
    for row in range(first, last):
        size += 1.0
        weight += counts[row, h] + etas[row, h]
    tilt = weight / (1.0 + size * noise)
    for _ in range(TILTS):
        mean, slope = 0.0, 0.0
        for row in range(first, last):
            at, root = _balanced(tilt, counts[row, h], noise, etas[row, h])
            mean += at
            slope -= (at + noise) * at / root
        tilt *= math.exp(min(max((1.0 - mean) / (slope * tilt), -1.0), 1.0))
    return tilt


@kernel
def _fill_part(tilt, count, noise, eta, from_zero, plain, nodes, weights):
    """Fill nodes and weights (m,) of the part of a level; returns the logarithm of its mass over that of the weights.

    Nodes lie where the mass does: from zero, by the rule from_zero (2, m) for t^(eta - 1) on (0, 1), or about the mode
    by the rule plain (2, m).
    """
    beyond = max(eta - 1.0, 0.0)
    mode, _ = _balanced(tilt, count, noise, beyond)
    mode = max(mode, 0.0)
    at = mode + noise
    left, right = _reaches(at, count)
    if beyond > 0.0:
        nearer, near = _reaches(mode, beyond)
        left, right = min(left, nearer), min(right, near)
    falls = tilt - count / at - beyond / max(mode, 1e-300)
    high = mode + min(right, REACH / max(falls, 1e-300))
    low = max(mode - left, 0.0)
    rule = from_zero if low <= 0.0 else plain
    for m in range(nodes.shape[0]):
        node = low + (high - low) * rule[0, m]
        height = -tilt * (node - mode)
        if count > 0.0:
            height += count * math.log((node + noise) / at)
        if low > 0.0:
            height += (eta - 1.0) * math.log(max(node, 1e-300))
        nodes[m], weights[m] = node, math.exp(height) * rule[1, m]
    unit = eta * math.log(high) - math.log(eta) if low <= 0.0 else math.log(high - low)
    return count * math.log(at) - tilt * mode + unit


@kernel
def noise_evidence(counts, etas, bounds, noises, from_zero, rules, plain, evidence):
    """Fill evidence (variables, k) with the logarithm of the integral of theta's density, without its constants.

    counts and etas (rows, k): cells and prior shapes of each level in each component; variable j has the rows bounds[j]
    to bounds[j + 1] and noises[j] its b. from_zero (rules, 2, m) Gauss' rules for t^(eta - 1) on (0, 1), rules (rows,
    k) which of them; plain (2, m) the rule for parts that are nothing near zero. The density of the sum of parts, at
    one, is that of the gamma law with their mean and variance.
    """
    size = plain.shape[1]
    nodes, weights = np.empty(size), np.empty(size)
    for j in range(noises.shape[0]):
        for h in range(counts.shape[1]):
            tilt = _tilt_of(counts, etas, bounds[j], bounds[j + 1], h, noises[j])
            found, mean, variance = tilt, 0.0, 0.0
            for row in range(bounds[j], bounds[j + 1]):
                rule = from_zero[rules[row, h]]
                found += _fill_part(tilt, counts[row, h], noises[j], etas[row, h], rule, plain, nodes, weights)
                mass, first, second = 0.0, 0.0, 0.0
                for m in range(size):
                    mass += weights[m]
                    first += weights[m] * nodes[m]
                first /= mass
                for m in range(size):
                    second += weights[m] * (nodes[m] - first) ** 2
                found += math.log(mass)
                mean += first
                variance += second / mass
            shape = mean * mean / variance
            found += shape * math.log(shape) - shape - math.lgamma(shape) - math.log(mean)
            evidence[j, h] = found - (mean - 1.0) ** 2 / (2.0 * variance)


@kernel
def noise_levels(counts, etas, bounds, noises, from_zero, rules, plain, chances, theta):
    """Draw theta (rows, k) given the noise, nearly: at the nodes that chances (rows, k) in [0, 1) fall on."""
    size = plain.shape[1]
    nodes, weights = np.empty(size), np.empty(size)
    for j in range(noises.shape[0]):
        for h in range(counts.shape[1]):
            tilt = _tilt_of(counts, etas, bounds[j], bounds[j + 1], h, noises[j])
            total = 0.0
            for row in range(bounds[j], bounds[j + 1]):
                rule = from_zero[rules[row, h]]
                _fill_part(tilt, counts[row, h], noises[j], etas[row, h], rule, plain, nodes, weights)
                mass = 0.0
                for m in range(size):
                    mass += weights[m]
                m, rest = 0, mass * chances[row, h] - weights[0]
                while rest > 0.0 and m < size - 1:
                    m += 1
                    rest -= weights[m]
                theta[row, h] = max(nodes[m], 1e-300)
                total += theta[row, h]
            for row in range(bounds[j], bounds[j + 1]):
                theta[row, h] /= total
