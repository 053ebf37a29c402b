"""What commands write and print: tables of the fixed layouts, and short texts for standard output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import typer

from mixmem.errors import InputError
from mixmem.page import plain_number, spread_of_variables
from mixmem.read import is_missing
from mixmem.schema import Schema
from mixmem.store import write_atomically

if TYPE_CHECKING:
    import pandas as pd

    from mixmem.cli.demonstration import DemoRun
    from mixmem.cli.fitting import FitRun
    from mixmem.simulate import Simulation

PARAMETER_DIGITS, MEMBERSHIP_DIGITS = 10, 8
"""Significant digits in the files: more would be bytes without information."""


def component_names(k: int) -> list[str]:
    """component_1..component_k."""
    return [f"component_{h + 1}" for h in range(k)]


def _components(values: np.ndarray, digits: int) -> list[pl.Series]:
    names = component_names(values.shape[1])
    return [pl.Series(name, np.ascontiguousarray(values[:, h])).round_sig_figs(digits) for h, name in enumerate(names)]


def membership_frame(memberships: np.ndarray, row_ids: np.ndarray, row_name: str = "row") -> pl.DataFrame:
    """Row ids and memberships (n, k)."""
    ids = pl.Series(row_name, row_ids.tolist() if row_ids.dtype == object else row_ids, strict=False)
    columns = _components(memberships, MEMBERSHIP_DIGITS)
    if row_name in {column.name for column in columns}:
        raise InputError(f"the row ids' column cannot be called {row_name!r}, as a component is; rename it")
    return pl.DataFrame([ids, *columns])


def as_polars(frame: pd.DataFrame, digits: int | None = None) -> pl.DataFrame:
    """A pandas frame without its index, by way of lists: polars' own way needs pyarrow. Floats cut to the digits."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.to_numpy(dtype=object)
        held = [None if is_missing(value) else value for value in values.tolist()] if values.dtype == object else values
        series = pl.Series(str(name), held, strict=False)
        columns.append(series if digits is None or series.dtype != pl.Float64 else series.round_sig_figs(digits))
    return pl.DataFrame(columns)


def write_theta(path: Path, schema: Schema, theta: np.ndarray) -> None:
    """variable, level, statistic, component_1..k."""
    titles = ("variable", "level", "statistic")
    columns = zip(titles, zip(*schema.labels, strict=True), strict=True)
    labels = [pl.Series(title, list(texts), dtype=pl.String) for title, texts in columns]
    pl.DataFrame([*labels, *_components(theta, PARAMETER_DIGITS)]).write_csv(path)


def write_alpha(path: Path, alpha: np.ndarray) -> None:
    """component, alpha."""
    frame = pl.DataFrame({"component": component_names(len(alpha)), "alpha": alpha})
    frame.with_columns(pl.col("alpha").round_sig_figs(PARAMETER_DIGITS)).write_csv(path)


def write_codes(path: Path, codes: np.ndarray, schema: Schema) -> None:
    """A table of codes as its values."""
    columns = [pl.Series(v.name, v.of_codes()).gather(codes[:, j]) for j, v in enumerate(schema.variables)]
    pl.DataFrame(columns).write_csv(path)


def draw(
    rows: int,
    components: int,
    *,
    variables: int,
    counts: int,
    continuous: int,
    levels: int,
    noise: float,
    missing: float,
    alpha: float,
    seed: int,
) -> Simulation:
    """A table by the paper's design, or one with numbers or missing cells."""
    from mixmem.simulate import simulate_gdlm, simulate_mixed

    if not (counts or continuous or missing):
        return simulate_gdlm(
            rows, variables, components, n_levels=levels, alpha=alpha, noise=noise, random_state=seed
        )  # fmt: skip
    if noise:
        raise InputError(
            "--noise is for tables of categories without missing cells; leave it out, or --counts, "
            "--continuous and --missing"
        )
    if not alpha > 0.0:
        raise InputError(f"alpha must be positive; got {alpha!r}")
    return simulate_mixed(
        rows, components, n_categorical=variables, n_count=counts, n_continuous=continuous, n_levels=levels,
        alpha=alpha, missing=missing, random_state=seed,
    )  # fmt: skip


def write_simulation(folder: Path, drawn: Simulation) -> None:
    """data.csv and the truth in the layouts of fit, under names that a fit into the same folder does not touch."""
    write_codes(folder / "data.csv", drawn.codes, drawn.schema)
    write_theta(folder / "truth_theta.csv", drawn.schema, drawn.theta)
    write_alpha(folder / "truth_alpha.csv", drawn.alpha)
    write_table(folder / "truth_memberships.csv", membership_frame(drawn.memberships, np.arange(len(drawn.codes))))


WRITERS: dict[str, Callable[[pl.DataFrame, Any], Any]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}


