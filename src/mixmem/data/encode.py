"""Table -> codes: every cell as the position of its level, or of its value among the column's numbers.

A level is known by its canonical text: the integer 1, the float 1.0 and the text "1" are all "1", and True is
"True". A model learned from an array of integers therefore accepts the same values from a CSV file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.columns import Asked, Columns, as_numbers, columns_of
from mixmem.data.genotype_codes import allele_pairs, pair_code
from mixmem.data.kinds import KINDS, MAX_CODES
from mixmem.data.level_text import canonical_text, type_of_texts
from mixmem.data.read import read_table
from mixmem.data.schema import Schema, Variable, listing, suggestion
from mixmem.data.table import Coded, Column, Locus, Table, Unusable
from mixmem.data.value_grid import MOST_VALUES
from mixmem.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

MIN_VARIABLES = 2
"""A component shows in how variables go together."""

IGNORED = "ignore"
"""Declared of a column that takes no part."""


@dataclass(frozen=True)
class Encoded:
    """A table as codes (n, p), with the ``schema`` they refer to, ``row_ids`` (n,) and the rows' ``weights`` (n,)."""

    codes: np.ndarray
    """(n, p), C-contiguous, of `schema.codes_dtype`: cell (i, j) holds level, or value, codes[i, j] of variable j; a
    missing cell has the code after the last."""
    schema: Schema
    row_ids: np.ndarray
    """(n,): the rows' ids, 0..n-1 where the data brought none."""
    weights: np.ndarray | None = None
    """(n,): how many rows each stands for; None for one each."""

    def take(self, rows: Any) -> Encoded:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Encoded(np.ascontiguousarray(self.codes[rows]), self.schema, self.row_ids[rows], weights)

    @property
    def whole(self) -> bool:
        """Whether every row stands for a whole number of rows."""
        return self.weights is None or bool((self.weights == np.rint(self.weights)).all())

    def repeated(self, what: str) -> Encoded:
        """The table with every row as often as it stands for; refused for ``what`` if that is no whole number."""
        if self.weights is None:
            return self
        if not self.whole:
            raise InputError(f"{what} counts rows, and weights that are no whole numbers say nothing of how many")
        return replace(self.take(np.repeat(np.arange(len(self.codes)), self.weights.astype(np.int64))), weights=None)


def encode(
    data: Any,
    schema: Schema | None = None,
    *,
    row_id: str | None = None,
    kinds: Mapping[str, str] | None = None,
    missing: Any = None,
    weight: str | None = None,
    weights: Any = None,
    gather: bool | None = None,
) -> Encoded:
    """Encode anything that `read_table` takes.

    Without a schema the variables are learned. Texts, truth values and whole numbers of at most 12 distinct values are
    categories (numbers in numeric order, texts in lexicographic order, categorical dtypes in their own order, unused
    categories dropped), other whole numbers are counts if they begin at 0 or 1 and are often small, all other numbers
    continuous; ``kinds`` declares otherwise ({"age": "continuous", "note": "ignore"}). With a schema, columns are
    matched by name (a bare array by position), further columns are ignored, and a level that the schema does not have
    is refused.

    NaN, None and texts such as NA are missing cells, and so are the values in ``missing``: a list for all columns, or
    a dictionary from column to list. Loci of genotype files with one allele or nothing observed are left out.
    ``weight`` names the column that says how many rows each row stands for, or ``weights`` (n,) are given; rows that
    stand for none are left out. Of a column of numbers a thousand values are kept apart when a table is learned from
    (``gather``); with a schema, all are.
    """
    table = read_table(data, row_id=row_id)
    if weight is not None:
        table, weights = _without_weights(table, weight)
    elif weights is not None:
        weights = check_weights(weights, table.n_rows)
    if weights is not None and not weights.all():
        table, weights = table.rows(weights > 0.0), weights[weights > 0.0]
    if missing is not None:
        table = _blanked(table, missing)
    if schema is None:
        declared = dict(kinds or {})
        _check_declared(declared, table)
        table = table.take([j for j, name in enumerate(table.names) if declared.get(name) != IGNORED])
        if table.loci is not None:
            seen = np.asarray(np.any(np.asarray(table.columns) >= 0, axis=0))
            table = table.take([j for j, locus in enumerate(table.loci) if seen[j] and len(locus.alleles) > 1])
            _refuse_alike(table)
    else:
        declared = {variable.name: variable.kind for variable in schema.variables}
    _check_shape(table, schema)
    if schema is not None:
        table = _match_columns(table, schema)
    most = MOST_VALUES if (schema is None if gather is None else gather) else MAX_CODES
    columns = list(columns_of(table, Asked(declared, schema, weights, most)))
    variables = _variables(columns, table, schema)
    if schema is None:
        variables = _of_one_ploidy(variables)
    learned = Schema(tuple(variables))
    codes = np.empty((table.n_rows, table.n_columns), dtype=learned.codes_dtype)
    for column in columns:
        column.write(codes, variables, table)
    row_ids = np.arange(table.n_rows) if table.row_ids is None else table.row_ids
    return Encoded(codes, learned, row_ids, weights)


