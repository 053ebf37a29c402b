from __future__ import annotations

import numpy as np
import pytest

from mixmem import InputError, choose_topics, simulate_documents
from mixmem.selection.n_topics import Tried, recommend

DRAWN = simulate_documents(500, 200, 4, length=50, random_state=1)


def test_the_number_that_documents_were_drawn_with_is_found():
    choice = choose_topics(DRAWN.counts, [2, 4, 6], n_splits=1, random_state=0)
    assert choice.n_components == 4
    assert choice.table["n_components"].tolist() == [2, 4, 6]
    assert choice.table["holds"].tolist() == [True, True, False]
    assert choice.table["found_again"].between(0, 1).all()
    assert "4 topics is the largest number tried that holds" in choice.reason
    again = choose_topics(DRAWN.counts, [2, 4, 6], n_splits=1, random_state=0, n_jobs=1)
    assert again.table.equals(choice.table)


def tried(k, gain, found_again):
    rng = np.random.default_rng(k)
    return Tried(k, gain + 0.01 * rng.standard_normal(200), np.ones(200), 0.1, found_again)


def test_a_number_must_complete_better_and_be_found_again():
    choice = recommend([tried(2, 0.0, 1.0), tried(5, 1.0, 0.9), tried(10, 2.0, 0.5), tried(20, 2.0, 0.9)])
    assert choice.n_components == 5
    assert choice.table["holds"].tolist() == [True, True, False, False]
    assert "only 50% of the tokens" in choice.table["why"][2]
    assert "does not complete" in choice.table["why"][3]
    assert "more may hold" in recommend([tried(2, 0.0, 1.0), tried(5, 1.0, 0.9)]).reason


def test_bad_usage_is_refused():
    with pytest.raises(InputError, match="at least 20 documents"):
        choose_topics(DRAWN.counts[:5])
    with pytest.raises(InputError, match="at least 1"):
        choose_topics(DRAWN.counts, [0, 3])