def write_table(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame in the format of the suffix."""
    WRITERS[path.suffix.lower()](frame, path)


def refuse_overwriting(out: Path, *inputs: str | Path, option: str = "--out") -> None:
    """An output must not take the place of what it is made from."""
    for path in map(Path, inputs):
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError(f"{option} {out} is the file that is read; name another")


@contextmanager
def table_writer(path: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """A function that writes a frame; a path that cannot be written is refused before anything is computed."""
    if str(path) == "-":
        yield lambda frame: typer.echo(frame.write_csv(), nl=False)
        return
    if path.suffix.lower() not in WRITERS:
        raise InputError(f"{path} has the suffix {path.suffix!r}; expected one of {' '.join(WRITERS)}, or - for CSV")
    with write_atomically(path) as temporary:
        yield lambda frame: write_table(temporary, frame)


# --- Texts for standard output


def fit_text(run: FitRun, out: Path) -> str:
    """What was found, in a few lines."""
    intervals = "intervals.csv, " if run.model._errors is not None else ""
    files = f"report.html (open this), theta.csv, alpha.csv, memberships.csv, {intervals}model.mixmem, fit.json"
    return "\n".join([*_found(run), f"in {out}: {files}"])


def _found(run: FitRun) -> list[str]:
    model, report, k = run.model, run.model.report_, len(run.model.alpha_)
    shares = run.shares
    origin = "estimated" if report["alpha0"]["estimated"] else "given" if k > 1 else "of no meaning with one component"
    if report["alpha0"]["at_bound"]:
        origin += ", at the end of the range searched: rows look " + ("unmixed" if model.alpha0_ < 1 else "alike")
    lines = [
        f"{k} component{'s' * (k > 1)} in {report['rows']:,} rows of {report['variables']:,} variables",
        f"alpha0 {plain_number(model.alpha0_)} ({origin}){_noise(report)}",
        "",
        f"  {'component':<14}{'alpha':>10}{'mean membership':>18}",
    ]
    lines += [
        f"  {name:<14}{plain_number(alpha):>10}{share:>17.1%}"
        for name, alpha, share in zip(component_names(k), model.alpha_, shares, strict=True)
    ]
    if k > 1:
        schema = run.table.schema
        best = np.argsort(-spread_of_variables(model._theta, schema.labels, shares), kind="stable")[:5]
        lines += ["", f"told apart best by: {', '.join(schema.names[j] for j in best)}"]
    if report["refine"]["em"]:
        lines.append(f"log-likelihood {report['refine']['em']['log_likelihood']:,.2f}, with the likeliest memberships")
    if run.document["cross_validation"]:
        found = run.document["cross_validation"]
        lines.append(f"cross-validation error {found['error']:.5f} (k = {k}, {found['folds']} folds)")
    return [*lines, convergence(report)]


def _noise(report: dict[str, Any]) -> str:
    """The contamination, where it is more than nothing."""
    found = report["contamination"]
    if found["value"] == 0.0:
        return ""
    spread = f" +- {found['standard_error']:.1%}" if found["estimated"] else ""
    return f", {found['value']:.1%}{spread} of the cells noise"


def convergence(report: dict[str, Any]) -> str:
    """Whether the fit converged, and what to change if not."""
    if report["converged"]:
        return f"converged: {report['reason']}"
    return f"NOT converged: {report['reason']}; {report['advice']}"


def _program() -> str:
    """How to call this program: by its name where the shell finds it, else by the path it was called with."""
    return "mixmem" if shutil.which("mixmem") or not sys.argv[0].endswith("mixmem") else sys.argv[0]


def demo_text(run: DemoRun, out: Path) -> str:
    """The demonstration in a few lines, and where to go from there."""
    schema, k = run.fit.table.schema, len(run.fit.model.alpha_)
    return "\n".join(
        [
            f"simulated: a survey of {len(run.fit.table.codes):,} respondents, {schema.n_variables} questions with "
            f"{schema.sizes.min()} to {schema.sizes.max()} answers,",
            f"           drawn from {k} hidden profiles with alpha {', '.join(map(plain_number, run.alpha))} "
            f"(alpha0 {plain_number(float(run.alpha.sum()))}),",
            f"           {run.noise:.0%} of the answers given at random",
            "found:     " + "\n           ".join(_found(run.fit)).replace("           \n", "\n"),
            f"error:     theta {run.theta_error:.4f}, memberships {run.membership_error:.4f} (root mean square, "
            "after matching components)",
            f"time:      {run.seconds:.1f} s",
            "",
            f"look at    {out / 'report.html'}   what the components are",
            f"           {out / 'demo.png'}   estimate against truth",
            f"next       {_program()} fit {out / 'data.csv'} -k {k} --out myfit",
        ]
    )
