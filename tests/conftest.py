from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The public data sets, beside the checkout or where MIXMEM_DATA says; tests that need them skip without."""
    folder = Path(os.environ.get("MIXMEM_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data sets at {folder}; set MIXMEM_DATA to their folder")
    return folder
