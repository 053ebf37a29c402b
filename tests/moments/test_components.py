from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixmem import GDLM, InputError, Schema, Variable, align_components, alignment, common_rows, simulate_gdlm


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_any_permutation_is_undone(seed, k):
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Variable(f"v{j}", ("a", "b", "c")) for j in range(6)))
    theta = np.vstack([rng.dirichlet(np.ones(3), size=k).T for _ in range(6)])
    shuffled = theta[:, rng.permutation(k)]
    found = alignment(schema, theta, schema, shuffled)
    assert (shuffled[:, found.order] == theta).all()
    assert (found.distances == 0.0).all()
    assert found.n_rows == 18


def test_the_order_has_the_least_error_of_all_orders():
    """Guards against the worst assignment where two columns are nearest one: columns so noisy that many are."""
    rng = np.random.default_rng(0)
    everything = np.array(list(permutations(range(4))))
    n_repeated = 0
    for _ in range(200):
        truth = rng.random((5, 4))
        estimate = truth[:, rng.permutation(4)] + 0.25 * rng.standard_normal((5, 4))
        errors = ((truth[:, :, None] - estimate[:, None, :]) ** 2).sum(axis=0)
        best = everything[errors[np.arange(4), everything].sum(axis=1).argmin()]
        assert (align_components(truth, estimate) == best).all()
        n_repeated += len(set(errors.argmin(axis=1))) < 4
    assert 20 < n_repeated < 180  # of 200: both ways are taken


def test_common_rows_pair_equal_names_whatever_their_place():
    first = Schema((Variable("a", ("x", "y")), Variable("b", ("1", "2", "3")), Variable("c", ("u", "v"))))
    second = Schema((Variable("b", ("3", "1", "4")), Variable("d", ("x", "y")), Variable("a", ("y", "z"))))
    rows, rows_other = common_rows(first, second)
    assert rows.tolist() == [1, 2, 4]  # a=y, b=1, b=3
    assert rows_other.tolist() == [5, 1, 0]


@pytest.mark.slow
def test_models_of_overlapping_tables_are_aligned():
    """Two fits on halves of the rows and on columns 0-17 and 6-23, the second in reverse order of columns."""
    drawn = simulate_gdlm(4000, 24, 3, random_state=3)
    frame = drawn.frame
    first = GDLM(3, alpha0=0.3, random_state=0).fit(frame.iloc[:2000, :18])
    second = GDLM(3, alpha0=0.3, random_state=1).fit(frame.iloc[2000:, :5:-1])
    found = alignment(first.schema_, first._theta, second.schema_, second._theta)
    assert sorted(found.order.tolist()) == [0, 1, 2]
    assert found.n_rows == 12 * 4
    assert found.distances.max() < 0.05
    rows, rows_other = common_rows(first.schema_, second.schema_)
    difference = first._theta[rows] - second._theta[rows_other][:, found.order]
    assert found.distances == pytest.approx(np.sqrt((difference**2).mean(axis=0)))


def test_refusals():
    first = Schema((Variable("a", ("x", "y")),))
    second = Schema((Variable("a", ("u", "v")), Variable("b", ("x", "y"))))
    with pytest.raises(InputError, match=r"no level of any variable in common.*'a', the other 'a', 'b'"):
        common_rows(first, second)
    with pytest.raises(InputError, match="the reference has 2, the other model 3"):
        alignment(first, np.full((2, 2), 0.5), first, np.full((2, 3), 0.5))
