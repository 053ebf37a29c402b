"""Where refinement begins."""

from __future__ import annotations

import pytest

from mixmem import GDLM, simulate_gdlm
from mixmem.models import _learner
from mixmem.selection import halves


@pytest.mark.parametrize(("alpha", "ways"), [(0.003, ["moments", "latent classes"]), (0.3, [])])
def test_latent_classes_are_a_start_where_rows_turn_out_unmixed(alpha, ways, monkeypatch):
    monkeypatch.setattr(_learner, "is_doubtful", lambda start: False)
    monkeypatch.setattr(halves, "SMALL_WORK", 0)
    drawn = simulate_gdlm(600, 10, 3, alpha=alpha, random_state=1)
    model = GDLM(3, random_state=0).fit(drawn.encoded)
    assert [start.way for start in model.report_.refine.starts] == ways
    assert (model.alpha0_ < 0.1) == bool(ways)


@pytest.mark.usefixtures("halves_looked_at")
def test_halves_of_a_small_table_are_starts_even_where_they_agree():
    model = GDLM(3, alpha0=0.6, random_state=0).fit(simulate_gdlm(400, 15, 3, alpha=0.2, random_state=1).encoded)
    ways = [start.way for start in model.report_.refine.starts]
    assert ways[:3] == ["moments", "half of the rows", "half of the rows"]
    assert not {"no-guarantee", "not-found-again"} & {notice.code for notice in model.report_.warnings}
