"""Reading: anything a user has, as one `Table`."""

from mixmem.read.genotypes import allele_pairs, pair_code
from mixmem.read.tables import Coded, Locus, Table, read_table

__all__ = ["Coded", "Locus", "Table", "allele_pairs", "pair_code", "read_table"]
