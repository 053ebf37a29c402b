"""Files of a fit that are larger than a page needs: every so many rows, read in pieces."""

from __future__ import annotations

import polars as pl
import pytest

from mixmem.output import fit_files


@pytest.mark.parametrize("piece", [30, 100, 10**6])
def test_every_so_many_rows_of_a_large_file_are_read_in_pieces(piece, tmp_path, monkeypatch):
    ids = [f'row "{at}"\nof the table' if at % 7 == 0 else str(at) for at in range(60)]
    table = pl.DataFrame({"id": ids, "component_1": [at / 64 for at in range(60)]})
    path = tmp_path / "memberships.csv"
    table.write_csv(path)
    monkeypatch.setattr(fit_files, "MOST_BYTES", -(-path.stat().st_size // 3))
    monkeypatch.setattr(fit_files, "PIECE_BYTES", piece)
    found = fit_files._rows(path, ["component_1"])
    assert found.equals(table[::3])
