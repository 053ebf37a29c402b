"""mixmem beside what one would pick instead, on the same simulated tables: seconds, memory and errors.

Each method has a process of its own and at most LIMIT CPU seconds there, imports included. Its cost is that of
everything it gives, components and memberships; memory is what it holds beyond its libraries and the table. mixmem and
LDA are told the true alpha. TensorLy gets the block of corrected moments for nothing and returns no memberships.
ADAMIXTURE reads genotypes only and cannot run on these tables.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import cost_of, in_process
from mixmem import GDLM, Simulation, align_components, rmse, simulate_gdlm, third_moments

LIMIT = 120
MODE = 20
"""Most variables in a mode of TensorLy's block: it holds 80 x 80 x 80 numbers with four levels."""
SAMPLED_CELLS = 200_000
"""Cells up to which mixmem is run with sampling too."""

TABLES = (
    {"n_rows": 5000, "n_variables": 25, "n_components": 5, "alpha": 0.1},
    {"n_rows": 10_000, "n_variables": 100, "n_components": 5, "alpha": 0.7},
    {"n_rows": 2000, "n_variables": 1000, "n_components": 5, "alpha": 0.1},
)
QUICK = (
    {"n_rows": 1000, "n_variables": 25, "n_components": 3, "alpha": 0.1},
    {"n_rows": 500, "n_variables": 200, "n_components": 5, "alpha": 0.1},
)

Found = tuple[np.ndarray, np.ndarray | None]
"""Theta (rows of the first variables, k) on the simplex, and memberships (n, k) if there are any."""


def mixmem_moments(table: Simulation) -> Callable[[], Found]:
    return _mixmem(table, None)


def mixmem_gibbs(table: Simulation) -> Callable[[], Found]:
    return _mixmem(table, "gibbs")


def _mixmem(table: Simulation, refine: str | None) -> Callable[[], Found]:
    def fit(what: Simulation) -> Found:
        k, alpha0 = what.theta.shape[1], float(what.alpha.sum())
        model = GDLM(k, alpha0=alpha0, refine=refine, random_state=0).fit(what.encoded)
        return model.theta_.iloc[:, 3:].to_numpy(), model.transform(what.encoded)

    fit(replace(table, codes=table.codes[:100]))  # compile, or load what was compiled
    return lambda: fit(table)


def lda(table: Simulation) -> Callable[[], Found]:
    """scikit-learn's, with its ten passes: a hundred were no better on the first table (0.0196 for 0.0190)."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import LatentDirichletAllocation

    n, p = table.codes.shape
    columns = (table.schema.offsets[:-1] + table.codes).ravel()
    one_hot = csr_matrix((np.ones(n * p), columns, np.arange(0, n * p + 1, p)), shape=(n, table.schema.n_rows))
    k, alpha = table.theta.shape[1], float(table.alpha[0])
    model = LatentDirichletAllocation(k, doc_topic_prior=alpha, topic_word_prior=0.5, random_state=0)

    def fit() -> Found:
        memberships = model.fit_transform(one_hot)
        return _on_simplex(model.components_.T, table), memberships

    return fit


def stepmix(table: Simulation) -> Callable[[], Found]:
    """A latent class model; its posterior of the classes stands for the memberships."""
    from stepmix import StepMix

    codes = table.codes.astype(np.int64)
    model = StepMix(table.theta.shape[1], measurement="categorical", random_state=0, progress_bar=0)

    def fit() -> Found:
        model.fit(codes)
        return model.get_parameters()["measurement"]["pis"].T, model.predict_proba(codes)

    return fit


def tensorly(table: Simulation) -> Callable[[], Found]:
    return _hals(table, _block(table))


def tensorly_clipped(table: Simulation) -> Callable[[], Found]:
    return _hals(table, np.maximum(_block(table), 0.0))


def _block(table: Simulation) -> np.ndarray:
    """Corrected moments of the first variables in three modes: all of them, where they are few."""
    modes = np.array_split(np.arange(min(table.schema.n_variables, 3 * MODE)), 3)
    return third_moments(table.encoded, [tuple(modes)])[0].corrected(float(table.alpha.sum()))


def _hals(table: Simulation, tensor: np.ndarray) -> Callable[[], Found]:
    from tensorly.decomposition import non_negative_parafac_hals

    def fit() -> Found:
        found = non_negative_parafac_hals(tensor, table.theta.shape[1], random_state=0)
        return _on_simplex(np.vstack(found.factors), table), None

    return fit


def _on_simplex(values: np.ndarray, table: Simulation) -> np.ndarray:
    """Values (rows of the first variables, k) >= 0, scaled to sum to one over the levels of each variable."""
    offsets = table.schema.offsets
    starts = offsets[offsets < len(values)]
    sizes = np.diff(np.append(starts, len(values)))
    inside = np.maximum(values, 1e-12)
    return inside / np.repeat(np.add.reduceat(inside, starts, axis=0), sizes, axis=0)


METHODS: dict[str, tuple[str, Callable[[Simulation], Callable[[], Found]]]] = {
    "mixmem": ("mixmem", mixmem_moments),
    "mixmem, gibbs": ("mixmem", mixmem_gibbs),
    "LDA": ("sklearn", lda),
    "StepMix": ("stepmix", stepmix),
    "TensorLy HALS": ("tensorly", tensorly),
    "HALS, clipped": ("tensorly", tensorly_clipped),
}
"""The module a method needs, and what readies it: everything that is not its work is done before it is timed."""


def measured(name: str, design: Mapping[str, Any], path: Path) -> dict[str, float | int | str]:
    """Run a method on the table drawn before; meant for a process of its own."""
    table = stored(design, path)
    cost, (theta, memberships) = cost_of(METHODS[name][1](table))
    truth = table.theta[: len(theta)]
    error: float | str = ""
    if memberships is not None:
        order = align_components(truth, theta)
        error = float(np.sqrt(((memberships[:, order] - table.memberships) ** 2).mean()))
    return {
        "variables": int(np.searchsorted(table.schema.offsets, len(theta))),
        "theta": rmse(truth, theta),
        "memberships": error,
        "wall s": cost.wall,
        "CPU s": cost.cpu,
        "MB": cost.peak / 1e6,
        "ended": "done",
    }


def over_limit() -> dict[str, float | int | str]:
    """The row of a method that was stopped."""
    figures = dict.fromkeys(("variables", "theta", "memberships", "wall s", "CPU s", "MB"), "")
    return {**figures, "ended": f"over {LIMIT} CPU s"}


def stored(design: Mapping[str, Any], path: Path) -> Simulation:
    """The table kept in a file: drawing it would leave its traces in the memory that is measured."""
    coding = simulate_gdlm(1, design["n_variables"], design["n_components"], random_state=0).coding
    with np.load(path) as arrays:
        return Simulation(coding=coding, noise=0.0, **arrays)


def draw(design: Mapping[str, Any], path: Path) -> None:
    """Draw a table by the paper's design into a file."""
    table = simulate_gdlm(**design, random_state=0)
    np.savez(path, codes=table.codes, theta=table.theta, alpha=table.alpha, memberships=table.memberships)


