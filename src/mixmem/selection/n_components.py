"""Choosing k: which number of components the table itself asks for.

Three things are looked at for every k. Rows held out: the rows are split in halves, the model is learned on each half
and the other half's likelihood is taken. Stability: whether the two halves found the same components. Spectrum: the
covariance between two disjoint halves of the variables has rank k - 1 in the model, so its singular values are held
against those of the same table with the rows of one half shuffled (parallel analysis). Recommended is the largest k
that makes rows held out likelier and whose components are all found again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, encode_as
from mixmem.engine.local import threads
from mixmem.errors import InputError
from mixmem.moments.anchors import capacity, largest_k, make_plan, part_of
from mixmem.moments.sums import FirstMoments, first_moments, second_moments
from mixmem.parameters import bytes_of, check_parameters
from mixmem.progress import in_python
from mixmem.refinement.memory import refuse_beyond
from mixmem.seeds import seed_sequence
from mixmem.selection.alpha0 import choose_alpha0
from mixmem.selection.compare_k import Compared, compare
from mixmem.selection.copies import copied_variables, copies_told
from mixmem.selection.halves import HOLDS, LEAST_ROWS, effort
from mixmem.selection.structure import Structure, structure_of
from mixmem.typing import Array, Positions

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


MOST_ROWS, MOST_VARIABLES = 5_000, 300
"""Rows and variables that are enough; of a larger table a part is taken."""
VARIABLE_SPLITS, SHUFFLES, SPECTRUM_ROWS, NOISE_ERRORS = 5, 4, 256, 3.0
"""Random halves of the variables, shuffled tables for each, theta rows a half at most, and how many standard deviations
above the shuffled tables' mean a singular value has to be to count."""
ROWS_PER_COMPONENT = 4
"""Rows of a half per component from which on a number of components is tried."""
CLEARLY = 5.0
"""Standard errors by which another k must be likelier for one component to be called no good fit."""


@dataclass(frozen=True)
class Spectrum:
    """Singular values between halves of the variables (r,), largest first, and the noise each has to exceed (r,)."""

    values: Array
    noise: Array

    @property
    def n_components(self) -> int:
        """Return one more than the singular values that stand above noise before the first that does not."""
        return 1 + int(np.cumprod(self.values > self.noise).sum())


