"""Files in the layout of ADMIXTURE, which other programs read: numbers with spaces between them, no header."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mixmem.cli.fit import FIT_FILES, FitRun
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.output.tables import refuse_overwriting
from mixmem.refinement.admixture import are_genotypes
from mixmem.storage.atomic import staged_folder, write_atomically
from mixmem.words import listing

DECIMALS = 6


@dataclass(frozen=True)
class FitPlaces:
    """Where a fit is written until all of it is whole: its folder, and the files Q and P if they are wanted."""

    folder: Path
    q: Path | None
    p: Path | None


@contextmanager
def fit_places(out: Path, q: Path | None, p: Path | None, *inputs: str | Path) -> Iterator[FitPlaces]:
    """Places to write to; in the end the folder and the files come to be together, or not at all."""
    if q is not None and p is not None and q.absolute() == p.absolute():
        raise InputError(f"--q and --p name the same file {q}; name two")
    with ExitStack() as stack:
        staged: dict[str, Path] = {}
        outside = {"q": q, "p": p}
        for name, path in outside.items():
            if path is None:
                continue
            refuse_overwriting(path, *inputs, option=f"--{name}")
            inside = path.absolute().parent == out.absolute()
            if inside and path.name in FIT_FILES:
                raise InputError(f"--{name} {path} is a file that fit writes itself; name another")
            if not inside:
                staged[name] = stack.enter_context(write_atomically(path))
        folder = stack.enter_context(staged_folder(out, FIT_FILES))
        for name, path in outside.items():
            if path is not None and name not in staged:
                staged[name] = folder / path.name
        yield FitPlaces(folder, staged.get("q"), staged.get("p"))


def refuse_for(*, frequencies: bool, folds: bool) -> Callable[[Schema], None]:
    """Return a function that refuses a table whose P cannot be written, or whose genotypes cannot be hidden."""

    def accept(schema: Schema) -> None:
        if frequencies:
            refuse_frequencies(schema)
        if folds and not are_genotypes(schema):
            raise InputError("--cv hides genotypes; expected a table of diploid variants with two alleles each")

    return accept


def refuse_frequencies(schema: Schema) -> None:
    """Refuse variables that have no frequency, or more than one: P holds one per variant."""
    others = [variable.name for variable in schema.variables if variable.own_kind.cells != "copies"]
    if others:
        raise InputError(
            f"--p writes allele frequencies, but {len(others):,} of the {schema.n_variables:,} variables are no "
            f"genotypes: {listing(others, 3)}; leave --p out: theta.csv has what the components are"
        )
    many = [variable.name for variable in schema.variables if len(variable.levels) != 2]
    if many:
        raise InputError(
            f"--p writes one frequency per variant, but {len(many):,} of {schema.n_variables:,} have more than two "
            f"alleles: {listing(many, 3)}; leave --p out (theta.csv has all frequencies), or leave them out with "
            f"--kind {many[0]}=ignore"
        )


def write_admixture(places: FitPlaces, run: FitRun) -> None:
    """Q (samples, k): memberships. P (variants, k): the frequency of the first allele, the reference."""
    if places.q is not None:
        likeliest = run.model._trained().likeliest
        memberships = run.rows.memberships if likeliest is None else likeliest
        np.savetxt(places.q, memberships, fmt=f"%.{DECIMALS}f")
    if places.p is not None:
        np.savetxt(places.p, run.model._theta[run.table.schema.offsets[:-1]], fmt=f"%.{DECIMALS}f")
