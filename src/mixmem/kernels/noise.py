"""The law of theta's levels where a share of the cells is noise: its mass, and draws from it.

Of a variable in a component, level l has c_l cells. Up to a factor theta has the density
prod_l theta_l^(eta_l - 1) (theta_l + b)^(c_l) on the simplex, b = delta / (d (1 - delta)).

Few cells (FEW at most): (theta_l + b)^(c_l) is a sum over the number j_l of cells that are no noise, and given these
theta is Dirichlet(eta + j). The integral depends on them by prod_l Gamma(eta_l + j_l) and by their sum alone, so the
laws of single levels are convolved: exact.

Many cells: a product of parts, each tilted by exp(-tilt theta_l) until the means of the parts sum to one, with the
density of their sum taken for that of a gamma law. With few cells that would favour noise, by some hundredths in the
logarithm for every variable in every component.
"""

from __future__ import annotations

import math

import numpy as np

from mixmem.kernels._numba import kernel

REACH = 16.0
"""How far down in logarithms a part is followed to either side of its mode."""
TILTS = 4
"""Newton's steps towards the tilt at which means sum to one; a parabola does the rest."""
FEW = 256
"""Cells of a variable in a component up to which sums over their noise are made."""
LEAST = 1e-24
"""Terms that are smaller by so much than the largest are left out at the lower end of such a sum."""
LARGEST = 1e100
"""Where terms of such a sum are scaled down."""


@kernel
def _cells_in(counts, etas, first, last, h):
    """Return the cells of the levels first to last in component h, how many of these levels hold any, and the sum of
    their etas."""
    cells, held, shape = 0.0, 0, 0.0
    for row in range(first, last):
        cells += counts[row, h]
        shape += etas[row, h]
        if counts[row, h] > 0.0:
            held += 1
    return cells, held, shape


@kernel
def _fill_kept(count, noise, eta, scale, law):
    """Fill law[j] with the weight of j cells that are no noise, C(count, j) noise^(count - j) Gamma(eta + j) / scale^j,
    over the largest; returns its logarithm, and where weights that count begin."""
    first, largest, unit = int(count), 1.0, math.lgamma(eta + count) - count * math.log(scale)
    law[first] = 1.0
    for j in range(int(count) - 1, -1, -1):
        law[j] = law[j + 1] * ((j + 1.0) * noise * scale) / ((count - j) * (eta + j))
        first = j
        largest = max(largest, law[j])
        if law[j] < LEAST * largest:  # they only fall from here: to the first, not by more than 1 / eta
            break
        if largest > LARGEST:
            for at in range(j, int(count) + 1):
                law[at] /= LARGEST
            largest, unit = largest / LARGEST, unit + math.log(LARGEST)
    for j in range(first, int(count) + 1):
        law[j] /= largest
    return unit + math.log(largest), first


@kernel
def _convolved(counts, etas, begin, end, h, noise, scale, law, laws, spans):
    """Fill laws[m] (m-th level that holds cells) with the weights of the sums of kept cells over the levels before it
    and itself, spans[m] with where they begin and end; returns the logarithm of their unit."""
    unit, m = 0.0, 0
    for row in range(begin, end):
        if counts[row, h] == 0.0:
            unit += math.lgamma(etas[row, h])
            continue
        own, first = _fill_kept(counts[row, h], noise, etas[row, h], scale, law)
        unit, last = unit + own, int(counts[row, h]) + 1
        if m == 0:
            laws[0, first:last] = law[first:last]
            spans[0, 0], spans[0, 1] = first, last
        else:
            low, high = spans[m - 1, 0], spans[m - 1, 1]
            laws[m, low + first : high + last - 1] = 0.0
            for j in range(first, last):
                weight = law[j]
                for at in range(low, high):
                    laws[m, at + j] += weight * laws[m - 1, at]
            most = 0.0
            for at in range(low + first, high + last - 1):
                most = max(most, laws[m, at])
            for at in range(low + first, high + last - 1):
                laws[m, at] /= most
            unit += math.log(most)
            spans[m, 0], spans[m, 1] = low + first, high + last - 1
        m += 1
    return unit