def encode_as(X: Any, kinds: Mapping[str, str] | None, missing: Any = None, weights: Any = None) -> Encoded:
    """Encode what is not encoded yet, with the declared kinds."""
    if not isinstance(X, Encoded):
        return encode(X, kinds=kinds, missing=missing, weights=weights)
    if weights is not None:
        found = check_weights(weights, len(X.codes))
        X = replace(X, weights=found).take(found > 0.0)
    for name, kind in (kinds or {}).items():
        if kind == IGNORED and name not in X.schema.names:
            continue  # left out already
        if X.schema.variables[int(X.schema.index([name])[0])].kind != kind:
            raise InputError(
                f"variables declares {name!r} {kind!r}, but the table is encoded already; give kinds to encode"
            )
    return X


def numbers_of(table: Table, variable: Variable, position: int) -> np.ndarray:
    """A table's column of numbers (n,) as read, NaN where missing; matched by name, in a bare array by position."""
    at = position if table.positional else table.names.index(variable.name)
    return as_numbers(table.column(at), at, table)


def decode(codes: np.ndarray, schema: Schema) -> pd.DataFrame:
    """The inverse of `encode`: a data frame with the values of the cells, None or NaN where missing."""
    import pandas as pd

    columns = {}
    for j, variable in enumerate(schema.variables):
        held = variable.of_codes()
        number = variable.is_number or variable.value_type != "str" or variable.kind == "dosage"
        if not variable.missing:
            held.pop()
        # Texts as objects: numpy's own text type loses trailing NULs.
        values = np.array(held, None if number and not variable.missing else object)
        if (
            number
            and variable.missing
            and variable.value_type != "bool"
            and all(isinstance(value, (int, float)) or value is None for value in held)
        ):
            values = np.array([np.nan if value is None else value for value in held], dtype=float)
        columns[variable.name] = values[codes[:, j]]
    return pd.DataFrame(columns)


# --- What is asked of the table as a whole


def _check_declared(declared: Mapping[str, str], table: Table) -> None:
    for name, kind in declared.items():
        if name not in table.names:
            raise InputError(f"there is no variable {name!r}{suggestion(name, table.names)}")
        if kind not in KINDS and kind != IGNORED:
            raise InputError(f"variable {name!r} is declared {kind!r}; expected one of {', '.join(KINDS)}, {IGNORED}")
        if table.loci is not None and kind not in ("dosage", IGNORED):
            raise InputError(
                f"variable {name!r} is declared {kind!r}, but variants of a genotype file are of kind dosage; expected "
                f"{IGNORED} or nothing"
            )


