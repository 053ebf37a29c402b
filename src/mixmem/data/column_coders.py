"""Columns of numbers, of genotypes, and of any other values: the variables they make, and their codes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from mixmem.data.asked import Asked
from mixmem.data.coding import ColumnCoding
from mixmem.data.column_refusals import (
    codes_of,
    constant_column,
    empty_column,
    infinite_cell,
    row_words,
    unknown_level,
)
from mixmem.data.declared import ordered_texts
from mixmem.data.integer_columns import row_blocks
from mixmem.data.kinds import KINDS
from mixmem.data.kinds.base import NumberKind
from mixmem.data.level_text import canonical_text, is_float, is_integer, type_of_texts
from mixmem.data.number_texts import number_of, read_by, written_days, written_numbers
from mixmem.data.schema import Schema, Variable
from mixmem.data.table import Coded, Column, Locus, Table, Unusable, usable
from mixmem.data.value_grid import Measured, Taken, measure, rounded
from mixmem.errors import InputError

LEAST_SIZE = 1e-60
"""Numbers all smaller than this, or larger than its inverse, are beyond what squares of them can hold."""


def are_whole(matrix: np.ndarray) -> np.ndarray:
    """Whether all numbers of a column are whole (p,); missing ones may be."""
    if matrix.dtype.kind != "f":
        return np.ones(matrix.shape[1], dtype=bool)
    whole = np.ones(matrix.shape[1], dtype=bool)
    for rows in row_blocks(matrix):
        block = matrix[rows]
        whole &= ((block == np.rint(block)) | np.isnan(block)).all(axis=0)
    return whole


NO_NUMBER = "declare the column categorical, or the text missing"
NOT_AS_FITTED = "recode the cells as in the table of the fit, or declare the value missing"
"""What to do about cells that a model's column does not take: its kind is settled."""
NO_WEIGHT = "name a column of numbers as the one of weights"


def as_numbers(column: Column, position: int, table: Table, form: str = "", remedy: str = NO_NUMBER) -> np.ndarray:
    """A column as floats (n,), NaN where missing; a text that is no number is refused.

    Texts that are no plain numbers are read by the ``form`` that a model has learned for them.
    """
    return numbers_and_form(column, position, table, form, remedy)[0]


def numbers_and_form(
    column: Column, position: int, table: Table, form: str = "", remedy: str = NO_NUMBER
) -> tuple[np.ndarray, str]:
    """The same, and the form by which texts were read, "" if they are plain numbers; found where it is not given."""
    if isinstance(column, Unusable) and column.days is not None:
        return column.days, ""
    column = usable(column)
    if isinstance(column, np.ndarray):
        return column.astype(np.float64), ""
    values = np.append([number_of(value) for value in column.values], np.nan)
    used = np.unique(column.codes[column.codes >= 0])
    texts = [str(column.values[at]) for at in used]
    if form:
        values[used] = read_by(texts, form)
    elif not np.isfinite(values[used]).all():
        found = written_numbers(texts, decimal_comma=table.decimal_comma) or written_days(texts)
        if found is not None:
            values[used], form = found.values, found.form
    if (odd := used[~np.isfinite(values[used])]).size:
        row, name = int(np.argmax(column.codes == odd[0])), table.names[position]
        value = column.values[odd[0]]
        if math.isinf(values[odd[0]]):
            raise infinite_cell(name, value, row, table)
        raise InputError(
            f"column {name!r}, {row_words(table, row)} holds {value!r}; expected a number"
            + (" written as the others are" if form else "")
            + f": {remedy}"
        )
    return values[column.codes], form


# --- Numbers and genotypes