@dataclass(frozen=True)
class KChoice:
    """Hold the number of components recommended, and what speaks for it.

    Attributes
    ----------
    k : int
        Number of components recommended.
    reason : str
        Why, in words.
    table : DataFrame
        One row per k: ``held_out`` mean log-likelihood of a row that was not fitted, ``held_out_se`` standard error of
        its difference to the recommended k's, ``stability`` and ``stability_worst`` the mean and the least agreement of
        a component over halves of the rows (1: the same, 0: nothing in common), in the middle one of so many
        ``splits``; ``worst_split`` and ``best_split`` the least agreement in the split where it is lowest and highest;
        ``singular_value`` the one that the k-th component brings and the ``noise`` it has to exceed (none where the
        variables have too few levels),
        ``recommended``, and ``why`` it is or is not.
    alpha0 : float
        Sum of alpha that was used for every k.
    spectrum_k : int
        Number of components that the singular values show.
    n_rows, n_variables : int
        Size of the part of the table that was looked at.
    seed : int or list of int
        Seed that gives the same choice again.
    seconds : dict
        Seconds per stage.
    """

    k: int
    reason: str
    table: pd.DataFrame
    alpha0: float
    spectrum_k: int
    n_rows: int
    n_variables: int
    seed: Any
    seconds: dict[str, float]

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the table as a figure of three panels, written to ``path`` if there is one."""
        from mixmem.plots import ChooseKPlot

        figure = ChooseKPlot.from_choice(self).plot().figure_
        if path is not None:
            figure.savefig(path)
        return figure


def choose_k(
    X: Any,
    k_range: Iterable[int] = (2, 12),
    *,
    alpha0: str | float = "auto",
    variables: Mapping[str, str] | None = None,
    missing: Any = None,
    n_splits: int = 2,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    verbose: bool = False,
) -> KChoice:
    """Recommend the number of components for a table: a frame, an array, the path of a file, or an ``Encoded``.

    Recommended is the largest k that holds: all of its components are found again on other rows, and rows that were
    not fitted are more likely under it than under any smaller k that holds, by more than the standard error of the
    difference. One component is always among the candidates.

    Parameters
    ----------
    X : frame, array, path or Encoded
        Table.
    k_range : pair, list or range
        A pair (from, to), both tried, or a list or range of the numbers to try; 1 is tried in any case.
    alpha0 : "auto" or float
        Sum of alpha; "auto" is estimated once, at the k that the spectrum shows.
    variables : dict or None
        Kinds of columns, as in :class:`mixmem.GDLM`.
    missing : None, list or dict
        Values that mean a missing cell, as in :class:`mixmem.GDLM`.
    n_splits : int
        How often the rows are split in halves, at least: where splits leave doubts, more are taken, to five in all.
        Which rows go to which half depends on the rows alone: ask for more splits, not for another seed, to see more.
    random_state : None, int or numpy random generator
        The result is the same to the last bit for the same integer, at any number of threads.
    n_jobs : None or int
        Threads; None for all cores.
    memory_limit : None, int or str
        Bytes that it may take, as in :class:`mixmem.GDLM`.
    verbose : bool
        Say on standard error what is done and how long it took.

    Returns
    -------
    KChoice

    Raises
    ------
    InputError
        If the table has fewer than 20 rows, or its variables carry fewer than two of the numbers to try.

    Examples
    --------
    >>> from mixmem import choose_k, simulate_gdlm
    >>> choose_k(simulate_gdlm(400, 12, 3, random_state=0).frame, (2, 4), alpha0=0.3, n_splits=1, random_state=0).k
    3
    """
    check_parameters(
        {
            "alpha0": alpha0,
            "variables": variables,
            "missing": missing,
            "random_state": random_state,
            "n_jobs": n_jobs,
            "memory_limit": memory_limit,
            "verbose": verbose,
        }
    )
    wanted = check_candidates(k_range, n_splits)
    seed = seed_sequence(random_state)
    for_part, for_spectrum = seed.spawn(2)
    progress = in_python(verbose)
    with threads(n_jobs):
        with progress.stage("read"):
            table = encode_as(X, variables, missing)
            rows = _rows_stood_for(table)
            if rows.n_rows < LEAST_ROWS:
                raise InputError(
                    f"the table has {rows.n_rows} rows; choosing k compares halves of the rows and needs at least "
                    f"{LEAST_ROWS}"
                )
            rng = np.random.default_rng(for_part)
            part = part_of(rows, MOST_ROWS, MOST_VARIABLES, rng)
            ks = _carried(wanted, part)
            first, most = first_moments(part), bytes_of(memory_limit)
            _refuse_beyond(part, first, ks[-1], most, for_part)
        with progress.stage("spectrum"):
            spectrum = moment_spectrum(part, ks[-1], np.random.default_rng(for_spectrum), first)
        free_alpha0 = alpha0 == "auto"
        if alpha0 == "auto":
            likely = effort(int(np.clip(spectrum.n_components, max(2, ks[0]), ks[-1])), most)
            alpha0 = choose_alpha0(part, likely, seed=seed, progress=progress, first=first).value
        compared = compare(
            part, first, ks, float(alpha0), free_alpha0=free_alpha0, memory_limit=most, n_splits=int(n_splits),
            shown=spectrum.n_components, progress=progress,
        )  # fmt: skip
    chosen, held_out, error = compared.recommended
    copies = copied_variables(part, np.arange(part.n_variables))
    structure = _structure(part, first) if chosen == 0 or copies[0] else None
    of_copies = chosen > 0 and structure is not None and not structure.found
    chosen = 0 if of_copies else chosen
    figures = _table(ks, chosen, held_out, error, compared, spectrum, of_copies=of_copies)
    return KChoice(
        k=ks[chosen],
        reason=" ".join(
            [*_reasons(figures, spectrum, part.n_rows, structure), *_notes(wanted, ks, chosen, part, table, copies)]
        ),
        table=figures,
        alpha0=float(alpha0),
        spectrum_k=spectrum.n_components,
        n_rows=part.n_rows,
        n_variables=part.n_variables,
        seed=seed.entropy,
        seconds=dict(progress.seconds),
    )


def check_candidates(k_range: Iterable[int], n_splits: int) -> list[int]:
    """The numbers of components to try, ascending; what cannot be tried is refused."""
    if not isinstance(n_splits, (int, np.integer)) or isinstance(n_splits, bool) or n_splits < 1:
        raise InputError(f"n_splits must be an integer of at least 1; got {n_splits!r}")
    given = list(k_range) if isinstance(k_range, Iterable) else [k_range]
    if not given or any(not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1 for k in given):
        raise InputError(f"k_range must be (from, to) or a list of integers, each at least 1; got {k_range!r}")
    if isinstance(k_range, tuple) and len(given) == 2:
        given = list(range(given[0], given[1] + 1))
    ks = sorted({int(k) for k in given})
    if len(ks) < 2:
        raise InputError(
            f"k_range must hold at least two numbers of components to choose from; got {k_range!r}: "
            "give the smaller first, and a larger one to end with"
        )
    return sorted({1, *ks})


def _rows_stood_for(table: Encoded) -> Encoded:
    """Return the rows that those with whole weights stand for, evenly spread where they are more than are looked at.

    Halves of the rows of a table of counts would have no pattern in common.
    """
    if table.weights is None or not table.whole:
        return table
    ends = np.cumsum(table.weights.astype(np.int64))
    total = int(ends[-1])
    most = min(total, MOST_ROWS)
    return replace(table.take(np.searchsorted(ends, np.arange(most) * total // most, side="right")), weights=None)


def _structure(table: Encoded, first: FirstMoments) -> Structure | None:
    """Return the table's structure, None if looking at it fails: the choice is not lost to it."""
    try:
        return structure_of(table, first)
    except Exception:
        return None


