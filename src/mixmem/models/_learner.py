"""The estimator that tells the story; the stages do the work."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from mixmem.data.chunks import Reading
from mixmem.data.dialect import Dialect
from mixmem.data.encode import Encoded, encode_as
from mixmem.data.sources import larger_than
from mixmem.engine.chunks import Engine, Local
from mixmem.engine.local import threads
from mixmem.engine.memory import available_memory
from mixmem.errors import FitWarning, InputError
from mixmem.likelihood.contamination import noisy_theta
from mixmem.likelihood.memberships import fit_rows
from mixmem.models._fitted import Fitted, Training
from mixmem.models._passes import Everything, looked_at
from mixmem.moments.anchors import Plan, anchor_moments, make_plan
from mixmem.moments.estimate import Settings, Start, estimate, start_of
from mixmem.moments.few_passes import AllRows, corrected_start
from mixmem.moments.sums import FirstMoments, first_moments
from mixmem.parameters import PARAMETERS, bytes_of, check_parameters
from mixmem.progress import Progress
from mixmem.refinement.admixture import are_genotypes
from mixmem.refinement.admixture_start import genotype_starts
from mixmem.refinement.choose import Choice, Refined, choose_method, choose_without_rows, refine
from mixmem.refinement.gibbs import UNMIXED
from mixmem.refinement.latent_classes import ClassAccount, is_doubtful, latent_class_start, within_reach
from mixmem.refinement.memory import bytes_per_row, refuse_beyond
from mixmem.results.doubts import FEWER_PARTITIONS, LookedBack, agreement_of
from mixmem.results.fit_report import PassesReport, fit_report, of_all_rows
from mixmem.results.notices import Notice, diagnostic_failed
from mixmem.results.uncertainty import from_posterior
from mixmem.seeds import seed_sequence
from mixmem.selection.alpha0 import Alpha0, choose_alpha0
from mixmem.selection.halves import FoundAgain, found_again
from mixmem.selection.structure import Structure, structure_of

MORE_CLASSES = 3
"""How many times as many latent classes a fit begins from as half of its rows: where rows are unmixed they are nearly
the model, with many maxima."""
MOST_STARTS = 4
"""Halves of the rows whose ends sampling is started from, too."""


@dataclass(frozen=True)
class Began:
    """Where refinement may begin, the search for alpha0 if there was one, and the table's first moments if taken."""

    starts: tuple[Start, ...]
    chosen: Alpha0 | None = None
    first: FirstMoments | None = None


@dataclass(frozen=True)
class LookedAhead:
    """What is looked at before a fit is refined: the table's structure, what halves of its rows show, what failed.

    ``starts`` are where halves ended that were sampled or do not agree, for sampling to begin at, too: the rows may
    have several answers.
    """

    structure: Structure | None = None
    again: FoundAgain | None = None
    failed: tuple[Notice, ...] = ()
    starts: tuple[Start, ...] = ()


def refuse_more_components_than_rows(n_components: int, table: Encoded) -> None:
    """Refuse more components than the table has rows."""
    if n_components > table.n_rows:
        raise InputError(
            f"n_components={n_components} is more than the {table.n_rows} rows of the table; "
            "expected at most as many components as rows"
        )


def refuse_broken(refined: Refined) -> None:
    """Refuse to hand out numbers that are none."""
    if not (np.isfinite(refined.theta).all() and np.isfinite(refined.alpha).all()):
        raise InputError(
            "the fit broke down: some of its numbers are not finite; try fewer components, give alpha0, or leave out "
            "columns that hold nearly the same value in every row, and please report the table if none of it helps"
        )


def _engine(client: Any) -> Engine:
    """Return who runs what is computed of chunks: this process, or the cluster of a client."""
    if client is None:
        return Local()
    from mixmem.engine.dask import engine_of

    return engine_of(client)