def _without_weights(table: Table, name: str) -> tuple[Table, np.ndarray]:
    """The table without its column of weights, and the weights (n,)."""
    if name not in table.names:
        raise InputError(f"there is no column {name!r} to take weights from{suggestion(name, table.names)}")
    position = table.names.index(name)
    weights = check_weights(as_numbers(table.column(position), position, table), table.n_rows, f"column {name!r}")
    return table.take([j for j in range(table.n_columns) if j != position]), weights


def check_weights(weights: Any, n_rows: int, where: str = "sample_weight") -> np.ndarray:
    """Weights (n,) as positive floats."""
    try:
        found = np.asarray(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} must be numbers, one a row ({error})") from error
    if found.shape != (n_rows,):
        raise InputError(f"{where} has shape {found.shape}; expected ({n_rows},), a weight for every row")
    if not found.any():
        raise InputError(f"{where}: every weight is zero; expected some rows to count")
    if not np.isfinite(found).all() or (found < 0.0).any():
        bad = int(np.argmax(~(np.isfinite(found) & (found >= 0.0))))
        raise InputError(f"{where}, row {bad + 1} holds {found[bad]}; expected finite weights of at least 0")
    return found


def _blanked(table: Table, missing: Any) -> Table:
    """The table with the given values made missing."""
    if table.loci is not None:
        raise InputError("genotype files say themselves which cells are missing; expected missing=None")
    if not isinstance(missing, Mapping):
        missing = dict.fromkeys(table.names, missing)
    columns: list[Column] = [table.column(j) for j in range(table.n_columns)]
    for name, given in missing.items():
        if name not in table.names:
            raise InputError(f"missing names a column {name!r} that is not there{suggestion(name, table.names)}")
        listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
        texts = {form for value in listed for form in (canonical_text(value, "str"), _as_typed(value))}
        j = table.names.index(name)
        columns[j] = _blanked_column(columns[j], texts)
    return replace(table, columns=tuple(columns))


def _as_typed(value: Any) -> str:
    """The canonical text of what a text stands for."""
    return canonical_text(value, type_of_texts([value])) if isinstance(value, str) else canonical_text(value, "str")


def _blanked_column(column: Column, texts: set[str]) -> Column:
    if isinstance(column, Unusable):
        return column
    if isinstance(column, Coded):
        typed = [canonical_text(v, "str") in texts or (column.untyped and _as_typed(v) in texts) for v in column.values]
        gone = np.append(np.array(typed, dtype=bool), False)
        return replace(column, codes=np.where(gone[column.codes], -1, column.codes))
    present = [value for value in np.unique(column).tolist() if canonical_text(value, "str") in texts]
    if not present:
        return column
    return np.where(np.isin(column, present), np.nan, column.astype(np.float64))


def _check_shape(table: Table, schema: Schema | None) -> None:
    shape = (table.n_rows, table.n_columns)
    if table.n_rows < 1:
        raise InputError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required: the table has no rows"
        )
    if schema is not None:
        return
    if table.n_columns < MIN_VARIABLES:
        raise InputError(
            f"Found array with {table.n_columns} feature(s) (shape={shape}) while a minimum of "
            f"{MIN_VARIABLES} is "
            "required: memberships show in how variables go together; " + _separator_hint(table)
        )
    if table.n_rows < 2:
        raise InputError(
            f"Found array with 1 sample(s) (shape={shape}) while a minimum of 2 is required to learn levels: "
            "give the table more rows"
        )


