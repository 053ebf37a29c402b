"""Where refinement begins."""

from __future__ import annotations

import pytest

from mixmem import GDLM, simulate_gdlm
from mixmem.models import _learner


@pytest.mark.parametrize(("alpha", "ways"), [(0.003, ["moments", "latent classes"]), (0.3, [])])
def test_latent_classes_are_a_start_where_rows_turn_out_unmixed(alpha, ways, monkeypatch):
    monkeypatch.setattr(_learner, "is_doubtful", lambda start: False)
    drawn = simulate_gdlm(600, 10, 3, alpha=alpha, random_state=1)
    model = GDLM(3, random_state=0).fit(drawn.encoded)
    assert [start.way for start in model.report_.refine.starts] == ways
    assert (model.alpha0_ < 0.1) == bool(ways)
