"""Which of several starts goes on."""

from __future__ import annotations

from functools import partial

import numpy as np

from mixmem import row_likelihood, simulate_gdlm
from mixmem.moments.estimate import Account, Start
from mixmem.progress import Progress
from mixmem.refinement import choose
from mixmem.refinement.choose import refine
from mixmem.refinement.starts import MOST_TIED, Tried, fell_short, tied

DRAWN = simulate_gdlm(200, 10, 2, alpha=0.2, random_state=0)
TRUE = Start(DRAWN.theta, DRAWN.alpha, Account(True, "the truth", "truth"))
EVEN = Start(np.repeat(DRAWN.theta.mean(axis=1, keepdims=True), 2, axis=1), DRAWN.alpha, TRUE.account)


def test_an_end_is_short_of_a_start_that_rows_are_clearly_likelier_under():
    likely = partial(row_likelihood, DRAWN.encoded)

    def short(theta, reached):
        return fell_short(likely(theta, TRUE.alpha), reached, likely, DRAWN.encoded.total)

    assert short(EVEN.theta, TRUE)
    assert not short(TRUE.theta, EVEN)
    assert not short(0.999 * TRUE.theta + 0.001 * EVEN.theta, TRUE)


def test_chains_that_end_below_a_start_go_on_from_it(monkeypatch):
    """The first start goes on where all lead to one answer; its chains may settle elsewhere than the short one did."""
    began = []
    sample = choose.sample_posterior

    def lost(rows, theta, alpha, unknowns, **options):
        began.append(theta)
        found = sample(rows, theta, alpha, unknowns, most_batches=2, **options)
        return choose.replace(found, theta=EVEN.theta) if theta is EVEN.theta else found

    monkeypatch.setattr(choose, "sample_posterior", lost)

    def refined(reached):
        began.clear()
        tried = Tried(EVEN, "moments", [], reached=reached)
        monkeypatch.setattr(choose, "likeliest_start", lambda *_, **__: tried)
        return refine(
            DRAWN.encoded, [EVEN, TRUE], "gibbs", "asked for", free_alpha0=False, contamination=0.0,
            seed=np.random.SeedSequence(0), progress=Progress(), agreed=True,
        )  # fmt: skip

    assert refined(TRUE).start is TRUE
    assert [theta is TRUE.theta for theta in began] == [False, True]
    assert refined(None).start is EVEN
    monkeypatch.setattr(choose, "row_likelihood", lambda *_: 1 / 0)  # what was sampled is not lost to a figure about it
    found = refined(TRUE)
    assert found.start is EVEN
    assert isinstance(found.unscored, ZeroDivisionError)


def test_starts_that_rows_cannot_tell_from_the_likeliest_are_tied():
    rng = np.random.default_rng(0)
    rows = rng.normal(-30.0, 2.0, 400)
    apart = rng.normal(0.0, 0.5, (5, 400))
    apart -= apart.mean(axis=1, keepdims=True)
    means = np.array([0.0, 0.01, -1.0, -0.01, -0.02])  # the standard error of a difference is 0.035
    assert tied(rows + apart + means[:, None]) == [1, 0, 3, 4][:MOST_TIED]
    assert tied(rows + apart + np.array([0.0, -1.0, -1.0, 2.0, -1.0])[:, None]) == [3]
    assert tied(rows[None]) == [0]
