"""Other libraries: ArviZ, AnnData, scikit-learn's frames and column transformers, lazy frames of polars and Dask."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixmem import GDLM, InputError, simulate_gdlm, simulate_mixed
from mixmem.refinement import choose

pytestmark = pytest.mark.usefixtures("quick_halves")


@pytest.fixture(scope="module")
def frame():
    return simulate_gdlm(120, 8, 2, random_state=0).frame


@pytest.fixture(scope="module")
def sampled(frame):
    with pytest.MonkeyPatch.context() as patch:
        few = choose.sample_posterior
        patch.setattr(choose, "sample_posterior", lambda *args, **options: few(*args, **options, most_batches=6))
        return GDLM(2, alpha0=0.3, refine="gibbs", random_state=0).fit(frame)


def test_draws_for_arviz(sampled):
    arviz = pytest.importorskip("arviz")
    found = sampled.to_arviz()
    chains = sampled.report_.refine.gibbs.chains
    assert found["posterior"]["alpha"].shape[::2] == (chains, 2)
    assert np.allclose(found["posterior"]["alpha0"], sampled.alpha_.sum())  # it was given
    assert found["constant_data"]["theta"].shape == sampled._theta.shape
    assert list(found["posterior"]["component"].values) == ["component_1", "component_2"]
    assert len(arviz.summary(found, var_names=["alpha"])) == 2


def test_no_draws_and_no_library_are_refused(sampled, frame, monkeypatch):
    with pytest.raises(InputError, match="not refined by sampling, so there are no draws; expected refine='gibbs'"):
        GDLM(2, alpha0=0.3, refine=None, random_state=0).fit(frame).to_arviz()
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(InputError, match=r'to_arviz\(\) takes the library arviz, .*pip install "mixmem\[arviz\]"'):
        sampled.to_arviz()
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(InputError, match=r'to_anndata\(\) takes the library anndata, .*pip install "mixmem\[cells\]"'):
        sampled.to_anndata(frame)


def test_a_table_as_anndata():
    pytest.importorskip("anndata")
    table = simulate_mixed(80, 2, n_categorical=5, n_count=2, n_continuous=2, missing=0.1, random_state=0).frame
    model = GDLM(2, alpha0=0.5, refine=None, random_state=0).fit(table)
    found = model.to_anndata(table)
    assert found.shape == (80, 9)
    assert np.array_equal(found.obsm["memberships"], model.transform(table))
    assert np.array_equal(np.isnan(found.X), table.isna().to_numpy())
    assert list(found.var_names) == list(table.columns)
    assert found.uns["mixmem"]["theta"].shape == model.theta_.shape


def test_columns_are_transformed_beside_others(frame):
    """A model of some columns in a ColumnTransformer, with frames as output, in a pipeline."""
    answers = [f"x{j}" for j in range(8)]
    table = frame.assign(age=np.linspace(20.0, 60.0, len(frame)))
    both = ColumnTransformer(
        [("profile", GDLM(2, alpha0=0.3, refine=None, random_state=0), answers), ("age", StandardScaler(), ["age"])]
    ).set_output(transform="pandas")
    out = both.fit_transform(table)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == ["profile__component_1", "profile__component_2", "age__age"]
    assert list(out.index) == list(table.index)
    chosen = make_pipeline(both, LogisticRegression()).fit(table, frame["x0"] == frame["x0"].iloc[0])
    assert chosen.predict(table).shape == (120,)
    polars = GDLM(2, alpha0=0.3, refine=None, random_state=0).set_output(transform="polars").fit(frame)
    assert polars.transform(frame).columns == ["component_1", "component_2"]


def test_lazy_frames_are_collected(frame):
    model = GDLM(2, alpha0=0.3, refine=None, random_state=0)
    expected = model.fit(frame).alpha_
    assert np.array_equal(model.fit(pl.from_pandas(frame).lazy()).alpha_, expected)


def test_dask_frames_need_a_cluster(frame):
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(InputError, match=r"of Dask; expected fit\(X, engine=client\).* or a table in memory"):
        GDLM(2, alpha0=0.3).fit(dask.from_pandas(frame, npartitions=2))