@kernel
def _weigh_sums(sums, first, last, shape, scale):
    """Multiply sums[first:last] by scale^s / Gamma(shape + s) over that of the last; returns their sum and the
    logarithm of that weight."""
    weight, total = 1.0, 0.0
    for at in range(last - 1, first - 1, -1):
        sums[at] *= weight
        total += sums[at]
        weight *= (shape + at - 1.0) / scale
    return total, (last - 1) * math.log(scale) - math.lgamma(shape + last - 1)


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
            height += (eta - 1.0) * math.log(max(node, 1e-300) / mode)
        nodes[m], weights[m] = node, math.exp(height) * rule[1, m]
    top = count * math.log(at) - tilt * mode
    if low <= 0.0:
        return top + (eta * math.log(high) - math.log(eta))
    return top + ((eta - 1.0) * math.log(mode) + math.log(high - low))


@kernel
def noise_evidence(counts, etas, bounds, noises, from_zero, rules, plain, evidence):
    """Fill evidence (variables, k) with the logarithm of the integral of theta's density, without its constants.

    counts and etas (rows, k): cells and prior shapes of each level in each component; variable j has the rows bounds[j]
    to bounds[j + 1] and noises[j] its b. from_zero (rules, 2, m) Gauss' rules for t^(eta - 1) on (0, 1), rules (rows,
    k) which of them; plain (2, m) the rule for parts that are nothing near zero: both for many cells, where the density
    of the sum of parts, at one, is that of the gamma law with their mean and variance.
    """
    size = plain.shape[1]
    nodes, weights = np.empty(size), np.empty(size)
    law, laws, spans = np.empty(FEW + 1), np.empty((FEW, FEW + 1)), np.empty((FEW, 2), np.int64)
    for j in range(noises.shape[0]):
        for h in range(counts.shape[1]):
            cells, held, shape = _cells_in(counts, etas, bounds[j], bounds[j + 1], h)
            if cells <= FEW:
                scale = shape + cells
                found = _convolved(counts, etas, bounds[j], bounds[j + 1], h, noises[j], scale, law, laws, spans)
                if held == 0:
                    evidence[j, h] = found - math.lgamma(shape)
                    continue
                total, unit = _weigh_sums(laws[held - 1], spans[held - 1, 0], spans[held - 1, 1], shape, scale)
                evidence[j, h] = found + unit + math.log(total)
                continue
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
    """Draw theta (rows, k) of variables with many cells given the noise, nearly: at the nodes that chances (rows, k) in
    [0, 1) fall on. The others are left as they are."""
    size = plain.shape[1]
    nodes, weights = np.empty(size), np.empty(size)
    for j in range(noises.shape[0]):
        for h in range(counts.shape[1]):
            cells, _, _ = _cells_in(counts, etas, bounds[j], bounds[j + 1], h)
            if cells <= FEW:
                continue
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


@kernel
def kept_cells(counts, etas, bounds, noises, chances, kept):
    """Draw how many cells (rows, k) are no noise, by chances (rows, k) in [0, 1), for variables with few cells.

    Given these theta is Dirichlet(eta + kept). Those of variables with many cells are -1.
    """
    law, laws, spans = np.empty(FEW + 1), np.empty((FEW, FEW + 1)), np.empty((FEW, 2), np.int64)
    for j in range(noises.shape[0]):
        begin, end = bounds[j], bounds[j + 1]
        for h in range(counts.shape[1]):
            cells, held, shape = _cells_in(counts, etas, begin, end, h)
            if cells > FEW:
                kept[begin:end, h] = -1.0
                continue
            kept[begin:end, h] = 0.0
            if held == 0:
                continue
            scale = shape + cells
            _convolved(counts, etas, begin, end, h, noises[j], scale, law, laws, spans)
            low, high = spans[held - 1, 0], spans[held - 1, 1]
            total, _ = _weigh_sums(laws[held - 1], low, high, shape, scale)
            left, rest = low, total * chances[begin, h] - laws[held - 1, low]
            while rest > 0.0 and left < high - 1:
                left += 1
                rest -= laws[held - 1, left]
            m = held - 1
            for row in range(end - 1, begin - 1, -1):
                if counts[row, h] == 0.0:
                    continue
                if m == 0:
                    kept[row, h] = left
                    break
                _, first = _fill_kept(counts[row, h], noises[j], etas[row, h], scale, law)
                first = max(first, left - spans[m - 1, 1] + 1)
                last = min(int(counts[row, h]), left - spans[m - 1, 0]) + 1
                total = 0.0
                for own in range(first, last):
                    total += law[own] * laws[m - 1, left - own]
                own, rest = first, total * chances[row, h] - law[first] * laws[m - 1, left - first]
                while rest > 0.0 and own < last - 1:
                    own += 1
                    rest -= law[own] * laws[m - 1, left - own]
                kept[row, h] = own
                left -= own
                m -= 1
