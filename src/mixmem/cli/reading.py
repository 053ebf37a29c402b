"""A table as the options describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixmem.data.declared import kind_and_order, kinds_by_column
from mixmem.data.dialect import Dialect
from mixmem.data.encode import Encoded, encode
from mixmem.data.kinds import KINDS
from mixmem.data.read import read_table
from mixmem.data.schema import Schema
from mixmem.data.table import Table
from mixmem.data.table_checks import IGNORED
from mixmem.errors import InputError
from mixmem.words import suggestion


@dataclass(frozen=True)
class Described:
    """What the options say of a table: its row ids, kinds, values that mean missing, weights, how a text file is
    written, whether useless columns are left out, and what is done with levels that a model does not know."""

    row_id: str | None = None
    kinds: Mapping[str, str] | None = None
    missing: Any = None
    """As `mixmem.cli.option_values.missing_of` gives it."""
    weight: str | None = None
    dialect: Dialect | None = None
    columns: str = "useful"
    handle_unknown: str = "missing"

    def read(self, data: str | Path | Table) -> tuple[Table, Described]:
        """The table, with its ids, and what is said of it in terms of its own columns."""
        table = read_table(data, row_id=self.row_id, dialect=self.dialect)
        if table.loci is not None:
            self._refuse_on_genotypes()
        return table, self.of_columns(table.names)

    def of_columns(self, columns: Sequence[str]) -> Described:
        """Return what is said of a table in terms of its own columns."""
        names = [name for name in columns if name not in (self.weight, self.row_id)]
        kinds = None if self.kinds is None else kinds_by_column(self.kinds, names)
        for option, listed in (("--kind", kinds), ("--missing", self.missing)):
            for name in listed if isinstance(listed, Mapping) else ():
                if name and name not in names:
                    raise InputError(f"{option}: there is no column {name!r}{suggestion(name, names)}")
        found = replace(self, kinds=kinds)
        return replace(found, missing=found._spelled(names))

    def without(self, column: str) -> Described:
        """Return what is said of the other columns."""
        kinds = None if self.kinds is None else {name: kind for name, kind in self.kinds.items() if name != column}
        missing = self.missing
        if isinstance(missing, Mapping):
            missing = {name: values for name, values in missing.items() if name != column}
        return replace(self, kinds=kinds, missing=missing)

    def encode(self, data: str | Path | Table) -> tuple[Encoded, Any]:
        """The table as codes, its variables learned, and the values that mean missing in terms of its columns."""
        table, found = self.read(data)
        return found.coded(table), found.missing

    def coded(self, table: Table) -> Encoded:
        """Return a table that was read, as :meth:`read` gives it, as codes, its variables learned."""
        return encode(table, kinds=self.kinds, missing=self.missing, weight=self.weight, columns=self.columns)

    def encode_as(self, data: str | Path | Table, schema: Schema, missing: Any = None) -> Encoded:
        """The table as codes of a model's variables; ``missing`` are the model's values, beside one's own."""
        table, found = self.read(data)
        if table.loci is not None:
            return encode(table, schema)
        both = [_by_column(values, table.names) for values in (missing, found.missing)]
        joined = {name: [*both[0].get(name, ()), *both[1].get(name, ())] for name in table.names}
        given = {name: values for name, values in joined.items() if values}
        return encode(table, schema, missing=given, handle_unknown=self.handle_unknown)

    def _spelled(self, names: list[str]) -> Any:
        """Values by column, where some of all columns (the key "") came with some of single ones."""
        if not isinstance(self.missing, Mapping) or "" not in self.missing:
            return self.missing
        kept = [name for name in names if (self.kinds or {}).get(name) != IGNORED]
        return {name: [*self.missing[""], *self.missing.get(name, ())] for name in kept}

    def _refuse_on_genotypes(self) -> None:
        if self.missing is not None:
            raise InputError("genotype files say themselves which cells are missing; leave --missing out")
        for name, kind in (self.kinds or {}).items():
            if kind != IGNORED and KINDS[kind_and_order(kind)[0]].cells != "copies":
                raise InputError(
                    f"--kind {name}={kind}: variants of a genotype file are of kind dosage; expected {IGNORED} or "
                    "nothing: write the genotypes as a table to fit them as something else"
                )


@dataclass(frozen=True)
class Variants:
    """The variants of a genotype file in its order, fitted or not: ``names``, and those that hold ``one_allele``."""

    names: tuple[str, ...]
    one_allele: frozenset[str]

    @classmethod
    def of(cls, table: Table) -> Variants | None:
        """Return the variants of a table as read; None if it is no genotype file."""
        if table.loci is None:
            return None
        single = [j for j, locus in enumerate(table.loci) if len(locus.alleles) == 1]
        seen = [j for j in single if np.any(np.asarray(table.column(j)) >= 0)]
        return cls(table.names, frozenset(table.names[j] for j in seen))


def _by_column(missing: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Values that mean missing, by column; a list is for all columns."""
    if missing is None:
        return {}
    if isinstance(missing, Mapping):
        return {name: list(values) for name, values in missing.items()}
    return {name: list(missing) for name in names}