def _separator_hint(table: Table) -> str:
    """What to do about too few columns: a file with another separator has all of them in one."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if table.n_columns == 1 and separator in table.names[0]:
            return f"the columns seem to be separated by {word}: save the file with commas, or tabs as .tsv"
    return "give the table more columns"


def _match_columns(table: Table, schema: Schema) -> Table:
    if table.positional:
        if table.n_columns != schema.n_variables:
            raise InputError(
                f"X has {table.n_columns} features, but mixmem is expecting {schema.n_variables} features "
                "as input: "
                f"give the columns {listing(schema.names)}, in this order"
            )
        table = replace(table, names=schema.names, positional=False)
    if table.loci is not None:
        return _match_loci(table, table.loci, schema)
    positions = {name: position for position, name in enumerate(table.names)}
    missing = [name for name in schema.names if name not in positions]
    if missing:
        hint = suggestion(missing[0], table.names)
        raise InputError(
            f"the data lack {len(missing)} of the model's {schema.n_variables} columns: {listing(missing)}; "
            f"add or rename columns (for {missing[0]!r}{hint.replace('expected', 'the data have')})"
        )
    return table.take([positions[name] for name in schema.names])


def _match_loci(table: Table, loci: tuple[Locus, ...], schema: Schema) -> Table:
    """Genotypes at the model's loci, found by name, in its coding: alleles are matched by their names too.

    A locus that the table lacks, or at which it holds an allele that the model does not know, is missing in every row.
    """
    found = {name: position for position, name in enumerate(table.names)}
    if not any(name in found for name in schema.names):
        raise InputError(
            f"the data have none of the model's {schema.n_variables} variants; it knows {listing(schema.names, 3)}, "
            f"the data {listing(table.names, 3)}: give variants the same ids"
        )
    columns = np.full((table.n_rows, schema.n_variables), -1, dtype=np.int16)
    for j, variable in enumerate(schema.variables):
        if variable.kind != "dosage":
            raise InputError(f"variable {variable.name!r} of the model is {variable.kind}, but the data are genotypes")
        if variable.name in found:
            position = found[variable.name]
            alleles = {allele: at for at, allele in enumerate(variable.levels)}
            places = np.array([alleles.get(allele, -1) for allele in loci[position].alleles])
            pairs = places[allele_pairs(len(places))]
            codes = np.append(pair_code(pairs[:, 0], pairs[:, 1]), -1)  # code -1 finds the missing one
            held = codes[table.columns[:, position]]  # type: ignore[call-overload]
            # If some alleles are unknown the others are no sample of the genotypes: then all count as missing.
            if not ((held < 0) & (table.columns[:, position] >= 0)).any():  # type: ignore[call-overload]
                columns[:, j] = held
    if (columns < 0).all():
        name = next(name for name in schema.names if name in found)
        known = schema.variables[schema.names.index(name)].levels
        raise InputError(
            f"no genotype of the data has alleles the model knows: at {name!r} it knows {listing(known)}, the data "
            f"have {listing(loci[found[name]].alleles)}; they may be of the other strand, or coded otherwise"
        )
    return replace(table, names=schema.names, columns=columns, loci=tuple(Locus(v.levels) for v in schema.variables))


def _refuse_alike(table: Table) -> None:
    """Genotypes among which nothing differs say nothing of components."""
    genotypes = np.asarray(table.columns)
    if genotypes.size and not ((genotypes >= 0) & (genotypes != genotypes.max(axis=0))).any():
        raise InputError(
            f"all {table.n_rows} samples have the same genotype at each of the {table.n_columns} variants; expected "
            "variants at which they differ"
        )


def _variables(columns: list[Columns], table: Table, schema: Schema | None) -> list[Variable]:
    """The variables in the order of the table; those of a schema with what belongs to this table."""
    found: dict[int, Variable] = {}
    for column in columns:
        for position, variable in column.variables(table, schema):
            found[position] = variable
    return [found[position] for position in range(table.n_columns)]


def _of_one_ploidy(variables: list[Variable]) -> list[Variable]:
    """Genotypes given as numbers of copies, all with the largest number that any of them holds: a rare allele does not
    reach it in every column."""
    most = max((v.ploidy for v in variables if v.kind == "dosage"), default=2)
    return [replace(v, ploidy=most) if v.kind == "dosage" and len(v.levels) == 2 else v for v in variables]