def run(quick: bool = False) -> Iterator[dict[str, float | int | str]]:
    """One row a table and method."""
    present = {name: find_spec(module) is not None for name, (module, _) in METHODS.items()}
    for name in (name for name, here in present.items() if not here):
        print(f'skipped: {name} is not installed; pip install "mixmem[bench]"')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        for design in QUICK if quick else TABLES:
            n, p, k, alpha = design.values()
            draw(design, path)
            seconds = None
            for name in (name for name, here in present.items() if here):
                if name == "mixmem, gibbs" and n * p > SAMPLED_CELLS:
                    continue
                try:
                    figures = in_process(measured, name, design, path, limit=LIMIT)
                except TimeoutError:
                    figures = over_limit()
                seconds = seconds or figures["CPU s"]  # mixmem comes first
                times = figures["CPU s"] / seconds if figures["CPU s"] else ""
                yield {"table": f"{n} x {p}", "k": k, "alpha": alpha, "method": name, **figures, "times CPU": times}


MARKERS = {
    "mixmem": ("o", "tab:red"),
    "mixmem, gibbs": ("s", "tab:red"),
    "LDA": ("^", "tab:blue"),
    "StepMix": ("v", "tab:green"),
    "TensorLy HALS": ("D", "tab:gray"),
    "HALS, clipped": ("x", "black"),
}


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """CPU seconds against the error of theta, a panel a table; methods that were stopped are named in its title."""
    from matplotlib.figure import Figure

    panels = [(table, list(group)) for table, group in groupby(rows, key=lambda row: row["table"])]
    figure = Figure(figsize=(3.7 * len(panels) + 1.5, 3.6), layout="constrained")
    shown = {}
    for axes, (table, group) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for row in (row for row in group if row["ended"] == "done"):
            marker, color = MARKERS[row["method"]]
            point = axes.plot(row["CPU s"], row["theta"], marker, color=color, markersize=8, alpha=0.8)
            shown.setdefault(row["method"], point[0])
        stopped = "".join(f"\n{row['method']}: {row['ended']}" for row in group if row["ended"] != "done")
        axes.set(xscale="log", xlabel="CPU seconds", ylabel="RMSE of theta")
        axes.set_title(f"{table}, k = {group[0]['k']}, alpha = {group[0]['alpha']}{stopped}", fontsize="medium")
        axes.margins(0.15)
        axes.set_ylim(bottom=0.0)
    figure.legend(shown.values(), shown, loc="outside right center")
    figure.savefig(path, dpi=120)
