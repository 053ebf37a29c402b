"""Reading: anything a user has, as one `Table`."""

from mixmem.read.genotypes import allele_pairs, pair_code
from mixmem.read.tables import Coded, Column, Locus, Table, Unusable, is_missing, plain_values, read_table, usable

__all__ = [
    "Coded", "Column", "Locus", "Table", "Unusable", "allele_pairs", "is_missing", "pair_code", "plain_values",
    "read_table", "usable",
]  # fmt: skip