@dataclass(frozen=True)
class NumberColumn:
    """A column of counts, continuous numbers or numbers of copies; NaN where missing."""

    position: int
    numbers: np.ndarray
    kind: str
    whole: bool
    asked: Asked
    written: str = ""
    """How texts were read as numbers, if they are not plain ones."""

    @cached_property
    def measured(self) -> Measured:
        """The numbers by their values; atoms are those of the schema, if there is one."""
        kind = cast(NumberKind, KINDS[self.kind])
        atoms: tuple[float, ...] | None = None if kind.atoms else ()
        if self.asked.schema is not None:
            atoms = tuple(map(float, self.asked.schema.variables[self.position].levels))
        return measure(self.numbers, self.asked.weights, Taken(self.asked.most_values, atoms, kind.fenced))

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        name = table.names[self.position]
        present = self.numbers[~np.isnan(self.numbers)]
        if not len(present) and schema is None:
            self.asked.judged.leave_out(self.position, empty_column(name, table))
            return
        if KINDS[self.kind].whole:
            self._refuse_fractions(name, table)
        missing = len(present) < len(self.numbers)
        if KINDS[self.kind].cells == "copies":
            yield self.position, ColumnCoding(self._genotype(name, present, table, schema), missing=missing)
            return
        largest = float(np.abs(present).max(initial=0.0))
        # new rows may be near zero; a column to learn from may not be so altogether
        if largest > 1.0 / LEAST_SIZE or (schema is None and 0.0 < largest < LEAST_SIZE):
            raise InputError(
                f"column {name!r} holds numbers up to {largest:g}; expected sizes from {LEAST_SIZE:g} to "
                f"{1.0 / LEAST_SIZE:g}: measure it in another unit, or declare the value missing"
            )
        if self.asked.coding is not None:
            yield self.position, replace(self.asked.coding.columns[self.position], missing=missing)
            return
        found = self.measured
        if schema is None:
            if len(found.values) == 1:
                self.asked.judged.leave_out(self.position, constant_column(name, repr(found.values[0])))
                return
            if self.whole and name not in self.asked.declared:
                self.asked.judged.numbers(self.position, name, present, table)
                if self.position in self.asked.judged.useless:
                    return
            value_type = "int" if self.whole else "float"
            atoms = tuple(canonical_text(int(atom) if self.whole else atom, value_type) for atom in found.atoms)
            variable = Variable(name, atoms, value_type, self.kind, written=self.written)
        else:
            variable = schema.variables[self.position]
        yield self.position, ColumnCoding(variable, found.values, found.edges, found.knots, missing, found.resolution)

    def _refuse_fractions(self, name: str, table: Table) -> None:
        good = np.isnan(self.numbers) | ((self.numbers >= 0.0) & (self.numbers == np.rint(self.numbers)))
        if not good.all():
            row = int(np.argmax(~good))
            raise InputError(
                f"column {name!r}, {row_words(table, row)} holds {self.numbers[row]:g}, but the column is a "
                f"{self.kind}; expected {KINDS[self.kind].words}: "
                + (NOT_AS_FITTED if self.asked.settled else "declare it continuous, or the value missing")
            )

    def _genotype(self, name: str, present: np.ndarray, table: Table, schema: Schema | None) -> Variable:
        most = int(present.max(initial=0.0))
        if schema is not None:
            variable = schema.variables[self.position]
            if most > variable.ploidy:
                row = int(np.nanargmax(self.numbers))
                raise InputError(
                    f"column {name!r}, {row_words(table, row)} holds {most}; expected at most {variable.ploidy} copies"
                )
            return variable
        if len(np.unique(present)) == 1:
            self.asked.judged.leave_out(self.position, constant_column(name, repr(most)))
        return Variable(name, ("0", "1"), "int", self.kind, max(2, most))

    def unknown(self, columns: list[ColumnCoding]) -> Iterator[tuple[int, str, str]]:
        """Numbers have no levels: their grid is fixed."""
        yield from ()

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        column = columns[self.position]
        if KINDS[self.kind].cells == "copies":
            codes[:, self.position] = np.where(np.isnan(self.numbers), column.ploidy + 1, self.numbers)
        elif self.asked.coding is not None:
            codes[:, self.position] = rounded(self.numbers, column.edges, len(column.values))
        else:
            codes[:, self.position] = self.measured.codes


@dataclass(frozen=True)
class GenotypeColumns:
    """A table of genotypes (n, p), as readers of genotype files give it."""

    genotypes: np.ndarray
    loci: tuple[Locus, ...]

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        gaps = np.asarray((self.genotypes < 0).any(axis=0))
        for j, (name, locus) in enumerate(zip(table.names, self.loci, strict=True)):
            variable = Variable(name, locus.alleles, kind="dosage") if schema is None else schema.variables[j]
            yield j, ColumnCoding(variable, missing=bool(gaps[j]))

    def unknown(self, columns: list[ColumnCoding]) -> Iterator[tuple[int, str, str]]:
        """Alleles are matched before."""
        yield from ()

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        most = np.array([column.n_codes for column in columns])
        np.copyto(codes, np.where(self.genotypes < 0, most, self.genotypes), casting="unsafe")


# --- Every other column, by its distinct values


