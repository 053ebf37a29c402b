"""New tables against a model: columns by name, genotypes by variant and allele."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mixmem.data.genotype_codes import allele_pairs, pair_code
from mixmem.data.schema import Schema
from mixmem.data.table import Locus, Table
from mixmem.errors import InputError
from mixmem.words import listing, suggestion

if TYPE_CHECKING:
    pass


def match_columns(table: Table, schema: Schema) -> Table:
    if table.positional and set(table.names) == {*schema.names, *schema.left_out}:
        table = table.take([j for j, name in enumerate(table.names) if name not in schema.left_out])
    if table.positional:
        if table.n_columns != schema.n_variables:
            raise InputError(
                f"X has {table.n_columns} features, but mixmem is expecting {schema.n_variables} features "
                "as input: "
                f"give the columns {listing(schema.names)}, in this order"
            )
        table = replace(table, names=schema.names, positional=False)
    if table.loci is not None:
        return match_loci(table, table.loci, schema)
    positions = {name: position for position, name in enumerate(table.names)}
    missing = [name for name in schema.names if name not in positions]
    if missing:
        hint = suggestion(missing[0], table.names)
        raise InputError(
            f"the data lack {len(missing)} of the model's {schema.n_variables} columns: {listing(missing)}; "
            f"add or rename columns (for {missing[0]!r}{hint.replace('expected', 'the data have')})"
        )
    return table.take([positions[name] for name in schema.names])


def match_loci(table: Table, loci: tuple[Locus, ...], schema: Schema) -> Table:
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
        if variable.own_kind.cells != "copies":
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
