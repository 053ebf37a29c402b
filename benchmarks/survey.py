"""Survey practice: coverage of group differences, corrected and naive, and of intervals of theta from weighted samples.

Two groups with Dirichlet memberships of other means; alpha0, theta and noise are estimated by the default fit. For
weights, rows are kept with a probability that rises with their membership in the first component, and weigh its
inverse; no refinement, intervals by the jackknife. Nothing was chosen on these draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from mixmem import GDLM, align_components

SHAPES = ((1_000, 15, 3, 0.5), (600, 25, 3, 1.0), (2_000, 12, 4, 0.3), (1_500, 30, 4, 2.0))
"""Rows, variables, components and alpha0."""
LEVELS = 3


def drawn(n: int, p: int, k: int, alpha0: float, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Codes (n, p), groups (n,), the groups' mean memberships (2, k), memberships (n, k) and theta (3 p, k)."""
    theta = np.concatenate([rng.dirichlet(np.full(LEVELS, 0.5), size=k).T for _ in range(p)])
    groups = rng.integers(0, 2, n)
    means = np.stack([np.full(k, 1 / k), rng.dirichlet(np.full(k, 3.0))])
    shares = np.stack([rng.dirichlet(alpha0 * means[group]) for group in groups])
    components = (rng.random((n, p, 1)) > shares.cumsum(axis=1)[:, None, :]).sum(axis=2).clip(max=k - 1)
    levels = theta.reshape(p, LEVELS, k).cumsum(axis=1)
    cells = np.stack([levels[j][:, components[:, j]].T for j in range(p)], axis=1)
    return (rng.random((n, p, 1)) > cells).sum(axis=2).clip(max=LEVELS - 1), groups, means, shares, theta


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per shape."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, shape in enumerate(SHAPES):
            yield _differences(at, *shape, draws=3 if quick else 15)
        for at, shape in enumerate(((4_000, 12, 3, 0.6), (3_000, 20, 3, 1.0), (1_500, 15, 3, 0.6))):
            for given in (True, False):
                yield _weights(at, *shape, draws=3 if quick else 10, given=given)


def _differences(at: int, n: int, p: int, k: int, alpha0: float, draws: int) -> dict[str, float | int | str]:
    errors, naive, held, naive_held = [], [], [], []
    for seed in range(draws):
        codes, groups, means, _, theta = drawn(n, p, k, alpha0, np.random.default_rng([at, seed]))
        model = GDLM(k, random_state=0).fit(codes)
        if model._noisy.shape != theta.shape:  # a level that never occurred
            continue
        truth = means[0] - means[1]
        order = align_components(theta, model._noisy)
        lines = model.compare(model._training.table, by=groups).differences
        found, error = (lines[name].to_numpy()[order] for name in ("difference", "standard_error"))
        rows = model.memberships_[:, order]
        parts = [rows[groups == group] for group in (0, 1)]
        plain = parts[0].mean(axis=0) - parts[1].mean(axis=0)
        plain_error = np.sqrt(sum(part.var(axis=0) / len(part) for part in parts))
        errors.append(found - truth)
        naive.append(plain - truth)
        held.append(np.abs(found - truth) < 1.96 * error)
        naive_held.append(np.abs(plain - truth) < 1.96 * plain_error)
    return {
        "what": f"group differences, {n} x {p}, k = {k}, alpha0 = {alpha0}", "draws": len(errors),
        "coverage": float(np.mean(held)), "naive coverage": float(np.mean(naive_held)),
        "RMSE": _rms(errors), "naive RMSE": _rms(naive),
    }  # fmt: skip


def _weights(
    at: int, n: int, p: int, k: int, alpha0: float, draws: int, *, given: bool
) -> dict[str, float | int | str]:
    held = []
    for seed in range(draws):
        rng = np.random.default_rng([10 + at, seed])
        codes, _, _, shares, theta = drawn(n, p, k, alpha0, rng)
        chance = 0.15 + 0.6 * shares[:, 0]
        kept = rng.random(n) < chance
        model = GDLM(k, alpha0=alpha0 if given else "auto", random_state=0)
        model.fit(codes[kept], sample_weight=1 / chance[kept])
        if model._noisy.shape != theta.shape:
            continue
        lines = model.intervals().query("parameter == 'theta'")
        low, high = (
            np.column_stack([own[name].to_numpy() for _, own in lines.groupby("component", sort=True)])
            for name in ("lower", "upper")
        )
        order = align_components(theta, model._noisy)
        held.append(((low[:, order] <= theta) & (theta <= high[:, order])).mean())
    what = f"weighted intervals of theta, {n} x {p}, k = {k}{'' if given else ', alpha0 estimated'}"
    return {
        "what": what, "draws": len(held),
        "coverage": float(np.mean(held)), "naive coverage": float("nan"), "RMSE": float("nan"),
        "naive RMSE": float("nan"),
    }  # fmt: skip


def _rms(errors: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
