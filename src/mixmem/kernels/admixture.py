"""Newton steps for diploid biallelic loci.

With f_ij = sum_h x_ih p_jh a genotype of g copies adds g log f + (2 - g) log(1 - f) to the log-likelihood, which is
concave in a locus' frequencies p_j alone and in a row's memberships x_i alone: here are the derivatives by either, and
the steps. Genotypes come locus by locus, (m, n) of 0, 1, 2 copies, 3 missing; memberships as x (k, n); of the rows
those from ``first`` to ``last`` are taken, few enough for what is computed of them to stay in the cache.
"""

from __future__ import annotations

import numpy as np

from mixmem.kernels._numba import kernel, vector_kernel

_FOLD = 16  # loci multiplied before looking whether to take a logarithm: of 1e-6 ** 2 each, the product is a number yet
_CYCLES = 100


@vector_kernel
def locus_sums(genotypes, x, p, weights, first, last, gradients, hessians):
    """Add the rows' derivatives by the loci's frequencies p (m, k), times their weights (n,).

    gradients (m, k); hessians (m, k (k + 1) / 2), minus the second derivatives, lower halves row by row.
    """
    k, t = x.shape[0], last - first
    f, slope, curve, weight = np.empty(t), np.empty(t), np.empty(t), weights[first:last]
    for j in range(p.shape[0]):
        row = genotypes[j][first:last]
        f[:] = 0.0
        for h in range(k):
            own, value = x[h][first:last], p[j, h]
            for i in range(t):
                f[i] += own[i] * value
        for i in range(t):
            copies, rest = float(row[i]), 1.0 - f[i]
            inverse = 1.0 / (f[i] * rest)
            scale = weight[i] * inverse if row[i] < 3 else 0.0
            up, down = copies * rest * scale, (2.0 - copies) * f[i] * scale
            slope[i] = up - down
            curve[i] = (up * rest + down * f[i]) * inverse
        at = 0
        for h in range(k):
            own = x[h][first:last]
            total = 0.0
            for i in range(t):
                total += slope[i] * own[i]
            for i in range(t):
                f[i] = curve[i] * own[i]
            gradients[j, h] += total
            for g in range(h + 1):
                other = x[g][first:last]
                total = 0.0
                for i in range(t):
                    total += f[i] * other[i]
                hessians[j, at] += total
                at += 1


@vector_kernel
def row_sums(genotypes, x, p, first, last, hessians, values):
    """Add the loci's part in the rows' second derivatives and log-likelihoods.

    p (m, k); hessians (k (k + 1) / 2, n), minus the second derivatives, the lower half's entries row by row;
    values (n,).
    """
    m, k, t = p.shape[0], x.shape[0], last - first
    f, product, up, down = np.empty(t), np.ones(t), np.empty(t), np.empty(t)
    for j in range(m):
        row = genotypes[j][first:last]
        f[:] = 0.0
        for h in range(k):
            own, value = x[h][first:last], p[j, h]
            for i in range(t):
                f[i] += own[i] * value
        for i in range(t):
            copies, rest = float(row[i]), 1.0 - f[i]
            inverse = 1.0 / (f[i] * rest)
            scale = inverse * inverse if row[i] < 3 else 0.0
            one = f[i] if row[i] == 2 else rest
            two = rest if row[i] == 0 else f[i]
            product[i] *= one * two if row[i] < 3 else 1.0
            up[i] = copies * rest * rest * scale
            down[i] = (2.0 - copies) * f[i] * f[i] * scale
        at = 0
        for h in range(k):
            for g in range(h + 1):
                a, b = p[j, h] * p[j, g], (1.0 - p[j, h]) * (1.0 - p[j, g])
                sums = hessians[at][first:last]
                for i in range(t):
                    sums[i] += a * up[i] + b * down[i]
                at += 1
        if j % _FOLD == _FOLD - 1 or j == m - 1:
            least = 1.0
            for i in range(t):
                least = min(least, product[i])
            if least < 1e-100 or j == m - 1:
                for i in range(t):
                    values[first + i] += np.log(product[i])
                    product[i] = 1.0


@kernel
def box_steps(hessians, gradients, low, high, damped, tolerance, x):
    """Take a Newton step inside the box for every row of x (m, k), in place.

    hessians (m, k (k + 1) / 2): minus the second derivatives, lower halves row by row; gradients (m, k). The step d
    maximises gradient'd - d'Hd / 2 with low <= x + d <= high, by cyclic coordinate descent until a cycle changes it by
    no more than ``tolerance``. Where ``damped``, a step of length r = sqrt(d'Hd) > 0.6 is shortened to d / (1 + r):
    sums of logarithms never fall by that.
    """
    m, k = x.shape
    step, slope, inverse, system = np.empty(k), np.empty(k), np.empty(k), np.empty((k, k))
    for j in range(m):
        at = 0
        for h in range(k):
            step[h] = 0.0
            slope[h] = gradients[j, h]
            for g in range(h + 1):
                system[h, g] = hessians[j, at]
                system[g, h] = hessians[j, at]
                at += 1
            inverse[h] = 1.0 / (system[h, h] + 1e-9)
        for _ in range(_CYCLES):
            most = 0.0
            for h in range(k):
                value = step[h] + slope[h] * inverse[h]
                value = min(max(value, low - x[j, h]), high - x[j, h])
                change = value - step[h]
                step[h] = value
                most = max(most, abs(change))
                for g in range(k):
                    slope[g] -= system[h, g] * change
            if most <= tolerance:
                break
        length = 0.0
        for h in range(k):
            length += step[h] * (gradients[j, h] - slope[h])
        size = 1.0 / (1.0 + np.sqrt(length)) if damped and length > 0.36 else 1.0
        for h in range(k):
            x[j, h] = min(max(x[j, h] + size * step[h], low), high)
