"""Ordered levels against plain categories: log-likelihood per row of rows that were not fitted, and error of theta.

Simulated tables: cumulative logits (graded), the same with scales that differ much between components (styles),
beta-binomials, bells with Dirichlet scatter, and levels without any order (none). The prior was chosen on these. The
public survey is fitted on half of its rows and scored on the others, over random halves; "shuffled" gives its levels an
order that is none.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks import crowd_sets
from benchmarks.measure import cost_of
from mixmem import GDLM, align_components

SHAPES = ((300, 15, 5, 3), (1_000, 20, 6, 4))
"""Rows, variables, levels and components."""
DESIGNS = ("graded", "styles", "beta-binomial", "bells", "none")
SURVEY = crowd_sets.DATA / "survey_bfi" / "bfi.csv"


def theta_of(design: str, d: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Probabilities (d, k) of one variable."""
    if design in ("graded", "styles"):
        places, scales = rng.normal(0.0, 1.5, k), np.exp(rng.normal(0.0, 0.35 if design == "graded" else 0.7, k))
        cuts = np.sort(rng.normal(0.0, 1.5, d - 1))[:, None]
        reached = 1.0 / (1.0 + np.exp(-(cuts - places) / scales))
        return np.diff(np.concatenate([np.zeros((1, k)), reached, np.ones((1, k))]), axis=0)
    if design == "beta-binomial":
        from scipy.stats import betabinom

        middle, size = rng.beta(1.0, 1.0, k), np.exp(rng.normal(1.5, 1.0, k))
        levels = np.arange(d)[:, None]
        return np.asarray(betabinom.pmf(levels, d - 1, middle * size + 0.05, (1.0 - middle) * size + 0.05))
    if design == "bells":
        middles, widths = rng.uniform(-0.5, d - 0.5, k), rng.uniform(0.7, 2.0, k)
        bells = np.exp(-0.5 * ((np.arange(d)[:, None] - middles) / widths) ** 2) + 0.02
        return np.stack([rng.dirichlet(15.0 * bell / bell.sum()) for bell in bells.T], axis=1)
    return rng.dirichlet(np.full(d, 0.5), k).T


def drawn(theta: np.ndarray, n: int, alpha0: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return n rows; theta (variables, d, k)."""
    k = theta.shape[2]
    shares = rng.dirichlet(np.full(k, alpha0 / k), n)
    edges = np.cumsum(np.einsum("nk,pdk->npd", shares, theta), axis=2)[:, :, :-1]
    codes = (rng.random((*edges.shape[:2], 1)) > edges).sum(axis=2)
    return pd.DataFrame(codes, columns=[f"q{j}" for j in range(len(theta))])


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row per design and shape, then one per number of components of the survey."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in DESIGNS:
            for shape in SHAPES[: 1 if quick else 2]:
                yield _simulated(design, *shape, draws=2 if quick else 5)
        if SURVEY.is_file():
            items = pd.read_csv(SURVEY).iloc[:, 1:26]
            for k in (5,) if quick else (3, 5, 8):
                yield _halves("survey_bfi", items, k, splits=2 if quick else 5)
            other = dict(enumerate(np.random.default_rng(0).permutation(6) + 1, start=1))
            yield _halves("survey_bfi, shuffled", items.replace(other), 5, splits=2)


def _both(train: pd.DataFrame, test: pd.DataFrame, k: int) -> tuple[list[float], list[GDLM], list[float]]:
    scores, models, seconds = [], [], []
    for kind in ("categorical", "ordinal"):
        cost, model = cost_of(lambda kind=kind: GDLM(k, variables={"*": kind}, random_state=0).fit(train))
        scores.append(model.score(test))
        models.append(model)
        seconds.append(cost.cpu)
    return scores, models, seconds


def _line(
    what: str, scores: list[list[float]], errors: list[list[float]], seconds: list[list[float]]
) -> dict[str, float | int | str]:
    gains = np.diff(scores, axis=1)[:, 0]
    error, cpu = np.mean(errors, axis=0), np.mean(seconds, axis=0)
    return {
        "what": what, "tables": len(gains), "categorical": float(np.mean(scores, axis=0)[0]),
        "gain per row": float(gains.mean()), "least gain": float(gains.min()), "RMSE categorical": float(error[0]),
        "RMSE ordinal": float(error[1]), "CPU s categorical": float(cpu[0]), "CPU s ordinal": float(cpu[1]),
    }  # fmt: skip


def _simulated(design: str, n: int, p: int, d: int, k: int, draws: int) -> dict[str, float | int | str]:
    scores, errors, seconds = [], [], []
    for seed in range(draws):
        rng = np.random.default_rng([seed, n, p])
        theta = np.stack([theta_of(design, d, k, rng) for _ in range(p)])
        train, test = drawn(theta, n, 0.3 * k, rng), drawn(theta, 1_000, 0.3 * k, rng)
        for j, c in zip(*np.nonzero([[not (train[name] == c).any() for c in range(d)] for name in train]), strict=True):
            train.iloc[rng.integers(n), j] = c  # every level occurs
        found, models, cpu = _both(train, test, k)
        flat = theta.reshape(p * d, k)
        each = [model.theta_.iloc[:, 3:].to_numpy() for model in models]
        errors.append([float(np.sqrt(np.mean((own[:, align_components(flat, own)] - flat) ** 2))) for own in each])
        scores.append(found)
        seconds.append(cpu)
    return _line(f"{design}, {n} x {p}, {d} levels, k = {k}", scores, errors, seconds)


def _halves(what: str, items: pd.DataFrame, k: int, splits: int) -> dict[str, float | int | str]:
    scores, seconds = [], []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(items))
        half = len(order) // 2
        found, _, cpu = _both(items.iloc[order[:half]], items.iloc[order[half:]], k)
        scores.append(found)
        seconds.append(cpu)
    return _line(f"{what}, k = {k}", scores, [[float("nan")] * 2], seconds)