def _carried(wanted: list[int], part: Encoded) -> list[int]:
    """The numbers of components that the variables and half of the rows can carry: at least two have to remain."""
    coding, shown = part.coding, part.n_rows // (2 * ROWS_PER_COMPONENT)
    most = largest_k(coding)
    ks = [k for k in wanted if k <= min(most, shown)]
    if most < 2:
        raise InputError(
            f"{coding.n_variables} variable{'s' * (coding.n_variables > 1)} cannot tell how many components there are; "
            "choosing k takes three or more: give the table more variables, or fit the number that you want to see"
        )
    if len(ks) < 2:
        asked = [k for k in wanted if k > 1]
        what = "the variables carry" if most <= shown else f"halves of {part.n_rows} rows show"
        raise InputError(
            f"{what} at most {min(most, shown)} components, and those to try are {asked[0]} to {asked[-1]}; "
            f"try smaller numbers, or give the table more {'variables' if most <= shown else 'rows'}"
        )
    return ks


# --- The spectrum of the second moments


def moment_spectrum(table: Encoded, most: int, rng: np.random.Generator, first: FirstMoments | None = None) -> Spectrum:
    """Return the ``most`` largest singular values of the covariance between halves of the variables, mean over halves.

    The noise of the r-th is what shuffled tables give once the r - 1 directions before it are taken out of both halves:
    strong components would otherwise raise the noise that weak ones are held against.
    """
    coding, first = table.coding, first_moments(table) if first is None else first
    halves = [_halves_of_variables(coding, rng) for _ in range(VARIABLE_SPLITS)]
    most = min(most, *(capacity(coding, half) - 1 for pair in halves for half in pair))
    values, noise = [], []
    for left, right in halves:
        u, s, vt = np.linalg.svd(_covariance(table, left, right, first))
        values.append(s[:most])
        for _ in range(SHUFFLES):
            codes = table.codes.copy()
            codes[:, left] = table.codes[rng.permutation(len(codes))][:, left]
            shuffled = replace(table, codes=codes)
            again = first if table.weights is None else None  # weights stay where they are
            rotated = u.T @ _covariance(shuffled, left, right, again) @ vt.T
            noise.append([np.linalg.norm(rotated[r:, r:], 2) for r in range(most)])
    return Spectrum(np.mean(values, axis=0), np.mean(noise, axis=0) + NOISE_ERRORS * np.std(noise, axis=0, ddof=1))


