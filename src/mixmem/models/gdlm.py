"""GDLM: the learner as a scikit-learn estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixmem.models._estimator import Estimator, Transformer
from mixmem.models._from_moments import MomentsLearner
from mixmem.typing import Array


class GDLM(MomentsLearner, Transformer, Estimator):
    """Learn a generalized Dirichlet latent variable model by the method of moments (PTPQP), and refine it.

    Row i has memberships x_i ~ Dirichlet(alpha) in k components. Its cell in variable j is drawn from a component that
    is drawn from x_i: a category has level c with probability sum_h theta_jch x_ih, a count or a continuous number the
    component's mean and variance, each copy of a genotype the component's allele frequencies. Cells may be missing.

    Parameters
    ----------
    n_components : int
        Number of components k.
    alpha0 : "auto" or float
        Sum of alpha: small where a row belongs to few components, large where all rows are alike mixtures. "auto" takes
        the value under which the rows are most likely.
    variables : dict or None
        Kinds of columns, where they are not to be inferred: {"age": "continuous", "visits": "count", "note": "ignore"};
        also "categorical", "binary", "ordinal" (of texts with their order, "ordinal:never<sometimes<often"), "dosage".
        A name such as "q*" stands for every column it fits. ``schema_`` and ``mixmem info`` show what was inferred.
    anchors : "auto" or three lists of names
        Variables of the first block (pi^u, pi^v, pi^w), disjoint.
    n_partitions : "auto" or int
        A number runs the paper's partitioned factorization with that many blocks; "auto" takes all variables from the
        anchors in one pass.
    sweeps : "auto" or int
        Alternating passes over the full tensor, never formed; 0 for none, as in the paper.
    solver : str
        How blocks are factorized: "pqp", "hals", "wnmf", "meld", "tpm", "nojd0", "nojd1" or "lee_seung"
        (:func:`mixmem.factorize` says what each is).
    matching : str
        How blocks are matched: "procrustes" or "angle".
    block_start : "random" or "anchors"
        Where the blocks of ``n_partitions`` begin: each at random, as in the paper, and then matched; or at the
        anchors' solution, whose order they keep, sooner done and seldom worse.
    max_rounds : int
        Rounds over the three modes of a block at most.
    tol : "auto" or float
        Relative fall of a block's squared residual that ends its rounds; "auto" for 1e-4 where sweeps follow, else
        1e-6.
    check_alpha0 : bool
        Estimate alpha0 beside the one that is given, and warn where the two differ (``report_.alpha0.checked``).
    refine : None, "auto", "gibbs", "integrated" or "em"
        After the moments: "gibbs" samples the posterior (the most accurate, with uncertainty), "integrated" runs a few
        rounds of EM with the memberships integrated out (for long rows of categories), "em" maximises the
        likelihood of theta and memberships together (as ADMIXTURE does), None leaves the moment estimate. "auto"
        maximises the likelihood of tables of diploid genotypes, samples others where rows have at most 200
        variables and it takes half a minute at most, and runs rounds where rows are longer, they take seconds
        and there are 400 rows per component; from 2,000 variables on all components are moved together in the end.
    contamination : "auto" or float
        Share of cells (delta) that are noise, uniform over the variable's levels; theta is then that of the other
        cells. "auto" is estimated by sampling, and zero without it.
    memberships : "mean" or "mode"
        What a row's memberships are: the posterior mean, which errs least, for rows that are short or long enough for
        it to be had at once, and the mode in softmax coordinates for those between; or the mode for all.
    missing : None, list or dict
        Values that mean a missing cell, beside NaN and None: a list for all columns, or {"cholesterol": [0]}.
    handle_unknown : "missing" or "error"
        What is done with new rows' levels that the model does not know: they count as missing, with a warning that says
        how many, or are refused.
    n_restarts : int
        Random starts of the anchor block, of which the best is kept.
    random_state : None, int or numpy random generator
        The result is the same to the last bit for the same integer, at any number of threads; None draws a new seed
        every time.
    n_jobs : None or int
        Threads; None for all cores.
    memory_limit : None, int or str
        Bytes that a fit may take beside Python and the table as read, such as 2000000000 or "2GB". Anchors are chosen
        so that it suffices, where that is possible; what needs more is refused before it begins. None for the memory
        that is available. Genotypes whose likelihood is climbed have no moments, and are not bounded. Files of CSV,
        Parquet, Arrow or PLINK (.bed) that are larger are read in pieces, and fitted in few passes.
    passes : "auto", "few" or "all"
        "few": kinds, grids, alpha0 and the first theta come from a sample of whole row blocks spread over the
        table, and theta is corrected by one or two passes over all rows: as accurate as sweeps over all, at a part of
        their work. The same to the last bit in memory and from files, with any number of threads. There is no
        refinement. "all": every sweep goes over all rows; of files larger than memory they are read anew for every
        group of variables, from the sample's theta on, which takes many times as long. "auto": "few" for files larger
        than memory, else "all".
    scratch : None or path
        Folder for the codes of a table that is read in pieces, one byte per cell, removed in the end. None: codes
        are kept in memory if they take a quarter of it at most; else CSV files use the system's folder for temporary
        files, and other files are read anew in every pass.
    verbose : bool
        Say on standard error what is done and how long it took.

    Attributes
    ----------
    theta_ : DataFrame
        variable, level, statistic (probability, mean or variance), component_1..component_k; the paper's theta_j
        stacked.
    alpha_, alpha0_ : (k,) array and its sum.
    contamination_ : float
        Share of noise cells.
    schema_ : Schema
        Variables and levels.
    coding_ : Coding
        How the table's cells were coded.
    memberships_ : (n, k) array
        Memberships of the rows it was fitted to.
    report_ : FitReport
        The start (of moments: plan, blocks, share of negative moments, matching guarantees, sweeps), alpha0,
        refinement, timings; fields by attribute or by name, as in fit.json.

    Examples
    --------
    >>> from mixmem import GDLM, simulate_gdlm
    >>> table = simulate_gdlm(500, 12, 2, random_state=0).frame
    >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(table)
    >>> model.transform(table).shape
    (500, 2)
    """

    def transform(self, X: Any) -> Array:
        """Return memberships (n, k) of rows, which sum to one: the posterior mean, or as ``memberships`` asks for.

        Parameters
        ----------
        X : frame, array, Arrow table or path
            Rows with the columns that the model was fitted to.
        """
        return super().transform(X)  # defined here too, because scikit-learn's set_output looks in this class

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags


def load(path: str | Path) -> GDLM:
    """Read a model that :meth:`GDLM.save` wrote, of this version or an earlier one.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    GDLM

    Examples
    --------
    >>> import tempfile, os
    >>> from mixmem import GDLM, load, simulate_gdlm
    >>> model = GDLM(2, alpha0=0.2, random_state=0).fit(simulate_gdlm(200, 9, 2, random_state=0).frame)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "m.mixmem"))
    ...     again = load(os.path.join(folder, "m.mixmem"))
    >>> bool((again.alpha_ == model.alpha_).all())
    True
    """
    return GDLM.load(path)