class Learner(Fitted):
    """What :class:`mixmem.GDLM` does, without scikit-learn: importing that takes longer than many a fit.

    The parameters and attributes are those of GDLM.
    """

    _chunk_rows: int | None = None
    """Rows of the chunks that a table is read in; the result does not depend on it."""

    def __init__(
        self,
        n_components: int = 5,
        *,
        alpha0: str | float = "auto",
        variables: Mapping[str, str] | None = None,
        anchors: str | Sequence[Sequence[str]] = "auto",
        n_partitions: str | int = "auto",
        sweeps: str | int = "auto",
        solver: str = "pqp",
        matching: str = "procrustes",
        block_start: str = "random",
        max_rounds: int = 300,
        tol: str | float = "auto",
        check_alpha0: bool = False,
        refine: str | None = "auto",
        contamination: str | float = "auto",
        memberships: str = "mean",
        missing: Any = None,
        handle_unknown: str = "missing",
        n_restarts: int = 10,
        random_state: int | np.random.Generator | None = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        passes: str = "auto",
        scratch: str | os.PathLike[str] | None = None,
        verbose: bool = False,
    ):
        self.n_components = n_components
        self.alpha0 = alpha0
        self.variables = variables
        self.anchors = anchors
        self.n_partitions = n_partitions
        self.sweeps = sweeps
        self.solver = solver
        self.matching = matching
        self.block_start = block_start
        self.max_rounds = max_rounds
        self.tol = tol
        self.check_alpha0 = check_alpha0
        self.refine = refine
        self.contamination = contamination
        self.memberships = memberships
        self.missing = missing
        self.handle_unknown = handle_unknown
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.passes = passes
        self.scratch = scratch
        self.verbose = verbose

    def fit(self, X: Any, y: None = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Learn theta and alpha from a table.

        Parameters
        ----------
        X
            A data frame (pandas, polars, pyarrow), an array, the path of a file, of a folder of files or a pattern
            such as "part-*.parquet", or an :class:`mixmem.Encoded`.
        y : None
            Ignored; scikit-learn passes it.
        sample_weight : array (n,) or None
            How many rows each stands for.
        engine : distributed.Client or None
            A client of the Dask cluster that is to do the work, in few passes; ``X`` may then be a Dask data frame or
            array, or files that all workers see.
        """
        settings, seed, progress = self._settings(), seed_sequence(self.random_state), self._progress()
        self._forget()
        if engine is not None or self._in_few_passes(X, settings):
            return self._fit_in_few_passes(X, sample_weight, settings, seed, progress, engine=_engine(engine))
        with threads(self.n_jobs):
            with progress.stage("read"):
                table = encode_as(X, self.variables, self.missing, sample_weight)
            refuse_more_components_than_rows(settings.n_components, table)
            choice = choose_method(self.refine, table, settings.n_components)
            began = self._start(table, settings, choice.method, seed, progress)
            ahead = self._look_ahead(table, began, choice.method, progress)
            refined = self._refine(table, began, ahead, choice, seed, progress).ordered()
            refuse_broken(refined)
            looked = self._look_back(table, ahead, refined)
        report = fit_report(
            table, began.chosen, refined, looked, free_alpha0=self._free_alpha0,
            settled=self._asked_for_sweeps(refined), seed=seed, seconds=progress.seconds, memberships=self.memberships,
        )  # fmt: skip
        self._set(table.coding, refined.theta, refined.alpha, refined.delta, report)
        self._errors = None if refined.posterior is None else from_posterior(refined.posterior)
        self._training = Training(table, began.first, refined.likeliest, looked.rows)
        self._name_features(X)
        self._warn()
        return self

    def _in_few_passes(self, X: Any, settings: Settings, dialect: Dialect | None = None) -> bool:
        """Whether a sample is learned from and all rows are read in pieces: if asked for, or where a file, of which
        some is known of how it is written, is larger than memory."""
        if isinstance(X, Reading) or self.passes == "few":
            return True
        most = available_memory() if settings.memory_limit is None else settings.memory_limit
        return larger_than(X, most, bytes_per_row(settings.n_components), dialect)

    def _fit_in_few_passes(
        self,
        X: Any,
        sample_weight: Any,
        settings: Settings,
        seed: np.random.SeedSequence,
        progress: Progress,
        then: Callable[[Everything], None] | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """Learn from a sample, corrected by passes over all rows, whose codes are there for ``then``."""
        method, reason = choose_without_rows(self.refine, passes=True)
        with threads(self.n_jobs), self._looked_at(X, sample_weight, settings, progress, engine) as everything:
            sample = everything.sample
            refuse_more_components_than_rows(settings.n_components, sample)
            began = self._start(sample, settings, None, seed, progress, everything.all_rows(self.passes))
            refined = refine(
                sample, began.starts, method, reason, free_alpha0=self._free_alpha0, contamination=self.contamination,
                seed=seed, progress=progress, everywhere=everything.held_cells, rounds=everything.round_sums,
                total=everything.first.total,
            ).ordered()  # fmt: skip
            refuse_broken(refined)
            looked = self._look_back(sample, self._look_ahead(sample, began, None, progress), refined)
            report = fit_report(
                sample, began.chosen, refined, looked, free_alpha0=self._free_alpha0,
                settled=self._asked_for_sweeps(refined), seed=seed, seconds=progress.seconds,
                memberships=self.memberships,
            )  # fmt: skip
            passes = PassesReport(sample.n_rows, everything.united)
            report = of_all_rows(report, everything.chunks.n_rows, everything.first.total, passes)
            self._set(everything.chunks.coding, refined.theta, refined.alpha, refined.delta, report)
            self._errors = None
            held = everything.held
            self._training = None if held is None else Training(held, everything.first, None)
            self._name_features(X)
            if then is not None:
                then(everything)
        self._warn()
        return self

    def _looked_at(
        self, X: Any, weights: Any, settings: Settings, progress: Progress, engine: Engine | None
    ) -> AbstractContextManager[Everything]:
        return looked_at(
            X, kinds=self.variables, missing=self.missing, weights=weights, scratch=self.scratch,
            memory_limit=settings.memory_limit, engine=engine or Local(), progress=progress,
            chunk_rows=self._chunk_rows,
        )  # fmt: skip

    def fit_reading(self, reading: Reading, then: Callable[[Everything], None], client: Any = None) -> Self:
        """Learn from rows that are read in chunks; ``then`` is called while their codes are there.

        Parameters
        ----------
        reading : Reading
            Rows as they are read.
        then : callable
            Called with what is known of the whole table.
        client : Client or None
            Client of a Dask cluster that does the work.
        """
        settings, seed, progress = self._settings(), seed_sequence(self.random_state), self._progress()
        return self._fit_in_few_passes(reading, None, settings, seed, progress, then, _engine(client))

    def _settings(self) -> Settings:
        check_parameters({name: getattr(self, name) for name in PARAMETERS})
        return Settings(
            n_components=int(self.n_components),
            solver=self.solver,
            matching=self.matching,
            n_sweeps=None if self.sweeps == "auto" else int(self.sweeps),
            n_restarts=int(self.n_restarts),
            memory_limit=bytes_of(self.memory_limit),
            block_start=self.block_start,
            max_rounds=int(self.max_rounds),
            tol=None if self.tol == "auto" else float(self.tol),
        )

    @property
    def _free_alpha0(self) -> bool:
        """Whether alpha0 is to be estimated; with one component it has no meaning."""
        return self.alpha0 == "auto" and self.n_components > 1

    def _start(
        self,
        table: Encoded,
        settings: Settings,
        method: str | None,
        seed: np.random.SeedSequence,
        progress: Progress,
        everything: AllRows | None = None,
    ) -> Began:
        """Return where refinement may begin: the genotypes, where their likelihood is climbed, else the moments.

        Where the variables are too few for the moments, or the rows look unmixed, latent classes are a start, too. A
        table that is a sample is corrected by ``everything``.
        """
        given = 1.0 if self.alpha0 == "auto" else float(self.alpha0)
        if method == "em" and are_genotypes(table.schema) and settings.n_components > 1:
            with progress.stage("start"):
                return Began(genotype_starts(table, settings.n_components, given, seed))
        classes = partial(
            latent_class_start, table, k=settings.n_components, seed=seed, progress=progress, more=MORE_CLASSES
        )
        with progress.stage("moments"):
            first = first_moments(table)
            if self._free_anchors and not within_reach(table, settings.n_components):
                refuse_beyond(settings.memory_limit, table, None, settings, method)
                return Began((classes(first, alpha0=given),), None, first)
            plan = self._planned(table, first, settings, method, seed)
            block = anchor_moments(table, plan)
        alpha0, chosen = given, None
        if block is not None:
            alpha0, chosen = self._alpha0_of(table, first, settings, method, seed, progress)
        found = estimate(table, plan, first, block, alpha0, settings, seed=seed, progress=progress)
        finish = start_of if everything is None else partial(corrected_start, everything=everything)
        start = finish(found, table, first, settings, seed=seed, progress=progress)
        if method == "gibbs" and self._free_anchors and block is not None and is_doubtful(start):
            return Began((start, classes(first, alpha0=alpha0)), chosen, first)
        return Began((start,), chosen, first)

    def _planned(
        self, table: Encoded, first: FirstMoments, settings: Settings, method: str | None, seed: np.random.SeedSequence
    ) -> Plan:
        """Return the anchors, as far as memory allows."""
        plan = make_plan(
            table, settings.n_components, anchors=self.anchors, n_partitions=self.n_partitions,
            rng=np.random.default_rng(seed), first=first, memory_limit=settings.memory_limit,
        )  # fmt: skip
        refuse_beyond(settings.memory_limit, table, plan, settings, method)
        return plan

    def _alpha0_of(
        self,
        table: Encoded,
        first: FirstMoments,
        settings: Settings,
        method: str | None,
        seed: np.random.SeedSequence,
        progress: Progress,
    ) -> tuple[float, Alpha0 | None]:
        """Return alpha0 as given or as found, and the search for it if there was one."""
        chosen = None
        if settings.n_components > 1 and (self._free_alpha0 or self.check_alpha0):
            rough = method == "gibbs" and self._free_alpha0
            chosen = choose_alpha0(table, settings, seed=seed, progress=progress, first=first, rough=rough)
        if chosen is not None and self._free_alpha0:
            return chosen.value, chosen
        return 1.0 if self.alpha0 == "auto" else float(self.alpha0), chosen

    @property
    def _free_anchors(self) -> bool:
        """Whether neither anchors nor partitions were asked for."""
        return self.anchors == "auto" and self.n_partitions == "auto"

    def _look_ahead(self, table: Encoded, began: Began, method: str | None, progress: Progress) -> LookedAhead:
        """Return the table's structure and what halves of its rows show, by which doubts about a fit are judged.

        If looking fails the fit goes on, and a notice says so.
        """
        if self.n_components == 1:
            return LookedAhead()
        structure, again, failed = None, None, []
        first = first_moments(table) if began.first is None else began.first
        try:
            structure = structure_of(table, first)
        except Exception as error:
            failed.append(diagnostic_failed("a look at the table's structure", error))
        if structure is not None and structure.found and self._free_anchors and not are_genotypes(table.schema):
            try:
                with progress.stage("halves"):
                    again = found_again(
                        table, first, self.n_components, float(began.starts[0].alpha.sum()),
                        memory_limit=bytes_of(self.memory_limit), sampled=method == "gibbs",
                        free_alpha0=self._free_alpha0,
                    )  # fmt: skip
            except Exception as error:
                failed.append(diagnostic_failed("a look at halves of the rows", error))
        other = again is not None and method == "gibbs" and (again.sampled or not again.holds)
        starts = again.starts[:MOST_STARTS] if again is not None and other else ()
        return LookedAhead(structure, again, tuple(failed), starts)

    def _refine(
        self,
        table: Encoded,
        began: Began,
        ahead: LookedAhead,
        choice: Choice,
        seed: np.random.SeedSequence,
        progress: Progress,
    ) -> Refined:
        """Refine from where moments and halves of the rows lead.

        Chains whose rows turn out unmixed hardly leave where they began: then latent classes are a start, too.
        """
        refining = partial(
            refine, table, method=choice.method, reason=choice.reason, free_alpha0=self._free_alpha0,
            contamination=self.contamination, seed=seed, progress=progress, integrated_rounds=choice.rounds,
            agreed=len(began.starts) == 1 and ahead.again is not None and ahead.again.holds,
        )  # fmt: skip
        starts = began.starts + ahead.starts
        refined = refining(starts)
        alpha0, tried = float(refined.alpha.sum()), any(start.account.way == ClassAccount.way for start in starts)
        if refined.posterior is None or began.first is None or tried or alpha0 >= UNMIXED or not self._free_anchors:
            return refined
        classes = latent_class_start(
            table, began.first, self.n_components, alpha0, seed=seed, progress=progress, more=MORE_CLASSES
        )
        return refining((*starts, classes))

    def _look_back(self, table: Encoded, ahead: LookedAhead, refined: Refined) -> LookedBack:
        """Return what else doubts are judged by: the rows after sampling, and which components halves agree on."""
        if self.n_components == 1:
            return LookedBack(None, None, None)
        rows, agreement, failed = None, None, [*ahead.failed]
        if refined.method == "gibbs":
            theta = noisy_theta(refined.theta, refined.delta, table.schema)
            try:
                rows = fit_rows(table, theta, refined.alpha, memberships=self.memberships)
            except Exception as error:
                failed.append(diagnostic_failed("a look at the rows' memberships", error))
        if ahead.again is not None:
            try:
                agreement = agreement_of(table.schema, refined.theta, ahead.again)
            except Exception as error:
                failed.append(diagnostic_failed("a look at halves of the rows", error))
        memberships = refined.likeliest if rows is None else rows.memberships
        return LookedBack(ahead.structure, rows, memberships, tuple(failed), ahead.again, agreement)

    def _asked_for_sweeps(self, refined: Refined) -> bool:
        """Whether so many sweeps were asked for, settled or not."""
        return refined.method is None and self.sweeps not in ("auto", 0)

    def _warn(self) -> None:
        """Let Python's warnings tell the serious doubts, and what was asked for and could not be had."""
        for notice in self.report_.warnings:
            if notice.severity == "serious" or notice.code == FEWER_PARTITIONS:
                category: type[Warning] = FitWarning
                if notice.code == "not-converged":
                    from mixmem.models._convergence import NotConvergedWarning as category
                warnings.warn(notice.text, category, stacklevel=3)

    def _name_features(self, X: Any) -> None:
        self.n_features_in_ = self.schema_.n_variables + len(self.schema_.left_out)
        names = getattr(X, "columns", None) if hasattr(X, "shape") else None
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