def _halves_of_variables(coding: Coding, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Return two disjoint random sets of variables with no more than :data:`SPECTRUM_ROWS` rows each, or one each."""
    order = rng.permutation(coding.n_variables)
    halves = order[::2], order[1::2]
    kept = [max(1, int((np.cumsum(coding.soft.sizes[half]) <= SPECTRUM_ROWS).sum())) for half in halves]
    return np.sort(halves[0][: kept[0]]), np.sort(halves[1][: kept[1]])


def _covariance(table: Encoded, left: Positions, right: Positions, first: FirstMoments | None = None) -> Array:
    """Return the covariance of the levels of two groups of variables: (rows of left, rows of right)."""
    joint = second_moments(table, left, right, first=first) / table.total
    # every variable's levels sum to one, so a sum over one side over its number of variables is the other's means
    return joint - np.outer(joint.sum(axis=1) / len(right), joint.sum(axis=0) / len(left))


def _refuse_beyond(
    table: Encoded, first: FirstMoments, k: int, memory_limit: int | None, seed: np.random.SeedSequence
) -> None:
    """Refuse a table whose fits with k components take more memory than the limit, or than there is."""
    plan = make_plan(table, k, rng=np.random.default_rng(seed), first=first, memory_limit=memory_limit)
    refuse_beyond(memory_limit, table, plan, effort(k, memory_limit), None)


# --- The recommendation


def _table(
    ks: Sequence[int],
    chosen: int,
    held_out: Array,
    error: Array,
    compared: Compared,
    spectrum: Spectrum,
    *,
    of_copies: bool = False,
) -> pd.DataFrame:
    import pandas as pd

    stability = compared.stability
    every = [compared.worst(i) for i in range(len(ks))]

    place = np.array(ks) - 2  # k components bring k - 1 singular values
    known = (place >= 0) & (place < len(spectrum.values))
    place = np.where(known, place, 0)
    return pd.DataFrame(
        {
            "k": ks,
            "held_out": held_out,
            "held_out_se": error,
            "stability": stability[:, 0],
            "stability_worst": stability[:, 1],
            "splits": [len(each) for each in every],
            "worst_split": [min(each) for each in every],
            "best_split": [max(each) for each in every],
            "singular_value": np.where(known, spectrum.values[place], np.nan),
            "noise": np.where(known, spectrum.noise[place], np.nan),
            "recommended": np.arange(len(ks)) == chosen,
            "why": [
                "copies of columns alone" if of_copies and i else _why(i, chosen, held_out, error, stability[:, 1])
                for i in range(len(ks))
            ],
        }
    )


def _why(i: int, chosen: int, held_out: Array, error: Array, worst: Array) -> str:
    """Say in a few words why a k is recommended, or is not."""
    if i == chosen:
        return "recommended"
    if i > chosen and worst[i] < HOLDS:
        return f"not found again ({below(worst[i])})"
    lost = held_out[chosen] - held_out[i]
    return "less likely" if lost > error[i] else "no more likely"


def below(agreement: float) -> str:
    """Return an agreement in two figures, never rounded up: what is below the line does not look as if it were on it.

    Less than nothing in common is nothing.

    >>> below(0.8496), below(-0.1)
    ('0.84', '0.00')
    """
    return f"{np.floor(100.0 * max(agreement, 0.0) + 1e-9) / 100.0:.2f}"


def _reasons(table: pd.DataFrame, spectrum: Spectrum, n_rows: int, structure: Structure | None) -> list[str]:
    """What the three figures say, a sentence or two each, and the test of structure where one component holds."""
    rows = table.to_dict("records")
    chosen = int(table["recommended"].argmax())
    row, k = rows[chosen], rows[chosen]["k"]
    best = int(table["held_out"].argmax())
    gained, error = rows[best]["held_out"] - row["held_out"], rows[best]["held_out_se"]
    if structure is not None and not structure.found:
        copied = ", copies left out," if structure.copies else ""
        return [
            f"k = 1: the variables{copied} vary as if they were independent of each other (chance alone gives as much "
            f"in {structure.p_value:.0%} of tables), so that no components show.",
            _spectrum_says(spectrum, rows, k),
        ]
    if k == 1 and gained > CLEARLY * error:
        return [
            "k = 1 is what holds, not what fits best: no components of a larger number are found again on other rows, "
            "so that none can be relied on, but rows that were not fitted are more likely under "
            f"k = {rows[best]['k']}, by {_difference(rows[best], row, rows[best])} per row (its weakest component "
            f"agrees by {below(rows[best]['stability_worst'])}; {HOLDS:g} is asked for). Variables belong together, in "
            f"ways that components do not describe or that halves of the rows, {n_rows // 2:,} each, are too few to "
            "show.",
            _spectrum_says(spectrum, rows, k),
        ]
    if k == 1:
        said = [
            "k = 1: no larger number holds. Components found on one half of the rows are not found on the other, or do "
            "not make rows that were not fitted more likely."
        ]
    else:
        said = [
            f"k = {k} is the largest number that holds: every component is found again on other rows (the weakest "
            f"agrees by {_agreement(row)}; {HOLDS:g} is asked for, 1 is the same), and rows that were "
            f"not fitted are more likely than under smaller numbers{_behind(rows, chosen)}."
        ]
        if row["worst_split"] < HOLDS:
            # as k itself was judged: by the splits in the middle, not by the worst of them
            fewer = max(each["k"] for each in rows[:chosen] if each["k"] == 1 or each["stability_worst"] >= HOLDS)
            said.append(f"But not in every split of the rows: they do not settle whether it is {k} or {fewer}.")
    if gained > error:
        said.append(
            f"Rows are more likely still under k = {rows[best]['k']}, by {_difference(rows[best], row, rows[best])} "
            f"per row, but its weakest component agrees by only {_agreement(rows[best])}: "
            "other rows would not show it again. Variables may belong together in ways that components do not describe."
        )
    return [*said, _spectrum_says(spectrum, rows, k)]


def _agreement(row: Mapping[Any, Any]) -> str:
    """Say how far the weakest component agrees, and how splits differ where more than two were taken.

    >>> _agreement({"stability_worst": 0.87, "splits": 5, "worst_split": -0.1, "best_split": 0.97})
    '0.87 in the middle one of 5 splits, from 0.00 to 0.97'
    >>> _agreement({"stability_worst": 0.866, "splits": 3, "worst_split": 0.864, "best_split": 0.868})
    '0.86 in each of 3 splits'
    """
    said = below(row["stability_worst"])
    if row["splits"] < 3:
        return said
    least, most = below(row["worst_split"]), below(row["best_split"])
    if least == most:
        return f"{said} in each of {row['splits']} splits"
    return f"{said} in the middle one of {row['splits']} splits, from {least} to {most}"


def _behind(rows: list[dict[Any, Any]], chosen: int) -> str:
    """Say by how much the next smaller number falls short, per row."""
    below = rows[chosen - 1]
    return f" (than under {below['k']} by {_difference(rows[chosen], below, below)} per row)"


def _difference(better: Mapping[Any, Any], worse: Mapping[Any, Any], of_error: Mapping[Any, Any]) -> str:
    return f"{better['held_out'] - worse['held_out']:.3f} ± {of_error['held_out_se']:.3f}"


def _spectrum_says(spectrum: Spectrum, rows: list[dict[Any, Any]], k: int) -> str:
    shown, looked = spectrum.n_components, len(spectrum.values)
    stand = "stands" if shown == 2 else "stand"
    above = (
        f"{shown - 1} of {looked} singular values of the second moments {stand} above noise, one less than components"
    )
    if shown > looked:
        return f"The spectrum shows {shown} components or more ({above})."
    if shown == k:
        return f"The spectrum shows the same number ({above})."
    worst = {row["k"]: row["stability_worst"] for row in rows}
    if worst.get(shown, 1.0) < HOLDS:
        return f"The spectrum shows {shown} ({above}), but that many components are not found again on other rows."
    return f"The spectrum shows {shown} ({above}): look at that number too."


def _notes(
    wanted: Sequence[int],
    ks: Sequence[int],
    chosen: int,
    part: Encoded,
    table: Encoded,
    copies: tuple[tuple[list[str], ...], tuple[str, ...]] = ((), ()),
) -> list[str]:
    """Say what was left out of the range or the table, and which columns are copies."""
    said = []
    if len(ks) < len(wanted):
        rest = wanted[len(ks) :]
        left = ", ".join(map(str, rest)) if len(rest) < 3 else f"{rest[0]} to {rest[-1]}"
        carried = rest[0] > largest_k(part.coding)
        can = "the variables can carry" if carried else f"halves of {part.n_rows:,} rows can show"
        said.append(f"Not tried: k = {left}, more than {can}.")
    elif chosen == len(ks) - 1:
        said.append("The number is the largest tried: try larger ones.")
    if copies[0]:
        said.append(
            f"{copies_told(*copies)}: copies make components of their own; leave all but one out and choose again."
        )
    n, p = int(table.total) if table.whole else table.n_rows, table.n_variables
    if (part.n_rows, part.n_variables) != (n, p):
        said.append(f"Looked at {part.n_rows:,} of {n:,} rows and {part.n_variables:,} of {p:,} variables.")
    return said
