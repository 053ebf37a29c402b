"""Files in the layout of ADMIXTURE, which other programs read: numbers with spaces between them, no header."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from mixmem.cli.fit import FIT_FILES, FitRun
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.output.tables import refuse_overwriting
from mixmem.refinement.admixture import TWO_ALLELES, are_genotypes
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
            others = [variable.name for variable in schema.variables if not variable.own_kind.diploid_locus(variable)]
            copies = all(variable.own_kind.cells == "copies" for variable in schema.variables)
            raise InputError(
                f"--cv hides genotypes of diploid variants with two alleles each, and {len(others):,} of the "
                f"{schema.n_variables:,} variables are none: {listing(others, 3)}; "
                f"{TWO_ALLELES if copies else 'leave --cv out'}"
            )

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
            f"alleles: {listing(many, 3)}; leave --p out (theta.csv has all frequencies), or {TWO_ALLELES}"
        )


def write_admixture(places: FitPlaces, run: FitRun) -> None:
    """Write Q (samples, k): memberships. P (variants, k): the frequency of the first allele, the reference."""
    if places.q is not None:
        likeliest = run.model._trained().likeliest
        memberships = run.rows.memberships if likeliest is None else likeliest
        np.savetxt(places.q, memberships, fmt=f"%.{DECIMALS}f")
    if places.p is not None:
        frequencies = reference_frequencies(run)
        texts = np.char.mod(f"%.{DECIMALS}f", frequencies)
        texts[np.isnan(frequencies)] = "NA"
        np.savetxt(places.p, texts, fmt="%s")


def reference_frequencies(run: FitRun) -> np.ndarray:
    """Return a row of P for every variant of the file, fitted or not, so that P goes with the file (a .bim, say).

    A variant of one allele, whatever its component, is that allele; of one without genotypes, or declared to be
    ignored, nothing is known: NaN, and a word of warning.
    """
    schema = run.table.schema
    fitted = run.model._theta[schema.offsets[:-1]]
    if run.variants is None or run.variants.names == schema.names:
        return np.asarray(fitted)
    row = {name: j for j, name in enumerate(schema.names)}
    found = np.full((len(run.variants.names), fitted.shape[1]), np.nan)
    unknown = []
    for position, name in enumerate(run.variants.names):
        if name in row:
            found[position] = fitted[row[name]]
        elif name in run.variants.one_allele:
            found[position] = 1.0
        else:
            unknown.append(name)
    if unknown:
        typer.echo(
            f"mixmem: warning: --p has NA for {len(unknown):,} variant(s) without genotypes, or ignored: "
            f"{listing(unknown, 3)}",
            err=True,
        )
    return found
