"""A fitted model as objects of other libraries: ArviZ for the posterior, AnnData for rows and memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.encode import Encoded, decoded
from mixmem.data.schema import Schema
from mixmem.errors import InputError
from mixmem.extras import needs
from mixmem.likelihood.memberships import RowFit
from mixmem.results.fit_report import FitReport
from mixmem.results.uncertainty import Uncertainty
from mixmem.typing import Array

if TYPE_CHECKING:
    import pandas as pd


class Exporting:
    """Hand a fitted model over."""

    alpha_: Array
    alpha0_: float
    contamination_: float
    coding_: Coding
    schema_: Schema
    report_: FitReport
    _theta: Array
    _errors: Uncertainty | None

    def _encoded(self, X: Any) -> Encoded:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        raise NotImplementedError

    def fit_rows(self, X: Any) -> RowFit:
        """Return memberships of rows; see the model."""
        raise NotImplementedError

    @property
    def theta_(self) -> pd.DataFrame:
        """Return theta as a table; see the model."""
        raise NotImplementedError

    def to_arviz(self) -> Any:
        """Return the posterior for ArviZ: draws of alpha, alpha0 and the contamination, by chain.

        At most 400 draws are kept. Theta, of which no draws are kept, stands beside them with its posterior mean and
        standard deviation (``constant_data``: theta, theta_sd). Takes ArviZ (``pip install "mixmem[arviz]"``) and a fit
        that was refined by sampling.

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
        """
        self._check_fitted()
        found, chains = self._errors, self.report_.refine.gibbs
        if found is None or found.alpha_draws is None or found.delta_draws is None or chains is None:
            raise InputError("this fit was not refined by sampling, so there are no draws; expected refine='gibbs'")
        arviz = needs("arviz", "to_arviz()", "arviz")
        n = len(found.delta_draws) // chains.chains
        # draws were thinned chain after chain: equal parts of them are the chains, but for one draw at their border
        alpha = found.alpha_draws[: n * chains.chains].reshape(chains.chains, n, -1)
        posterior = {
            "alpha": alpha,
            "alpha0": alpha.sum(axis=2),
            "contamination": found.delta_draws[: n * chains.chains].reshape(chains.chains, n),
        }
        labels = [" ".join(filter(None, label)) for label in self.schema_.labels]
        coords = {"component": [f"component_{h + 1}" for h in range(len(self.alpha_))], "parameter": labels}
        dims = {"alpha": ["component"], "theta": ["parameter", "component"], "theta_sd": ["parameter", "component"]}
        constant = {"theta": self._theta, "theta_sd": found.theta}
        if hasattr(arviz, "InferenceData"):
            return arviz.from_dict(posterior=posterior, constant_data=constant, coords=coords, dims=dims)
        return arviz.from_dict({"posterior": posterior, "constant_data": constant}, coords=coords, dims=dims)

    def to_anndata(self, X: Any) -> Any:
        """Return a table and its memberships as AnnData, for scanpy and its relatives.

        Takes AnnData (``pip install "mixmem[cells]"``).

        Parameters
        ----------
        X
            Rows of the model's variables, as :meth:`transform` takes them.

        Returns
        -------
        anndata.AnnData
            ``X`` (n, p) numbers, of categories the positions of their levels, NaN where missing;
            ``obsm["memberships"]`` (n, k); ``var["kind"]``; ``uns["mixmem"]`` with alpha, alpha0, contamination and
            theta as a table.
        """
        table = self._encoded(X)
        anndata = needs("anndata", "to_anndata()", "cells")
        import pandas as pd

        cells = np.empty(table.codes.shape)
        for j, column in enumerate(table.coding.columns):
            held = table.codes[:, j].astype(float)
            absent = table.codes[:, j] >= column.n_codes
            values = decoded(table.codes[:, j], column) if column.is_number else held
            cells[:, j] = np.where(absent, np.nan, np.asarray(values, dtype=float))
        return anndata.AnnData(
            X=cells,
            obs=pd.DataFrame(index=pd.Index(table.row_ids).astype(str)),
            var=pd.DataFrame(
                {"kind": [variable.kind for variable in self.schema_.variables]}, index=list(self.schema_.names)
            ),
            obsm={"memberships": self.fit_rows(table).memberships.copy()},
            uns={
                "mixmem": {
                    "alpha": self.alpha_,
                    "alpha0": self.alpha0_,
                    "contamination": self.contamination_,
                    "theta": self.theta_,
                }
            },
        )