@dataclass(frozen=True)
class ValueColumn:
    """A column by its distinct values and their canonical texts."""

    position: int
    column: Coded
    used: list[int]
    """The values that occur: a categorical dtype may list more."""
    kind: str
    asked: Asked

    @classmethod
    def of(cls, position: int, column: Coded, table: Table, kind: str, asked: Asked) -> ValueColumn:
        counts = np.bincount(column.codes[column.codes >= 0], minlength=len(column.values))
        if not counts.any() and asked.schema is None:
            asked.judged.leave_out(position, empty_column(table.names[position], table))
        return cls(position, column, np.flatnonzero(counts).tolist(), kind, asked)

    @property
    def values(self) -> list[Any]:
        return [self.column.values[u] for u in self.used]

    @property
    def value_type(self) -> str:
        values = self.values
        if self.column.untyped:
            return type_of_texts(values)
        if all(isinstance(v, (bool, np.bool_)) for v in values):
            return "bool"
        if all(is_integer(v) for v in values):
            return "int"
        return "float" if all(is_integer(v) or is_float(v) for v in values) else "str"

    def columns(self, table: Table, schema: Schema | None) -> Iterator[tuple[int, ColumnCoding]]:
        missing = bool((self.column.codes < 0).any())
        if schema is not None:
            variable = schema.variables[self.position]
            if self.asked.unknown is not None:
                missing = missing or any(code is None for _, _, code in self._found(variable))
            yield self.position, ColumnCoding(variable, missing=missing)
            return
        value_type, name = self.value_type, table.names[self.position]
        if value_type == "float" and (bad := [v for v in self.values if math.isinf(float(v))]):
            row = int(np.argmax(self.column.codes == self.column.values.index(bad[0])))
            raise infinite_cell(name, bad[0], row, table)
        texts = dict.fromkeys(canonical_text(v, value_type) for v in self.values)
        if KINDS[self.kind].ordered and (value_type == "str" or name in self.asked.orders):
            order = self.asked.orders.get(name, ())
            texts = dict.fromkeys(ordered_texts(name, texts, order, known=self.column.ordered))
        elif not self.column.ordered:
            texts = dict.fromkeys(sorted(texts, key={"int": int, "float": float}.get(value_type)))
        if self.position in self.asked.judged.useless:
            return
        self.asked.judged.levels(
            self.position, name, tuple(texts), table, held=int((self.column.codes >= 0).sum()),
            texts=value_type == "str" and name not in self.asked.declared,
        )  # fmt: skip
        yield self.position, ColumnCoding(Variable(name, tuple(texts), value_type, self.kind), missing=missing)

    def write(self, codes: np.ndarray, columns: list[ColumnCoding], table: Table) -> None:
        variable = columns[self.position].variable
        lookup = np.zeros(len(self.column.values) + 1, dtype=codes.dtype)
        lookup[-1] = len(variable.levels)  # code -1 finds it
        for used, value, code in self._found(variable):
            if code is None:
                held = self.column.codes == used
                if self.asked.unknown is None:
                    raise unknown_level(variable, str(value), int(np.argmax(held)), table)
                self.asked.unknown.add(variable.name, str(value), int(held.sum()))
            lookup[used] = len(variable.levels) if code is None else code
        codes[:, self.position] = lookup[self.column.codes]

    def _found(self, variable: Variable) -> Iterator[tuple[int, Any, int | None]]:
        """The values that occur, by position and as they are, with their codes; None for one that is not known."""
        known = codes_of(variable)
        for used, value in zip(self.used, self.values, strict=True):
            yield used, value, next((known[form] for form in self._forms(value) if form in known), None)

    def unknown(self, columns: list[ColumnCoding]) -> Iterator[tuple[int, str, str]]:
        """Levels that the column does not know: position, text, type of value."""
        variable = columns[self.position].variable
        for _, value, code in self._found(variable):
            if code is None:
                yield self.position, *self._added(value, variable)

    def _added(self, value: Any, variable: Variable) -> tuple[str, str]:
        """The text and the type of a level that is added: by the value and what is known before, so that they do not
        depend on which other rows are at hand."""
        if not self.column.untyped:
            return canonical_text(value, self.value_type), self.value_type
        if variable.value_type == "str":
            return value, "str"
        value_type = _type_of_text(value)
        return canonical_text(value, value_type), value_type

    def _forms(self, value: Any) -> Iterator[str]:
        """The texts under which a level may be known: a file without types does not say which is meant."""
        yield canonical_text(value, "str")
        if self.column.untyped:
            value_type = _type_of_text(value)
            if value_type != "float" or math.isfinite(float(value)):
                yield canonical_text(value, value_type)


def _type_of_text(text: str) -> str:
    """The type of what a text of a file without types stands for among numbers: "01" is 1 there."""
    found = type_of_texts([text])
    return "int" if found == "str" and text.isdigit() else found
