"""The Dirichlet correction of raw moments, and moments in closed form (paper, section 3.2 and appendix A)."""

from __future__ import annotations

import numpy as np

from mixmem.typing import Array as Array


def correct_third(
    raw: Array, pairs: tuple[Array, Array, Array], means: tuple[Array, Array, Array], alpha0: float
) -> Array:
    """Apply the Dirichlet correction to raw third moments.

    ``raw`` (a, b, c) = E[b_u x b_v x b_w]; ``pairs`` = E[b_u x b_v] (a, b), E[b_u x b_w] (a, c), E[b_v x b_w] (b, c);
    ``means`` (a,), (b,), (c,).
    """
    once = alpha0 / (alpha0 + 2.0)
    twice = 2.0 * alpha0**2 / ((alpha0 + 1.0) * (alpha0 + 2.0))
    u, v, w = means[0][:, None, None], means[1][None, :, None], means[2][None, None, :]
    crossed = u * pairs[2][None, :, :] + v * pairs[1][:, None, :] + w * pairs[0][:, :, None]
    return np.asarray(raw - once * crossed + twice * u * v * w)


def correct_second(raw: Array, left: Array, right: Array, alpha0: float) -> Array:
    """M^{js} = E[b_j x b_s] - alpha0 / (alpha0 + 1) E[b_j] E[b_s]'; raw (a, b), left (a,), right (b,)."""
    return np.asarray(raw - alpha0 / (alpha0 + 1.0) * np.outer(left, right))


def second_moment(theta: Array, alpha: Array) -> Array:
    """M2 in closed form (equation 2): sum_h alpha_h / (alpha0 (alpha0 + 1)) theta_h x theta_h; theta (rows, k).

    >>> import numpy as np
    >>> second_moment(np.eye(2), np.array([1.0, 1.0]))
    array([[0.16666667, 0.        ],
           [0.        , 0.16666667]])
    """
    alpha0 = alpha.sum()
    return np.asarray((theta * (alpha / (alpha0 * (alpha0 + 1.0)))) @ theta.T)


def third_moment(theta_u: Array, theta_v: Array, theta_w: Array, alpha: Array) -> Array:
    """M3 in closed form (equation 3): sum_h w_h theta_uh x theta_vh x theta_wh, w_h as in :func:`weights_of`.

    >>> import numpy as np
    >>> float(third_moment(np.eye(2), np.eye(2), np.eye(2), np.array([1.0, 1.0]))[0, 0, 0])
    0.08333333333333333
    """
    return np.asarray(np.einsum("ah,bh,ch,h->abc", theta_u, theta_v, theta_w, weights_of(alpha)))


def weights_of(alpha: Array) -> Array:
    """Weights of the components in the third moment: w_h = 2 alpha_h / (alpha0 (alpha0 + 1) (alpha0 + 2))."""
    alpha0 = alpha.sum()
    return np.asarray(2.0 * alpha / (alpha0 * (alpha0 + 1.0) * (alpha0 + 2.0)))
