"""The Dirichlet correction of raw moments, and moments in closed form (paper, section 3.2 and appendix A)."""

from __future__ import annotations

import numpy as np

from mixmem.typing import Array as Array


def correct_third(
    raw: Array, pairs: tuple[Array, Array, Array], means: tuple[Array, Array, Array], alpha0: float
) -> Array:
    """Apply the Dirichlet correction to raw third moments.

    Parameters
    ----------
    raw : (a, b, c) array
        E[b_u x b_v x b_w] of three variables, or of three groups of them.
    pairs : three arrays
        E[b_u x b_v] (a, b), E[b_u x b_w] (a, c) and E[b_v x b_w] (b, c).
    means : three arrays
        E[b_u] (a,), E[b_v] (b,) and E[b_w] (c,).
    alpha0 : float
        Sum of alpha.

    Returns
    -------
    (a, b, c) array
        M3 of the three, as :func:`third_moment` has it in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> half, pair, triple = np.full(2, 0.5), np.full((2, 2), 0.25), np.full((2, 2, 2), 0.125)
    >>> correct_third(triple, (pair, pair, pair), (half, half, half), alpha0=1.0).round(6)[0]
    array([[0.041667, 0.041667],
           [0.041667, 0.041667]])
    """
    once = alpha0 / (alpha0 + 2.0)
    twice = 2.0 * alpha0**2 / ((alpha0 + 1.0) * (alpha0 + 2.0))
    u, v, w = means[0][:, None, None], means[1][None, :, None], means[2][None, None, :]
    crossed = u * pairs[2][None, :, :] + v * pairs[1][:, None, :] + w * pairs[0][:, :, None]
    return np.asarray(raw - once * crossed + twice * u * v * w)


def correct_second(raw: Array, left: Array, right: Array, alpha0: float) -> Array:
    """Apply the Dirichlet correction to raw second moments.

    M^{js} = E[b_j x b_s] - alpha0 / (alpha0 + 1) E[b_j] E[b_s]'.

    Parameters
    ----------
    raw : (a, b) array
        E[b_j x b_s].
    left, right : (a,) and (b,) arrays
        E[b_j] and E[b_s].
    alpha0 : float
        Sum of alpha.

    Returns
    -------
    (a, b) array
        M^{js}.
    """
    return np.asarray(raw - alpha0 / (alpha0 + 1.0) * np.outer(left, right))


def second_moment(theta: Array, alpha: Array) -> Array:
    """Return M2 in closed form (equation 2): sum_h alpha_h / (alpha0 (alpha0 + 1)) theta_h x theta_h.

    Parameters
    ----------
    theta : (rows, k) array
        Probabilities of levels in components, variables stacked.
    alpha : (k,) array
        Concentrations of the Dirichlet distribution of memberships.

    Returns
    -------
    (rows, rows) array

    Examples
    --------
    >>> import numpy as np
    >>> second_moment(np.eye(2), np.array([1.0, 1.0]))
    array([[0.16666667, 0.        ],
           [0.        , 0.16666667]])
    """
    alpha0 = alpha.sum()
    return np.asarray((theta * (alpha / (alpha0 * (alpha0 + 1.0)))) @ theta.T)


def third_moment(theta_u: Array, theta_v: Array, theta_w: Array, alpha: Array) -> Array:
    """Return M3 in closed form (equation 3): sum_h w_h theta_uh x theta_vh x theta_wh, w_h as in :func:`weights_of`.

    Parameters
    ----------
    theta_u, theta_v, theta_w : (a, k), (b, k) and (c, k) arrays
        Probabilities of levels in components, of three disjoint groups of variables.
    alpha : (k,) array
        Concentrations of the Dirichlet distribution of memberships.

    Returns
    -------
    (a, b, c) array

    Examples
    --------
    >>> import numpy as np
    >>> float(third_moment(np.eye(2), np.eye(2), np.eye(2), np.array([1.0, 1.0]))[0, 0, 0])
    0.08333333333333333
    """
    return np.asarray(np.einsum("ah,bh,ch,h->abc", theta_u, theta_v, theta_w, weights_of(alpha)))


def weights_of(alpha: Array) -> Array:
    """Return the weights of components in the third moment: w_h = 2 alpha_h / (alpha0 (alpha0 + 1) (alpha0 + 2)).

    Parameters
    ----------
    alpha : (k,) array
        Concentrations of the Dirichlet distribution of memberships.

    Returns
    -------
    (k,) array

    Examples
    --------
    >>> import numpy as np
    >>> weights_of(np.array([1.0, 1.0])).round(6)
    array([0.083333, 0.083333])
    """
    alpha0 = alpha.sum()
    return np.asarray(2.0 * alpha / (alpha0 * (alpha0 + 1.0) * (alpha0 + 2.0)))
