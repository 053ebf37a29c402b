"""Reading: anything a user has, as one `Table`."""

from mixmem.read.tables import Coded, Table, read_table

__all__ = ["Coded", "Table", "read_table"]
