"""Slow forms of :mod:`mixmem.kernels.ordered`: a softmax over the levels of each variable, and its likelihood."""

from __future__ import annotations

import numpy as np


def ordered_fit(counts, a, b, scores, starts, strength, waiting, out):
    """Set out to log p(counts | shapes), theta integrated out, of the variables and components that are waiting."""
    from scipy.special import gammaln

    owner = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(counts))))
    logs = a + np.einsum("dr,drk->rk", scores, b[:, owner])
    likely = np.maximum(np.exp(logs - np.maximum.reduceat(logs, starts, axis=0)[owner]), 1e-30)
    shapes = strength * likely / np.add.reduceat(likely, starts, axis=0)[owner]
    fit = np.add.reduceat(gammaln(counts + shapes) - gammaln(shapes), starts, axis=0)
    out[waiting] = fit[waiting]
