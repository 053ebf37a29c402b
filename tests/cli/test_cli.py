"""The command line: what is called with what, what is written, and how it ends."""

import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import mixmem
from mixmem.cli import BLAS_THREADS, _usage, main
from mixmem.cli.attempts import Attempts
from mixmem.cli.choose_k import ChoiceRun, choice_text
from mixmem.models._learner import Learner
from mixmem.models.gdlm import load
from mixmem.progress import BarProgress, LineProgress, Progress, current
from mixmem.results.simulate import simulate_gdlm
from mixmem.selection.n_components import KChoice

pytestmark = pytest.mark.usefixtures("quick_halves")

K = 2
FILES = ["alpha.csv", "fit.json", "intervals.csv", "memberships.csv", "model.mixmem", "report.html", "theta.csv"]
COMPONENTS = ["component_1", "component_2"]


@pytest.fixture(scope="module")
def table():
    return simulate_gdlm(200, 9, K, n_levels=3, random_state=0)


@pytest.fixture(scope="module")
def fitted(table, tmp_path_factory):
    """A folder with data.csv and the fit of it in fit/."""
    folder = tmp_path_factory.mktemp("cli")
    frame = table.frame
    frame.insert(0, "who", [f"r{i}" for i in range(len(frame))])
    frame.to_csv(folder / "data.csv", index=False)
    arguments = ["fit", str(folder / "data.csv"), "-k", "2", "--id", "who", "--alpha0", "0.2", "--out"]
    assert main([*arguments, str(folder / "fit"), "--quiet"]) == 0
    return folder


BY_EM = ["-k", "2", "--id", "who", "--alpha0", "0.2", "--refine", "em"]
"""Options of fits that are quick, where what is tested does not depend on how a fit is refined."""


@pytest.fixture(scope="module")
def told(fitted, tmp_path_factory):
    """Exit code, standard output and standard error of a fit with --strict, and its folder."""
    folder, out, err = tmp_path_factory.mktemp("told") / "o", io.StringIO(), io.StringIO()
    arguments = ["fit", str(fitted / "data.csv"), "-k", "2", "--id", "who", "--alpha0", "0.2", "--out", str(folder)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, "--strict"])
    return code, out.getvalue(), err.getvalue(), folder


def run(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, message, *arguments):
    """The command ends with code 2, one message that holds `message`, no result and no traceback."""
    code, out, err = run(capsys, *arguments)
    assert code == 2, err
    assert out == ""
    assert err.startswith("mixmem: error: ")
    assert message in err
    assert "Traceback" not in err
    assert err.count("mixmem: error: ") == 1


# --- What fit calls and writes


def test_fit_hands_its_options_to_the_estimator(monkeypatch, fitted, tmp_path, capsys):
    seen = {}

    class Stop(Exception):
        pass

    def fit(self, X):
        seen.update(self.get_params(), rows=X.codes.shape, ids=X.row_ids[:2].tolist())
        raise Stop("enough")

    monkeypatch.setattr(Learner, "fit", fit)
    options = "--alpha0 0.7 --refine none --contamination 0.1 --partitions 3 --sweeps 4 --solver wnmf --restarts 2"
    options += " --memberships mode --anchors x1,x2 --anchors x3 --anchors x4 --block-start anchors --max-rounds 9"
    options += " --tol 1e-3 --check-alpha0"
    options += " --passes all --scratch there"
    arguments = ["fit", fitted / "data.csv", "-k", 3, "--id", "who", "--out", tmp_path / "o", *options.split()]
    code, out, err = run(capsys, *arguments, "--matching", "angle", "--seed", 5, "--jobs", 1, "--memory-limit", "2GB")
    assert code == 1
    assert out == ""
    assert err == "mixmem: failed with Stop: enough; run again with --verbose for the traceback\n"
    assert list(tmp_path.iterdir()) == []
    assert seen == {
        "n_components": 3, "alpha0": 0.7, "variables": None, "missing": None, "n_partitions": 3,
        "anchors": [["x1", "x2"], ["x3"], ["x4"]], "block_start": "anchors", "max_rounds": 9, "tol": 1e-3,
        "check_alpha0": True,
        "sweeps": 4, "solver": "wnmf", "matching": "angle", "refine": None, "contamination": 0.1, "n_restarts": 2,
        "memberships": "mode", "random_state": 5, "n_jobs": 1, "memory_limit": "2GB", "passes": "all",
        "scratch": "there", "verbose": False, "handle_unknown": "missing", "rows": (200, 9), "ids": ["r0", "r1"],
    }  # fmt: skip
    assert "Traceback" in run(capsys, *arguments, "--verbose")[2]


def test_what_the_authors_program_offers(fitted, tmp_path, capsys):
    """Anchors by name, tolerances, condition numbers, blocks in orders of their own, and alpha0 checked."""
    arguments = ["fit", fitted / "data.csv", "-k", 2, "--id", "who", "--out", tmp_path / "o", "--refine", "none"]
    groups = ["--anchors", "x0,x1", "--anchors", "x2, x3", "--anchors", "x4,x5"]
    more = ["--partitions", 50, "--sweeps", 0, "--alpha0", 9, "--check-alpha0", "--tol", "1e-5"]
    code, out, _ = run(capsys, *arguments, *groups, *more)
    assert code == 0
    assert "condition numbers of the three anchor matrices: " in out
    assert "blocks matched, " in out
    assert "alpha0 estimated beside the given one: " in out
    assert "note: 50 partitions were asked for and 3 were made: the 6 anchors leave 3 to split" in out
    page = (tmp_path / "o" / "report.html").read_text()
    assert "Condition numbers of the three anchor matrices" in page
    assert "estimated beside it" in page
    code, _, err = run(capsys, *arguments, *groups[:4])
    assert code == 2
    assert "expected the option three times, got 'x0,x1', 'x2, x3'" in err


def test_the_table_is_read_once(monkeypatch, fitted, tmp_path, capsys):
    from mixmem.data import files

    calls = []
    original = files.read_file
    monkeypatch.setattr(
        files, "read_file", lambda source, dialect: (calls.append(source), original(source, dialect))[1]
    )
    assert run(capsys, "fit", fitted / "data.csv", *BY_EM, "--out", tmp_path / "o", "--quiet") == (0, "", "")
    assert len(calls) == 1


def test_files_of_a_fit(fitted, table):
    folder = fitted / "fit"
    assert sorted(path.name for path in folder.iterdir()) == FILES
    theta = pl.read_csv(folder / "theta.csv")
    assert theta.columns == ["variable", "level", "statistic", *COMPONENTS]
    assert theta.height == table.schema.n_rows
    alpha = pl.read_csv(folder / "alpha.csv")
    assert alpha.columns == ["component", "alpha"]
    assert alpha["component"].to_list() == COMPONENTS
    memberships = pl.read_csv(folder / "memberships.csv")
    assert memberships.columns == ["who", *COMPONENTS]
    assert memberships["who"].to_list()[:2] == ["r0", "r1"]
    np.testing.assert_allclose(memberships.select(COMPONENTS).to_numpy().sum(axis=1), 1.0, atol=1e-6)
    model = load(folder / "model.mixmem")
    np.testing.assert_allclose(theta.select(COMPONENTS).to_numpy(), model._theta, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(memberships.select(COMPONENTS).to_numpy(), model.transform(table.frame), rtol=1e-7)


@pytest.mark.slow
def test_files_need_no_extra(fitted, tmp_path):
    """A plain install has no pyarrow, which polars asks for when it takes a pandas frame."""
    blocked = (
        "import sys; sys.modules['pyarrow'] = None; from mixmem.cli import main; from mixmem.selection import halves; "
        "halves.SMALL_WORK, halves.MOST_SPLITS = 0, 1; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["fit", str(fitted / "data.csv"), "-k", "2", "--id", "who", "--alpha0", "0.2", "--quiet"]
    ended = subprocess.run([sys.executable, "-c", blocked, *arguments, "--out", str(tmp_path / "fit")], check=False)
    assert ended.returncode == 0
    assert (tmp_path / "fit" / "intervals.csv").read_bytes() == (fitted / "fit" / "intervals.csv").read_bytes()


def test_fit_json_tells_everything(fitted):
    document = json.loads((fitted / "fit" / "fit.json").read_text())
    assert document["mixmem"] == mixmem.__version__
    assert set(document["versions"]) == {"python", "mixmem", "numpy", "scipy", "numba", "polars"}
    assert set(document["machine"]) == {"system", "architecture", "processor"}
    assert document["data"] == {
        "path": str(fitted / "data.csv"), "rows": 200, "variables": 9, "kinds": {"categorical": 9},
        "in_words": {"categories": 9}, "all_of": [], "genotypes": False, "missing_cells": 0, "means": {}, "id": "who",
        "weight": None, "by": None, "labels": None,
        "remarks": ["1 level(s) occur in fewer than 5 rows and are learned poorly, in 'x8': merge them with others"],
    }  # fmt: skip
    assert document["settings"]["n_components"] == K
    assert document["settings"]["alpha0"] == 0.2
    assert document["seed"] == 0
    assert {"reading", "moments", "sweeps", "memberships", "writing"} <= set(document["seconds"])
    assert document["report"] == load(fitted / "fit" / "model.mixmem").report_.to_plain()
    likelihood = document["log_likelihood"]
    assert likelihood["mean_of_rows"] < likelihood["mean_of_rows_given_memberships"] < 0


@pytest.mark.slow
def test_what_fit_prints(fitted, told, tmp_path, capsys):
    code, out, err, folder = told
    arguments = ["fit", fitted / "data.csv", *BY_EM, "--out", tmp_path / "o"]
    assert code == 0
    assert err.startswith("mixmem: warning: 1 level(s) occur in fewer than 5 rows and are learned poorly, in 'x8'")
    assert err.count("\n") == 1  # no terminal looks, so no bars
    with contextlib.redirect_stderr(sys.stdout):
        both = run(capsys, *arguments)[1]
    assert both.startswith("mixmem: warning: 1 level(s) occur")  # before the result
    for text in (
        "2 components in 200 rows of 9 variables",
        "alpha0 0.2 (given)",
        "component_2",
        "told apart best by: x",
    ):
        assert text in out
    assert "converged" in out
    assert str(folder) in out
    code, _, err = run(capsys, *arguments, "--verbose")
    assert code == 0
    assert "mixmem: reading:" in err
    assert "mixmem: writing:" in err


@pytest.mark.slow
def test_estimated_alpha0_is_said(table, tmp_path, capsys):
    table.frame.to_csv(tmp_path / "d.csv", index=False)
    code, out, _ = run(capsys, "fit", tmp_path / "d.csv", "-k", 2, "--jobs", 1, "--out", tmp_path / "o")
    assert code == 0
    assert "(estimated" in out
    assert pl.read_csv(tmp_path / "o" / "memberships.csv")["row"].to_list()[:3] == [0, 1, 2]
    assert "estimated" in (tmp_path / "o" / "report.html").read_text()


@pytest.mark.parametrize(
    ("flags", "terminal", "kind"),
    [
        ([], True, BarProgress),
        ([], False, Progress),
        (["--quiet"], True, Progress),
        (["--verbose"], False, LineProgress),
    ],
)
def test_progress_by_options_and_terminal(monkeypatch, fitted, tmp_path, flags, terminal, kind):
    kinds = []

    def fit(self, X):
        kinds.append(type(current()))
        raise KeyboardInterrupt

    monkeypatch.setattr(Learner, "fit", fit)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert (
        main(["fit", str(fitted / "data.csv"), "-k", "2", "--id", "who", "--out", str(tmp_path / "o"), *flags]) == 130
    )
    assert kinds == [kind]
    assert list(tmp_path.iterdir()) == []


def test_the_first_compilation_is_announced(monkeypatch, fitted, tmp_path, capsys):
    from mixmem import kernels

    monkeypatch.setattr(kernels, "compiled", lambda: False)
    line = "mixmem: compiling kernels for this machine, once (about 20 s)\n"
    arguments = ["memberships", fitted / "fit" / "model.mixmem", fitted / "data.csv", "--out", "-"]
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, line)
    assert out.startswith("who,component_1")
    assert run(capsys, *arguments, "--quiet")[2] == ""
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.config.DISABLE_JIT", 0)
    assert not kernels.compiled()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / f"simplex.f-1.py3{sys.version_info.minor}.nbi").touch()
    assert kernels.compiled()


def test_an_interrupted_fit_leaves_nothing(monkeypatch, fitted, tmp_path, capsys):
    def fit(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(Learner, "fit", fit)
    out = tmp_path / "new" / "o"
    ended = run(capsys, "fit", fitted / "data.csv", "-k", 2, "--id", "who", "--out", out)
    assert ended == (130, "", "mixmem: interrupted; nothing was written\n")
    assert list(tmp_path.iterdir()) == []


# --- The configuration file


def test_config_gives_defaults_and_the_line_wins(monkeypatch, fitted, tmp_path, capsys):
    from mixmem.cli import fit as fitting

    seen = {}

    def run_fit(data, settings, **rest):
        seen.update(settings, **rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "run_fit", run_fit)
    config = tmp_path / "c.toml"
    config.write_text(
        f'components = 4\nalpha0 = 0.5\nsweeps = "auto"\nseed = 3\nid = "who"\nquiet = true\nout = "{tmp_path / "o"}"\n'
    )
    run(capsys, "fit", fitted / "data.csv", "--config", config, "--seed", 9)
    assert (seen["n_components"], seen["alpha0"], seen["sweeps"], seen["random_state"]) == (4, 0.5, "auto", 9)
    assert (seen["described"].row_id, seen["quiet"]) == ("who", True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sweps = 3", "there is no option 'sweps'; did you mean 'sweeps'?"),
        ("alpha0 = ", "is not TOML"),
        ("alpha0 = [1, 2]", "alpha0 holds [1, 2]; expected one value"),
        ("restarts = 'many'", "Invalid value for '--restarts'"),
    ],
)
def test_bad_config_is_refused(fitted, tmp_path, capsys, content, message):
    config = tmp_path / "c.toml"
    config.write_text(content)
    refused(capsys, message, "fit", fitted / "data.csv", "-k", 2, "--out", tmp_path / "o", "--config", config)
    refused(capsys, "does not exist", "fit", "d.csv", "-k", 2, "--out", "o", "--config", tmp_path / "none.toml")
    assert not (tmp_path / "o").exists()


# --- Refusals: exit code 2, a message, nothing half-written

DATA_REFUSALS = {
    "constant variable": (b"a,b,c\n1,1,0\n2,1,1\n1,1,0\n", "column 'b' is constant"),
    "one variable": (b"a\n1\n2\n", "minimum of 2"),
    "no rows": (b"a,b,c\n", "no rows"),
    "empty": (b"", "is empty"),
    "not finite": (b"a,b,c\n1,inf,0\n2,1,1\n1,2,0\n", "inf"),
    "all missing": (b"a,b,c\n1,,0\n2,,1\n1,,0\n", "column 'b' has nothing in it"),
    "identifier": (b"a,b,c\n" + b"".join(b"u%d,%d,%d\n" % (i, i % 2, i % 3) for i in range(30)), "as an identifier"),
    "same names": (b"a,a,c\n1,2,3\n2,1,4\n", "the same name 'a'"),
    "binary": (b"\x00\x01\x02", "NUL bytes"),
    "ragged": (b"a,b,c\n1,2\n1,2,3\n", "line 2: found 2 field(s)"),
}


def test_values_that_do_not_parse_are_refused_in_plain_words():
    """Typer hands on what the library says that checks values; older versions of it have words of their own."""

    class Checked(ValueError):
        def errors(self):
            said = {"type": "greater_than_equal", "msg": "Input should be greater", "input": "0", "ctx": {"ge": 1}}
            return [said]

    class Usage(Exception):
        def format_message(self):
            return "Invalid value for '-k': Input should be greater"

    error = Usage()
    assert _usage(error) == "Invalid value for '-k': Input should be greater (see mixmem --help)"
    error.__cause__ = Checked()
    assert _usage(error) == "Invalid value for '-k': expected 1 or more, got '0' (see mixmem --help)"


@pytest.mark.parametrize("case", DATA_REFUSALS)
def test_bad_data_are_refused(tmp_path, capsys, case):
    content, message = DATA_REFUSALS[case]
    data = tmp_path / "d.csv"
    data.write_bytes(content)
    refused(capsys, message, "fit", data, "-k", 2, "--columns", "strict", "--out", tmp_path / "o")
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize(
    "name", ["d.parquet", "d.feather", "d.npz", "d.csv.gz", "d.xlsx", "d.sqlite", "d.zip", "d.what"]
)
def test_files_that_are_not_what_their_names_say(tmp_path, capsys, name):
    (tmp_path / name).write_bytes(b"a,b,c\n1,2,3\n")
    refused(capsys, name, "fit", tmp_path / name, "-k", 2, "--out", tmp_path / "o")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-k", 40, "--partitions", 2], "more than the anchors can carry"),
        (["-k", 0], "Invalid value for '-k'"),
        ([], "Missing option '-k'"),
        (["-k", 2, "--alpha0", "much"], "--alpha0 is auto or a positive number; got 'much'"),
        (["-k", 2, "--alpha0", "-1"], "--alpha0 must be auto or a positive number from 1e-6 to 1e6; got -1.0"),
        (["-k", 2, "--alpha0", "nan"], "alpha0 must be"),
        (["-k", 2, "--sweeps", "1.5"], "--sweeps is auto or an integer"),
        (["-k", 2, "--solver", "magic"], "--solver must be one of pqp"),
        (["-k", 2, "--matching", "magic"], "matching must be one of"),
        (["-k", 2, "--refine", "magic"], "--refine must be none, auto, gibbs, integrated or em; got magic"),
        (["-k", 2, "--contamination", 1.5], "--contamination must be auto or a share from 0 to less than 1; got 1.5"),
        (["-k", 2, "--id", "whom"], "there is no column 'whom' to take row ids from; did you mean 'who'?"),
        (["-k", 2, "--kind", "x0"], "--kind is COLUMN=KIND, such as age=continuous; got 'x0'"),
        (["-k", 2, "--kind", "=count"], "--kind is COLUMN=KIND"),
        (["-k", 2, "--kind", "x0=number"], "there is no kind 'number'; expected one of categorical,"),
        (["-k", 2, "--kind", "x0=count", "--kind", "x0=ordinal"], "declares 'x0' both count and ordinal"),
        (["-k", 2, "--kind", "x11=count"], "--kind: there is no column 'x11'; did you mean 'x1'?"),
        (["-k", 2, "--missing", "x11=0"], "--missing: there is no column 'x11'; did you mean 'x1'?"),
        (["-k", 2, "--missing", "1,,2"], "--missing is a list of values for all columns (NA,?,-9) or one column"),
        (["-k", 2, "--missing", "=2"], "--missing is a list"),
        (["-k", 2, "--weight", "x11"], "there is no column 'x11' to take weights from"),
        (["-k", 2, "--p", "P"], "--p writes allele frequencies, but 9 of the 9 variables are no genotypes"),
        (["-k", 2, "--q", "same", "--p", "same"], "--q and --p name the same file"),
        (["-k", 2, "--jobs", 0], "Invalid value for '--jobs'"),
        (
            ["-k", 2, "--memory-limit", "lots"],
            "--memory-limit must be a number of bytes, such as 2000000000 or 2GB",
        ),
        (["-k", 2, "--memory-limit", "2kB"], "needs about"),
        (["-k", 2, "--quiet", "--verbose"], "give one of them"),
        (["-k", 2, "--sedd", 1], "--sedd"),
    ],
)
def test_bad_options_are_refused(monkeypatch, fitted, tmp_path, capsys, options, message):
    id_option = [] if "--id" in options else ["--id", "who"]
    monkeypatch.chdir(tmp_path)
    refused(capsys, message, "fit", fitted / "data.csv", "--out", tmp_path / "o", *id_option, *options)
    assert list(tmp_path.iterdir()) == []


def test_a_limit_of_memory_from_a_file_of_options(fitted, tmp_path, capsys):
    (tmp_path / "fit.toml").write_text('memory-limit = "2 kB"')
    arguments = [fitted / "data.csv", "--id", "who", "--config", tmp_path / "fit.toml", "--out", tmp_path / "o"]
    refused(capsys, "but memory_limit (--memory-limit) is 2 kB; ", "fit", *arguments, "-k", 2)
    refused(capsys, "but memory_limit (--memory-limit) is 2 kB; ", "choose-k", *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.toml"]


def test_options_are_refused_before_the_data_are_read(tmp_path, capsys):
    refused(capsys, "solver must be", "fit", tmp_path / "none.csv", "-k", 2, "--solver", "x", "--out", tmp_path / "o")


def test_missing_files_and_commands(fitted, tmp_path, capsys):
    refused(capsys, "none.csv does not exist", "fit", tmp_path / "none.csv", "-k", 2, "--out", tmp_path / "o")
    refused(capsys, "does not exist", "memberships", tmp_path / "m", fitted / "data.csv", "--out", tmp_path / "o.csv")
    refused(capsys, "No such command 'fitt'", "fitt")
    assert list(tmp_path.iterdir()) == []


def test_outputs_that_cannot_be_written(fitted, tmp_path, capsys):
    (tmp_path / "taken").write_text("keep me")
    data, model = fitted / "data.csv", fitted / "fit" / "model.mixmem"
    for out in (tmp_path / "taken", tmp_path / "taken" / "inner"):
        refused(capsys, "is a file", "fit", data, "-k", 2, "--out", out)
        refused(capsys, "is a file", "simulate", "--rows", 9, "-k", 2, "--out", out)
        refused(capsys, "is a file", "demo", "--out", out)
    refused(capsys, "is a file", "memberships", model, data, "--out", tmp_path / "taken" / "m.csv")
    refused(capsys, "expected one of .csv .tsv .parquet", "memberships", model, data, "--out", tmp_path / "m.xls")
    assert (tmp_path / "taken").read_text() == "keep me"
    assert len(list(tmp_path.iterdir())) == 1


# --- memberships


def test_memberships_of_every_kind(fitted, table, tmp_path, capsys):
    model, data = fitted / "fit" / "model.mixmem", fitted / "data.csv"
    for name, read in (("m.csv", pl.read_csv), ("m.parquet", pl.read_parquet)):
        assert run(capsys, "memberships", model, data, "--id", "who", "--out", tmp_path / name) == (0, "", "")
        frame = read(tmp_path / name)
        assert frame.columns == ["who", *COMPONENTS]
        np.testing.assert_allclose(frame.select(COMPONENTS), load(model).transform(table.frame), rtol=1e-7)
    assert run(capsys, "memberships", model, data, "--out", tmp_path / "m.tsv")[0] == 0
    assert (tmp_path / "m.tsv").read_text().startswith("who\tcomponent_1")  # as the fit named rows
    code, out, err = run(capsys, "memberships", model, data, "--id", "who", "--out", "-")
    assert (code, out, err) == (0, (tmp_path / "m.csv").read_text(), "")


def test_an_unknown_level_counts_as_missing_or_is_refused(fitted, tmp_path, capsys):
    lines = (fitted / "data.csv").read_text().splitlines()
    lines[3] = lines[3][:-1] + "7"
    (tmp_path / "new.csv").write_text("\n".join(lines))
    model = fitted / "fit" / "model.mixmem"
    message = "column 'x8', row 3 (id 'r2') holds '7', a level the model does not know"
    arguments = ["memberships", model, tmp_path / "new.csv", "--out", tmp_path / "m.csv"]
    refused(capsys, message, *arguments, "--handle-unknown", "error")
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]
    code, _, err = run(capsys, *arguments)
    assert code == 0
    assert "1 cell of column 'x8' holds a level that the model does not know, such as '7' in 'x8'" in err
    lines[3] = lines[3][:-1]
    (tmp_path / "gap.csv").write_text("\n".join(lines))
    assert run(capsys, "memberships", model, tmp_path / "gap.csv", "--out", tmp_path / "g.csv")[0] == 0
    assert (tmp_path / "g.csv").read_bytes() == (tmp_path / "m.csv").read_bytes()


def test_a_truncated_model_is_refused(fitted, tmp_path, capsys):
    whole = (fitted / "fit" / "model.mixmem").read_bytes()
    for cut in (0, 5, 100, len(whole) - 10):
        (tmp_path / "cut.mixmem").write_bytes(whole[:cut])
        refused(capsys, "cut.mixmem", "memberships", tmp_path / "cut.mixmem", fitted / "data.csv", "--out", "-")


# --- simulate, info, report, demo


def test_an_output_never_replaces_its_input(fitted, tmp_path, capsys):
    data = tmp_path / "d.csv"
    data.write_bytes((fitted / "data.csv").read_bytes())
    model = fitted / "fit" / "model.mixmem"
    before = data.read_bytes()
    refused(capsys, "is the file that is read", "memberships", model, data, "--out", data)
    assert data.read_bytes() == before
    refused(capsys, "the name of the table is empty", "fit", "", "-k", 2, "--out", tmp_path / "o")


def test_another_separator_is_found_and_said(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("a;b;c\n" + "1;2;1\n2;1;1\n1;1;2\n" * 10)
    code, out, err = run(capsys, "info", tmp_path / "s.csv")
    assert (code, err) == (0, "")
    assert "30 rows, 3 columns" in out
    assert "s.csv: columns are parted by semicolons; say --delimiter if that is wrong" in out
    refused(capsys, "--delimiter '|' does not occur", "info", tmp_path / "s.csv", "--delimiter", "|")
    refused(capsys, "--header is one of auto, yes, no", "info", tmp_path / "s.csv", "--header", "maybe")


def test_simulate_writes_what_was_drawn(tmp_path, capsys):
    options = ["--rows", 50, "--variables", 6, "--levels", 3, "-k", 2, "--noise", 0.1, "--alpha", 0.4, "--seed", 4]
    code, out, err = run(capsys, "simulate", *options, "--out", tmp_path / "s")
    assert (code, err) == (0, "")
    assert "data.csv" in out
    drawn = simulate_gdlm(50, 6, 2, n_levels=3, alpha=0.4, noise=0.1, random_state=4)
    np.testing.assert_array_equal(pl.read_csv(tmp_path / "s" / "data.csv").to_numpy(), drawn.codes)
    theta = pl.read_csv(tmp_path / "s" / "truth_theta.csv")
    assert theta.columns == ["variable", "level", "statistic", *COMPONENTS]
    np.testing.assert_allclose(theta.select(COMPONENTS).to_numpy(), drawn.theta, rtol=1e-9)
    np.testing.assert_allclose(pl.read_csv(tmp_path / "s" / "truth_alpha.csv")["alpha"], drawn.alpha, rtol=1e-9)
    memberships = pl.read_csv(tmp_path / "s" / "truth_memberships.csv")
    assert memberships.columns == ["row", *COMPONENTS]
    np.testing.assert_allclose(memberships.select(COMPONENTS).to_numpy(), drawn.memberships, rtol=1e-7)
    refused(capsys, "alpha must be positive", "simulate", "--rows", 9, "-k", 2, "--alpha", 0, "--out", tmp_path / "t")
    refused(capsys, "--noise", "simulate", "--rows", 9, "-k", 2, "--noise", 2, "--out", tmp_path / "t")


def test_info_describes_the_table(fitted, tmp_path, capsys):
    code, out, err = run(capsys, "info", fitted / "data.csv", "--id", "who")
    assert (code, err) == (0, "")
    assert "200 rows, 9 columns" in out
    assert "usable variables  9 (27 levels in all)" in out
    assert "memory as codes   1.8 kB" in out
    assert "largest k         9 " in out
    rows = "\n".join(f"{i % 2},{i % 3},{i % 2},{int(i == 7)}" for i in range(100))
    (tmp_path / "w.csv").write_text("a,b,c,odd\n" + rows)
    out = run(capsys, "info", tmp_path / "w.csv")[1]
    assert "warning: 1 level(s) occur in fewer than 5 rows and are learned poorly, in 'odd'" in out
    assert "nearly constant" in out
    (tmp_path / "n.csv").write_text("a,b,c\n" + "\n".join(f"{i % 2},{i % 3},{int(i**0.5)}" for i in range(81)))
    assert "merge them with others, or, if 'c' counts something, say --kind c=count" in run(
        capsys, "info", tmp_path / "n.csv"
    )[1]  # fmt: skip
    wide = simulate_gdlm(300, 300, 2, random_state=0).frame
    wide.to_csv(tmp_path / "wide.csv", index=False)
    out = run(capsys, "info", tmp_path / "wide.csv")[1]
    assert "... and 275 more" in out
    assert len(out.splitlines()) < 40


def test_info_names_copies_and_scales_with_an_unused_answer(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{j}": rng.integers(1, 6, 200) for j in range(4)})
    gap = rng.choice([1, 2, 4, 5], 200)
    table.assign(q4=gap, tens=2 * rng.integers(0, 4, 200), again=table["q0"]).to_csv(tmp_path / "d.csv", index=False)
    out = run(capsys, "info", tmp_path / "d.csv")[1]
    assert "warning: 'q0' and 'again' say the same in every row: a fit takes each for evidence of its own" in out
    assert 'say --kind "q*=ordinal" --kind again=ordinal' in out
    assert "tens=ordinal" not in out


def test_info_takes_weights(tmp_path, capsys):
    rows = [f"{i % 2},{i // 2 % 3},{i // 6},{i % 5 + 1}" for i in range(18)]
    (tmp_path / "counts.csv").write_text("a,b,c,Freq\n" + "\n".join(rows))
    assert "say --weight Freq" in run(capsys, "info", tmp_path / "counts.csv")[1]
    code, out, err = run(capsys, "info", tmp_path / "counts.csv", "--weight", "Freq")
    assert (code, err) == (0, "")
    assert "18 rows, 3 columns\n" in out
    assert "  weights           column 'Freq': 18 rows stand for 51\n" in out
    assert "most often 1 (43%): 0, 1, 2\n" in out  # 22 of 51
    assert "--weight" not in out
    (tmp_path / "bad.csv").write_text("a,b,c,w\n" + "\n".join([*rows, "1,1,1,"]))
    code, out, err = run(capsys, "info", tmp_path / "bad.csv", "--weight", "w")
    assert code == 2
    assert "usable variables  3" in out
    assert "column 'w', row 19 holds nan; expected finite weights" in err
    refused(capsys, "there is no column 'v' to take weights from", "info", tmp_path / "bad.csv", "--weight", "v")
    refused(capsys, "No such option: --frob (see mixmem info --help)", "info", tmp_path / "bad.csv", "--frob", 1)


def test_levels_that_look_like_something_else_are_named(tmp_path, capsys):
    asked = ["no" if i % 3 == 0 else "yes" if i % 2 else "Yes " for i in range(90)]
    codes = [("?" if i % 7 == 0 else i % 3, 99 if i % 9 == 0 else i % 4 + 1, i % 5) for i in range(90)]
    rows = [f"{word},{a},{b},{c}" for word, (a, b, c) in zip(asked, codes, strict=True)]
    (tmp_path / "d.csv").write_text('asked,"b",c,d\n' + "\n".join(rows))
    _, out, _ = run(capsys, "info", tmp_path / "d.csv")
    assert "'asked' has levels that differ by case or blanks only, 'Yes', 'yes': write them alike" in out
    assert "'?' in 'b' often means a missing cell: if it does here, say --missing \"b=?\"" in out
    assert "'99' in 'c' often means a missing cell" in out
    assert "'d'" not in out.partition("warning")[2]


def test_info_names_every_problem(tmp_path, capsys):
    rows = "\n".join(f"id{i},7,{'' if i else 'inf'},,{i % 2},{7 * i % 30 - 3}" for i in range(30))
    (tmp_path / "d.csv").write_text("name,same,size,gaps,a,b\n" + rows)
    code, out, err = run(capsys, "info", tmp_path / "d.csv", "--kind", "b=count", "--columns", "strict")
    assert code == 2
    assert "usable variables  1" in out
    assert err.startswith("mixmem: error: fit would refuse this table for 6 reasons:\n")
    for text in (
        "'name' has a different value",
        "'same' is constant",
        "'size', row 1 holds inf",
        "'gaps' has nothing in it",
        "'b', row 1 holds -3, but the column is a count",
        "1 usable variable; expected at least 2",
    ):
        assert text in err
    assert "padding" not in out + err
    code, out, err = run(capsys, "info", tmp_path / "d.csv", "--kind", "name=ignore", "--kind", "gaps=ignore")
    assert "30 rows, 4 columns" in out
    assert "for 1 reason:" in err
    assert "note: column 'b' has a different whole number in every row, as ranks and identifiers have" in out
    assert "note: column 'same' is constant: it holds '7' wherever it is not missing, so it is left out" in out
    refused(capsys, "--kind: there is no column 'd'", "info", tmp_path / "d.csv", "--kind", "d=count")


def test_info_says_of_each_column_why_none_is_left(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("name,same,gaps\n" + "\n".join(f"id{i},7," for i in range(30)))
    code, out, err = run(capsys, "info", tmp_path / "d.csv")
    assert (code, "usable variables  0" in out) == (2, True)
    assert "d.csv: 30 rows, 3 columns" in out
    for text in ("column 'name' has a different value", "column 'same' is constant", "column 'gaps' has nothing in it"):
        assert text in err
    message = (
        "0 of 3 columns can be fitted; expected at least 2: column 'name' has a different value in each of its 30 "
        "rows, as an identifier has; column 'same' is constant: it holds '7' wherever it is not missing; "
        "column 'gaps' has nothing in it"
    )
    refused(capsys, message, "fit", tmp_path / "d.csv", "-k", "2", "--out", tmp_path / "fit")


def test_years_with_gaps_are_names_of_columns(tmp_path, capsys):
    years = [1970, 1971, 1972, 1974, 1975, 1976, 1978, 1979]
    rows = "\n".join(f"land{i}," + ",".join(str((i + year % 2) % 3) for year in years) for i in range(30))
    (tmp_path / "d.csv").write_text("land," + ",".join(map(str, years)) + "\n" + rows)
    _, out, _ = run(capsys, "info", tmp_path / "d.csv")
    assert "d.csv: 30 rows, 9 columns" in out
    assert "\n1974 " in out


# --- Numbers, missing cells, weights

MIXED = ["--counts", 4, "--continuous", 4, "--missing", 0.1]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder with a table of categories, counts, numbers and gaps, and the fit of it in fit/."""
    folder = tmp_path_factory.mktemp("mixed")
    drawn = ["simulate", "--rows", 200, "-k", 2, "--variables", 4, *MIXED, "--out", folder, "--quiet"]
    assert main([str(a) for a in drawn]) == 0
    frame = pl.read_csv(folder / "data.csv").with_columns(pl.Series("note", [f"n{i}" for i in range(200)]))
    frame.with_columns(times=1 + pl.arange(200) % 3).write_csv(folder / "noted.csv")
    fit = ["fit", folder / "noted.csv", "-k", 2, "--alpha0", 0.2, "--kind", "note=ignore", "--kind", "x0=ordinal"]
    more = ["--missing", "-9,none", "--missing", "x1=77", "--weight", "times", "--q", folder / "Q"]
    assert main([str(a) for a in [*fit, *more, "--out", folder / "fit", "--quiet"]]) == 0
    return folder


def test_simulated_numbers_and_gaps(mixed, tmp_path, capsys):
    frame = pl.read_csv(mixed / "data.csv")
    assert frame.columns == [f"{name}{j}" for name in ("x", "count", "real") for j in range(4)]
    assert 0.05 < sum(frame.null_count().row(0)) / (200 * 12) < 0.15
    theta = pl.read_csv(mixed / "truth_theta.csv")
    assert theta["statistic"].to_list() == ["probability"] * 16 + ["mean", "variance"] * 8
    assert pl.read_csv(mixed / "truth_memberships.csv").shape == (200, 3)
    refused(capsys, "--noise is for", "simulate", "--rows", 9, "-k", 2, *MIXED, "--noise", 0.1, "--out", tmp_path / "t")
    refused(capsys, "share missing below 1", "simulate", "--rows", 9, "-k", 2, "--missing", 1, "--out", tmp_path / "t")
    refused(capsys, "one variable", "simulate", "--rows", 9, "-k", 2, "--variables", 0, "--out", tmp_path / "t")


def test_fit_takes_kinds_missing_values_and_weights(mixed):
    document = json.loads((mixed / "fit" / "fit.json").read_text())
    assert document["settings"]["variables"] == {"note": "ignore", "x0": "ordinal"}
    assert document["settings"]["missing"]["x1"] == ["-9", "none", "77"]
    assert document["settings"]["missing"]["x2"] == ["-9", "none"]
    data = document["data"]
    assert (data["weight"], data["rows"], data["variables"]) == ("times", 200, 12)
    assert data["kinds"]["ordinal"] == 1
    assert data["missing_cells"] == sum(pl.read_csv(mixed / "data.csv").null_count().row(0))
    memberships = pl.read_csv(mixed / "fit" / "memberships.csv").select(COMPONENTS).to_numpy()
    weighted = np.average(memberships, axis=0, weights=1 + np.arange(200) % 3)
    np.testing.assert_allclose(document["memberships"]["shares"], weighted, rtol=1e-6)
    np.testing.assert_allclose(np.loadtxt(mixed / "Q"), memberships, atol=1e-6)
    assert len((mixed / "Q").read_text().splitlines()[0]) == 17
    theta = pl.read_csv(mixed / "fit" / "theta.csv")
    assert theta.filter(pl.col("variable") == "real0")["statistic"].to_list() == ["mean", "variance"]


def test_missing_values_of_all_columns_reach_the_encoder(monkeypatch, tmp_path, capsys):
    seen = {}

    def fit(self, X):
        seen.update(missing=self.missing, absent=(X.codes == X.coding.soft.absent).sum(axis=0).tolist())
        raise KeyboardInterrupt

    monkeypatch.setattr(Learner, "fit", fit)
    rows = [f"{'-9' if i == 3 else i % 2},{'?' if i < 2 else 'ab'[i % 2]},{i % 3}" for i in range(30)]
    (tmp_path / "d.csv").write_text("a,b,c\n" + "\n".join(rows))
    run(capsys, "fit", tmp_path / "d.csv", "-k", 2, "--missing", "?, -9", "--out", tmp_path / "o")
    assert seen == {"missing": ["?", "-9"], "absent": [1, 2, 0]}


def test_memberships_name_rows_as_the_fit_did(fitted, tmp_path, capsys):
    table = pd.read_csv(fitted / "data.csv")
    fit = [
        "fit",
        fitted / "data.csv",
        "-k",
        2,
        "--id",
        "who",
        "--alpha0",
        0.2,
        "--refine",
        "none",
        "--out",
        tmp_path / "o",
    ]
    assert run(capsys, *fit)[0] == 0
    for limit in ((), ("--memory-limit", "100KB")):
        out = tmp_path / f"m{len(limit)}.csv"
        assert run(capsys, "memberships", tmp_path / "o", fitted / "data.csv", "--out", out, *limit)[0] == 0
        assert pd.read_csv(out)["who"].tolist() == table["who"].tolist()
    table.drop(columns="who").to_csv(tmp_path / "nameless.csv", index=False)
    run(capsys, "memberships", tmp_path / "o", tmp_path / "nameless.csv", "--out", tmp_path / "n.csv")
    assert pd.read_csv(tmp_path / "n.csv")["row"].tolist() == list(range(len(table)))


def test_memberships_go_by_the_models_missing_values(mixed, tmp_path, capsys):
    model = mixed / "fit" / "model.mixmem"
    frame = pl.read_csv(mixed / "noted.csv")
    frame.with_columns(x1=pl.col("x1").fill_null(77), x2=pl.col("x2").fill_null(-9)).write_csv(tmp_path / "coded.csv")
    assert run(capsys, "memberships", model, tmp_path / "coded.csv", "--out", tmp_path / "m.csv") == (0, "", "")
    assert (tmp_path / "m.csv").read_bytes() == (mixed / "fit" / "memberships.csv").read_bytes()
    frame.drop("x1").write_csv(tmp_path / "less.csv")
    refused(capsys, "the data lack 1 of the model's", "memberships", model, tmp_path / "less.csv", "--out", "-")
    more = ["memberships", model, tmp_path / "more.csv", "--out", "-"]
    frame.with_columns(x1=pl.col("x1").fill_null(77), x2=pl.col("x2").fill_null(55)).write_csv(tmp_path / "more.csv")
    refused(capsys, "column 'x2', row", *more, "--handle-unknown", "error")
    code, out, _ = run(capsys, *more, "--missing", "55")  # beside the model's own
    assert (code, out) == (0, (tmp_path / "m.csv").read_text())


def test_a_report_of_numbers_is_rebuilt_from_the_files(mixed, tmp_path, capsys):
    page = (mixed / "fit" / "report.html").read_text()
    assert "200 rows of 12 variables (" in page
    assert "standard deviation" in page
    assert "(all rows " in page
    (tmp_path / "f").mkdir()
    for path in (mixed / "fit").iterdir():
        (tmp_path / "f" / path.name).write_bytes(path.read_bytes())
    assert run(capsys, "report", tmp_path / "f")[0] == 0
    assert (tmp_path / "f" / "report.html").read_text() == page


def test_impute_fills_the_gaps_and_nothing_else(mixed, tmp_path, capsys):
    model, data = mixed / "fit" / "model.mixmem", mixed / "noted.csv"
    assert run(capsys, "impute", model, data, "--out", tmp_path / "f.csv") == (0, "", "")
    before, after = pl.read_csv(data), pl.read_csv(tmp_path / "f.csv")
    assert (after.columns, after.dtypes) == (before.columns, before.dtypes)
    for name in before.columns:
        present = before[name].is_not_null()
        assert before[name].filter(present).to_list() == after[name].filter(present).to_list()
        assert after[name].null_count() == 0
    assert set(after["x0"].unique()) <= {0, 1, 2, 3}
    refused(capsys, "is the file that is read", "impute", model, data, "--out", data)


def test_impute_of_texts_that_stand_for_numbers(mixed, tmp_path, capsys):
    frame = pl.read_csv(mixed / "noted.csv", infer_schema=False)
    frame.with_columns(real0=pl.col("real0").fill_null("none")).write_csv(tmp_path / "t.csv")
    code, out, err = run(capsys, "impute", mixed / "fit" / "model.mixmem", tmp_path / "t.csv", "--out", "-")
    assert (code, err) == (0, "")
    filled = pl.read_csv(io.StringIO(out))["real0"]
    assert filled.dtype == pl.Float64
    assert filled.null_count() == 0


def test_info_describes_numbers_and_gaps(tmp_path, capsys):
    rng = np.random.default_rng(0)
    chol = np.where(rng.random(400) < 0.1, 0.0, rng.normal(240.0, 50.0, 400).round(1).clip(100, 400))
    frame = pl.DataFrame({
        "chol": chol, "visits": rng.poisson(rng.choice([0.0, 6.0], 400)), "sex": rng.choice(["f", "m"], 400),
        "rest": np.where(rng.random(400) < 0.6, np.nan, rng.normal(size=400)),
        "bill": np.where(rng.random(400) < 0.5, 0.0, rng.exponential(5.0, 400)),
        "end": np.where(rng.random(400) < 0.05, 999, rng.integers(18, 60, 400)),
    })  # fmt: skip
    frame.with_columns(pl.col("rest").fill_nan(None)).write_csv(tmp_path / "d.csv")
    code, out, err = run(capsys, "info", tmp_path / "d.csv")
    assert (code, err) == (0, "")
    gaps = int(frame["rest"].is_nan().sum())
    lines = {line.split()[0]: line for line in out.splitlines() if line}
    visits = frame["visits"]
    assert f"count                    0  0 to {visits.max()}, mean {visits.mean():.4g}" in lines["visits"]
    assert f"{gaps} ({gaps / 400:.0%})" in lines["rest"]
    assert f"missing cells     {gaps} of 2,400" in out
    assert "2 levels, most often" in lines["sex"]
    warnings = [line for line in out.splitlines() if line.startswith("warning")]
    assert len(warnings) == 3
    assert "more than half of the cells are missing: 'rest'" in warnings[0]
    assert "'chol' is 0 in" in warnings[1]
    assert warnings[1].endswith("--missing chol=0")
    assert warnings[2].endswith("--missing end=999")
    repaired = ["--missing", "chol=0", "--missing", "end=999", "--kind", "rest=ignore"]
    out = run(capsys, "info", tmp_path / "d.csv", *repaired)[1]
    assert "warning" not in out
    assert "400 rows, 5 columns" in out


def test_config_of_kinds(monkeypatch, fitted, tmp_path, capsys):
    from mixmem.cli import fit as fitting

    seen = {}

    def run_fit(data, settings, **rest):
        seen.update(settings, **rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "run_fit", run_fit)
    (tmp_path / "c.toml").write_text('kind = "x0=count"\nmissing = "x1=0"\nweight = "who"\n')
    run(capsys, "fit", fitted / "data.csv", "-k", 2, "--config", tmp_path / "c.toml", "--out", tmp_path / "o")
    described = seen["described"]
    assert (described.kinds, described.missing, described.weight) == ({"x0": "count"}, {"x1": ["0"]}, "who")


# --- Genotypes


def vcf(folder, name, alternatives, keep=None):
    """A file of variants rs0, rs1, ... with these alternative alleles, of 40 samples of two populations."""
    rng = np.random.default_rng(0)
    head = "\t".join(["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"])
    lines = ["##fileformat=VCFv4.2", head + "".join(f"\ts{i}" for i in range(40))]
    for j, other in enumerate(alternatives):
        share = rng.uniform(0.05, 0.95, (2, 1)).repeat(20, axis=0)
        alleles = (rng.random((40, 2)) < share).astype(int) * (other != "same")
        if "," in other:
            alleles[::7] = 2
        cells = ["./." if (i + j) % 19 == 0 else f"{a}/{b}" for i, (a, b) in enumerate(alleles)]
        if keep is None or j in keep:
            alt = "G" if other == "same" else other
            lines.append("\t".join(["1", str(100 + j), f"rs{j}", "A", alt, ".", ".", ".", "GT", *cells]))
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def test_genotypes_in_the_layout_of_admixture(tmp_path, capsys):
    data = vcf(tmp_path, "d.vcf", ["G", "same", *["T"] * 10])
    arguments = ["fit", data, "-k", 2, "--alpha0", 0.2, "--refine", "none", "--out", tmp_path / "o"]
    code, _, err = run(capsys, *arguments, "--q", tmp_path / "o" / "d.Q", "--p", tmp_path / "d.P")
    assert code == 0, err
    assert err == "mixmem: warning: 1 variant(s) are the same in all samples, or missing, and say nothing: 'rs1'\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.P", "d.vcf", "o"]
    assert "d.Q" in {path.name for path in (tmp_path / "o").iterdir()}
    memberships = pl.read_csv(tmp_path / "o" / "memberships.csv")
    assert memberships["row"].to_list()[:2] == ["s0", "s1"]
    np.testing.assert_allclose(np.loadtxt(tmp_path / "o" / "d.Q"), memberships.select(COMPONENTS), atol=1e-6)
    frequencies = np.loadtxt(tmp_path / "d.P")
    theta = pl.read_csv(tmp_path / "o" / "theta.csv").filter(pl.col("level") == "A").select(COMPONENTS).to_numpy()
    np.testing.assert_allclose(frequencies, theta, atol=1e-6)
    np.testing.assert_allclose(frequencies[1], 1.0, atol=1e-3)
    refused(capsys, "is a file that fit writes", *arguments, "--q", tmp_path / "o" / "theta.csv")
    refused(capsys, f"--p {data} is the file that is read", *arguments, "--p", data)
    page = (tmp_path / "o" / "report.html").read_text()
    assert "(all genotypes, " in page


def bed(folder, n_variants=14, n=40, empty=(3, 9), single=()):
    """PLINK's three files of two populations; nothing is observed at the variants ``empty``."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.05, 0.95, (n_variants, 2)).repeat(n // 2, axis=1)
    copies = (rng.random((n_variants, n, 2)) < share[:, :, None]).sum(axis=2)
    bits = np.array([3, 2, 0])[copies]  # none, one, two copies of A1
    bits[list(empty)] = 1
    packed = (bits.reshape(n_variants, -1, 4) << np.array([0, 2, 4, 6])).sum(axis=2).astype(np.uint8)
    (folder / "d.bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    (folder / "d.bim").write_text("".join(f"1\trs{j}\t0\t{100 + j}\tG\tA\n" for j in range(n_variants)))
    (folder / "d.fam").write_text("".join(f"f{i} s{i} 0 0 0 -9\n" for i in range(n)))
    return folder / "d.bed"


def test_p_goes_with_the_bim_line_by_line(tmp_path, capsys):
    data = bed(tmp_path)
    arguments = ["fit", data, "-k", 2, "--alpha0", 0.2, "--kind", "rs5=ignore", "--out", tmp_path / "o"]
    code, _, err = run(capsys, *arguments, "--p", tmp_path / "d.P")
    assert code == 0, err
    assert "mixmem: warning: --p has NA for 3 variant(s) without genotypes, or ignored: 'rs3', 'rs5', 'rs9'\n" in err
    lines = (tmp_path / "d.P").read_text().splitlines()
    names = [line.split()[1] for line in (tmp_path / "d.bim").read_text().splitlines()]
    assert len(lines) == len(names)
    assert [name for name, line in zip(names, lines, strict=True) if line == "NA NA"] == ["rs3", "rs5", "rs9"]
    theta = pl.read_csv(tmp_path / "o" / "theta.csv").filter(pl.col("level") == "A")
    for name, *row in theta.select("variable", *COMPONENTS).iter_rows():
        np.testing.assert_allclose([float(x) for x in lines[names.index(name)].split()], row, atol=1e-6)


def test_p_of_a_variant_with_one_allele_is_one(tmp_path, capsys):
    data = vcf(tmp_path, "d.vcf", [*["T"] * 6, ".", *["T"] * 6])
    text = data.read_text().splitlines()
    at = next(i for i, line in enumerate(text) if "\trs6\t" in line)
    text[at] = text[at].replace("0/1", "0/0").replace("1/0", "0/0").replace("1/1", "0/0")
    data.write_text("\n".join(text) + "\n")
    code, _, err = run(capsys, "fit", data, "-k", 2, "--alpha0", 0.2, "--out", tmp_path / "o", "--p", tmp_path / "d.P")
    assert code == 0, err
    assert "NA" not in err
    lines = (tmp_path / "d.P").read_text().splitlines()
    assert (len(lines), lines[6]) == (13, "1.000000 1.000000")


def test_info_of_genotypes(tmp_path, capsys):
    data = vcf(tmp_path, "d.vcf", ["G", "same", "T", "C,T"])
    code, out, err = run(capsys, "info", data)
    assert (code, err) == (0, "")
    assert "usable variables  4 (dosage, 9 alleles in all)" in out
    assert "warning: 1 variant(s) are the same in all samples, or missing, and say nothing: 'rs1'" in out
    shares = [
        float(text.strip(",")) for text in next(row for row in out.splitlines() if row[:3] == "rs0").split()[-3::2]
    ]
    assert abs(sum(shares) - 1.0) < 0.011
    refused(capsys, "one frequency per variant, but 1 of 4 have more than two alleles: 'rs3'", "fit", data, "-k", 2,
            "--p", tmp_path / "P", "--out", tmp_path / "o")  # fmt: skip
    refused(capsys, "leave --missing out", "info", data, "--missing", "-9")
    refused(capsys, "variants of a genotype file are of kind dosage", "info", data, "--kind", "rs0=count")
    assert [path.name for path in tmp_path.iterdir()] == ["d.vcf"]


def test_memberships_at_the_variants_that_are_there(tmp_path, capsys):
    alternatives = ["T"] * 12
    data, some = vcf(tmp_path, "d.vcf", alternatives), vcf(tmp_path, "some.vcf", alternatives, keep=range(2, 11))
    fit = ["fit", data, "-k", 2, "--alpha0", 0.2, "--refine", "none", "--out", tmp_path / "o", "--quiet"]
    assert run(capsys, *fit) == (0, "", "")
    model = tmp_path / "o" / "model.mixmem"
    assert run(capsys, "memberships", model, data, "--out", tmp_path / "m.csv") == (0, "", "")
    code, out, err = run(capsys, "memberships", model, some, "--out", "-")
    assert (code, len(out.splitlines())) == (0, 41)
    assert err == "mixmem: 9 of the model's 12 variants were found; the others count as missing\n"
    code, out, _ = run(capsys, "impute", model, some, "--out", "-")
    filled = pl.read_csv(io.StringIO(out))
    assert filled.columns == ["sample", *(f"rs{j}" for j in range(12))]
    assert set(filled.drop("sample").to_numpy().ravel()) <= {0, 1, 2}


# --- Nothing computed is lost


def broken(*_, **__):
    raise RuntimeError("out of\nluck")


@pytest.fixture(scope="module")
def genotyped(tmp_path_factory):
    return vcf(tmp_path_factory.mktemp("genotypes"), "d.vcf", ["T"] * 12)


@pytest.mark.parametrize(
    ("place", "what", "lost"),
    [
        ("mixmem.models._fitted.Fitted.goodness_of_fit", "goodness of fit", None),
        ("mixmem.models._fitted.Fitted.score_samples", "the log-likelihood of the rows", None),
        ("mixmem.models._fitted.Fitted._interval_columns", "intervals.csv", "intervals.csv"),
        ("mixmem.cli.fit.render_page", "report.html", "report.html"),
    ],
)
def test_a_fit_is_written_whatever_fails_beside_it(monkeypatch, fitted, tmp_path, capsys, place, what, lost):
    out = tmp_path / "o"
    out.mkdir()
    for name in FILES:  # of an earlier fit: one that is not written again must not stay
        (out / name).write_text("earlier")
    monkeypatch.setattr(place, broken)
    code, text, err = run(
        capsys, "fit", fitted / "data.csv", "-k", 2, "--id", "who", "--alpha0", 0.2, "--out", out
    )  # fmt: skip
    assert code == 0
    assert err.startswith(
        f"mixmem: warning: {what} could not be made (RuntimeError: out of luck), everything else was; "
    )
    assert err.count("could not be made") == 1
    assert sorted(path.name for path in out.iterdir()) == [name for name in FILES if name != lost]
    assert lost is None or lost not in text
    for name in {"theta.csv", "alpha.csv", "memberships.csv"}:
        assert (out / name).read_bytes() == (fitted / "fit" / name).read_bytes()
    notice = json.loads((out / "fit.json").read_text())["warnings"][-1]
    assert sorted(notice) == ["code", "message", "remedy", "severity"]
    assert (notice["code"], notice["severity"]) == ("diagnostic-failed", "minor")
    assert err.splitlines()[0] == f"mixmem: warning: {notice['message']}; {notice['remedy']}"
    monkeypatch.undo()
    assert run(capsys, "report", out)[0] == 0


def test_a_fit_of_genotypes_is_written_if_cross_validation_fails(monkeypatch, genotyped, tmp_path, capsys):
    monkeypatch.setattr("mixmem.models._fitted.cross_validation", broken)
    code, out, err = run(capsys, "fit", genotyped, "-k", 2, "--cv", 2, "--out", tmp_path / "o", "--q", tmp_path / "Q")
    assert (code, "cross-validation" in out) == (0, False)
    assert "warning: cross-validation could not be made (RuntimeError: out of luck)" in err
    assert (tmp_path / "Q").exists()
    assert json.loads((tmp_path / "o" / "fit.json").read_text())["cross_validation"] is None


def test_values_that_are_not_finite_do_not_lose_a_fit(monkeypatch, fitted, tmp_path, capsys):
    impossible = np.array([-np.inf]), np.zeros(1)
    monkeypatch.setattr("mixmem.models._fitted.Fitted.score_samples", lambda *_, **__: impossible)
    assert run(capsys, "fit", fitted / "data.csv", *BY_EM, "--out", tmp_path / "o", "--quiet")[0] == 0
    assert json.loads((tmp_path / "o" / "fit.json").read_text())["log_likelihood"]["mean_of_rows"] is None


def test_a_fit_of_dates_as_numbers_is_written_with_its_goodness(tmp_path, capsys):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=300)
    columns = {f"x{j}": np.where(rng.random(300) < 0.8, group, 1 - group) for j in range(6)}
    columns["day"] = 20_240_100 + rng.integers(1, 29, 300) + 300 * group
    pl.DataFrame(columns).write_csv(tmp_path / "d.csv")
    arguments = ["fit", tmp_path / "d.csv", "-k", 2, "--alpha0", 0.2, "--kind", "day=continuous", "--refine", "none"]
    code, _, err = run(capsys, *arguments, "--out", tmp_path / "o")
    assert (code, "warning" in err) == (0, False)
    document = json.loads((tmp_path / "o" / "fit.json").read_text())
    assert document["warnings"] == []
    assert document["goodness"]["misfit"] > 0.0


def test_a_choice_and_crowd_labels_are_written_without_their_pictures(monkeypatch, fitted, tmp_path, capsys):
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    out = tmp_path / "k"
    out.mkdir()
    (out / "choose_k.png").write_text("earlier")
    arguments = ["choose-k", fitted / "data.csv", "--id", "who", "--from", 1, "--to", 2, "--alpha0", 0.2, "--out", out]
    code, text, err = run(capsys, *arguments)
    assert (code, "choose_k.png" in text) == (0, False)
    assert "warning: choose_k.png could not be made (RuntimeError: out of luck)" in err
    assert sorted(path.name for path in out.iterdir()) == ["choose_k.csv", "choose_k.json"]
    assert json.loads((out / "choose_k.json").read_text())["warnings"][0]["code"] == "diagnostic-failed"

    labels = "task,worker,label\n" + "".join(
        f"t{t},w{w},{(t + (w == t % 5)) % 2}\n" for t in range(30) for w in range(5)
    )
    (tmp_path / "labels.csv").write_text(labels)
    monkeypatch.setattr("mixmem.cli.crowd.render_crowd_page", broken)
    code, text, err = run(capsys, "crowd", tmp_path / "labels.csv", "--out", tmp_path / "c")
    assert (code, "report.html" in text) == (0, False)
    assert "warning: report.html could not be made (RuntimeError: out of luck)" in err
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "labels.csv", "model.mixmem", "summary.json", "workers.csv",
    ]  # fmt: skip
    assert json.loads((tmp_path / "c" / "summary.json").read_text())["warnings"][0]["code"] == "diagnostic-failed"


def test_files_of_two_fits_make_no_page(fitted, tmp_path, capsys):
    folder, other = tmp_path / "one", tmp_path / "other"
    for out, seed in ((folder, 0), (other, 1)):
        arguments = ["fit", fitted / "data.csv", "-k", 2, "--id", "who", "--alpha0", 0.2, "--refine", "none"]
        assert run(capsys, *arguments, "--restarts", 1 + seed, "--out", out, "--quiet")[0] == 0
    ids = [json.loads((out / "fit.json").read_text())["run"] for out in (folder, other, fitted / "fit")]
    assert len(set(ids)) == 3
    assert [load(out / "model.mixmem").run_id for out in (folder, other)] == ids[:2]
    before = (folder / "report.html").read_bytes()
    own = {name: (folder / name).read_bytes() for name in ("theta.csv", "memberships.csv", "model.mixmem")}
    for name, content in own.items():
        (folder / name).write_bytes((fitted / "fit" / name).read_bytes())
        refused(capsys, f"{name!r} not as the fit of fit.json wrote them", "report", folder)
        (folder / name).write_bytes(content)
    assert (folder / "report.html").read_bytes() == before
    assert run(capsys, "report", folder)[0] == 0
    # a file with other line ends is the same file
    (folder / "theta.csv").write_bytes(own["theta.csv"].replace(b"\n", b"\r\n"))
    assert run(capsys, "report", folder)[0] == 0


def test_report_is_rebuilt_from_the_files(fitted, tmp_path, capsys):
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes((fitted / "fit" / name).read_bytes())
    before = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    assert run(capsys, "report", folder) == (0, f"{folder / 'report.html'}\n", "")
    assert (folder / "report.html").read_text() == before
    (folder / "theta.csv").write_text("variable,level\na,b\n")
    refused(capsys, "do not go together or are damaged", "report", folder)
    (folder / "fit.json").unlink()
    refused(capsys, "lacks fit.json", "report", folder)
    refused(capsys, "is not a folder", "report", tmp_path / "none")


@pytest.mark.slow
def test_demo_shows_that_the_truth_is_found(tmp_path, capsys):
    code, out, err = run(capsys, "demo", "--jobs", 1, "--out", tmp_path / "d")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == sorted(
        [*FILES, "data.csv", "demo.png", "truth_memberships.csv", "truth_theta.csv"]
    )
    assert (tmp_path / "d" / "demo.png").read_bytes().startswith(b"\x89PNG")
    # 0.026 and 0.11 at this seed; without structure found theta's error would be near 0.2.
    words = next(line for line in out.splitlines() if line.startswith("error:")).replace(",", "").split()
    assert float(words[2]) < 0.04
    assert float(words[4]) < 0.14
    assert f"mixmem fit {tmp_path / 'd' / 'data.csv'} -k 4" in out
    assert json.loads((tmp_path / "d" / "fit.json").read_text())["data"]["path"] == str(tmp_path / "d" / "data.csv")


def test_data_from_standard_input_and_from_a_folder(monkeypatch, fitted, tmp_path, capsys):
    raw = (fitted / "data.csv").read_bytes()
    model, expected = fitted / "fit" / "model.mixmem", fitted / "fit" / "memberships.csv"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert run(capsys, "memberships", model, "-", "--id", "who", "--out", tmp_path / "m.csv")[0] == 0
    assert (tmp_path / "m.csv").read_bytes() == expected.read_bytes()
    (tmp_path / "parts").mkdir()
    lines = raw.splitlines(keepends=True)
    (tmp_path / "parts" / "1.csv").write_bytes(b"".join(lines[:90]))
    (tmp_path / "parts" / "2.csv.gz").write_bytes(gzip.compress(lines[0] + b"".join(lines[90:])))
    assert run(capsys, "memberships", model, tmp_path / "parts", "--id", "who", "--out", tmp_path / "m.csv")[0] == 0
    assert (tmp_path / "m.csv").read_bytes() == expected.read_bytes()


# --- choose-k


@pytest.fixture
def enough(monkeypatch):
    """What choose_k is called with, and no further."""
    from mixmem.cli import choose_k as choosing

    seen = {}

    def choose(table, **settings):
        seen.update(settings, rows=table.codes.shape, weights=table.weights)
        raise KeyboardInterrupt

    monkeypatch.setattr(choosing, "choose_k", choose)
    return seen


def test_choose_k_hands_its_options_on_and_leaves_nothing_when_interrupted(enough, fitted, tmp_path, capsys):
    arguments = ["choose-k", fitted / "data.csv", "--id", "who", "--from", 3, "--to", 6, "--alpha0", 0.4,
                 "--memory-limit", "1GB"]  # fmt: skip
    code, out, err = run(capsys, *arguments, "--splits", 4, "--seed", 5, "--jobs", 1, "--out", tmp_path / "a" / "b")
    assert (code, out, err) == (130, "", "mixmem: interrupted; nothing was written\n")
    assert enough == {
        "k_range": (3, 6), "alpha0": 0.4, "n_splits": 4, "random_state": 5, "n_jobs": 1, "memory_limit": "1GB",
        "rows": (200, 9), "weights": None,
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_choose_k_takes_weights(enough, fitted, tmp_path, capsys):
    run(capsys, "choose-k", fitted / "data.csv", "--id", "who", "--weight", "x8", "--out", tmp_path / "o")
    assert enough["rows"][1] == 8
    assert enough["weights"] is not None


def test_files_and_words_of_choose_k(fitted, tmp_path, capsys):
    arguments = ["choose-k", fitted / "data.csv", "--id", "who", "--to", 3, "--alpha0", 0.2, "--splits", 1]
    code, out, err = run(capsys, *arguments, "--out", tmp_path / "o")
    rare = "1 level(s) occur in fewer than 5 rows and are learned poorly, in 'x8': merge them with others"
    assert (code, err) == (0, f"mixmem: warning: {rare}\n")
    lines = out.splitlines()
    assert lines[0].split() == ["k", "held-out", "±", "stability", "worst", "singular", "value", "noise"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    assert lines[1].endswith("  less likely")
    assert lines[2].endswith("  <- recommended")
    assert lines[4].startswith("held-out: mean log-likelihood of rows that were not fitted; ±: standard error of its")
    assert lines[6].startswith("k = 2")
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["choose_k.csv", "choose_k.json", "choose_k.png"]
    frame = pl.read_csv(tmp_path / "o" / "choose_k.csv")
    assert frame.columns[0] == "k"
    assert frame.filter(pl.col("recommended"))["k"].to_list() == [2]
    document = json.loads((tmp_path / "o" / "choose_k.json").read_text())
    assert document["k"] == 2
    assert document["reason"] == lines[6]
    assert document["mixmem"] == mixmem.__version__
    assert document["seed"] == 0
    assert document["alpha0"] == document["settings"]["alpha0"] == 0.2
    assert document["data"] == {
        "path": str(fitted / "data.csv"), "rows": 200, "variables": 9, "id": "who", "weight": None,
        "remarks": [rare],
    }  # fmt: skip
    assert run(capsys, *arguments, "--out", tmp_path / "q", "--quiet") == (0, "", "")


def test_agreements_below_what_is_asked_for_do_not_look_as_if_they_were_enough(tmp_path):
    row = {"k": 1, "held_out": -2.0, "held_out_se": 0.0, "stability": 1.0, "stability_worst": 1.0}
    row |= {"singular_value": np.nan, "noise": np.nan, "recommended": True, "why": "recommended"}
    other = row | {"k": 2, "stability": 0.8999, "stability_worst": 0.8496, "recommended": False}
    table = pd.DataFrame([row, other | {"why": "not found again (0.84)"}])
    choice = KChoice(1, "k = 1", table, 0.2, 1, 100, 5, 0, {})
    text = choice_text(ChoiceRun(choice, {}, Attempts(), ()), tmp_path)
    assert text.splitlines()[1].split()[3:7] == ["1.00", "1.00", "-", "-"]
    assert text.splitlines()[2].split()[3:5] == ["0.89", "0.84"]


def test_choose_k_says_of_the_table_what_info_says(tmp_path, capsys):
    frame = simulate_gdlm(200, 6, 2, random_state=0).frame.assign(job=np.resize(["a", "b", "unknown"], 200))
    frame.assign(jobless=(frame["job"] == "a") * 1).to_csv(tmp_path / "d.csv", index=False)
    told = [line for line in run(capsys, "info", tmp_path / "d.csv")[1].splitlines() if line.startswith("warning: ")]
    assert "'unknown' in 'job' often means a missing cell" in told[-2]
    assert "'job' and 'jobless' go together: the first tells the second in every row" in told.pop()
    arguments = ["choose-k", tmp_path / "d.csv", "--to", 3, "--alpha0", 0.2, "--splits", 1, "--out", tmp_path / "o"]
    code, _, err = run(capsys, *arguments)
    assert code == 0
    assert err.splitlines() == [f"mixmem: {line}" for line in told]
    document = json.loads((tmp_path / "o" / "choose_k.json").read_text())
    assert document["data"]["remarks"] == [line.removeprefix("warning: ") for line in told]
    assert "'job' and 'jobless' go together" in document["reason"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", 5, "--to", 3), "--from 5 --to 3 leaves nothing to choose from"),
        (("--from", 0), "'--from'"),
        (("--to", "many"), "'--to'"),
        (("--alpha0", "much"), "--alpha0 is auto or a positive number"),
    ],
)
def test_choose_k_refuses_before_it_reads(tmp_path, capsys, options, message):
    refused(capsys, message, "choose-k", "not-there.csv", *options, "--out", tmp_path / "o")
    assert list(tmp_path.iterdir()) == []


# --- The program as a whole


def test_version_help_and_nothing(capsys):
    assert run(capsys, "--version") == (0, f"mixmem {mixmem.__version__}\n", "")
    for arguments in ([], ["--help"]):
        code, out, err = run(capsys, *arguments)
        assert (code, err) == (0, "")
        for command in ("demo", "fit", "memberships", "impute", "simulate", "info", "report"):
            assert f"  {command} " in out
    assert "--partitions" in run(capsys, "fit", "--help")[1]


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from mixmem.cli import main; main(['fit', '--help']); "
        "heavy = {'numpy', 'pandas', 'polars', 'numba', 'sklearn', 'matplotlib', 'jinja2'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_fit_imports_no_more_than_it_needs():
    code = (
        "import sys, mixmem.cli.fit; "
        "heavy = {'scipy.stats', 'scipy.optimize', 'scipy.special', 'pandas', 'sklearn', 'matplotlib', 'distributed'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_whole_fit_needs_neither_pandas_nor_the_optimizers_nor_threads_of_blas(fitted, tmp_path):
    arguments = ["fit", str(fitted / "data.csv"), "-k", "2", "--id", "who", "--alpha0", "0.2", "--out"]
    code = (
        f"import sys; from mixmem.cli import main; main({[*arguments, str(tmp_path / 'o')]!r}); "
        "heavy = {'scipy.stats', 'scipy.optimize', 'pandas', 'sklearn', 'matplotlib', 'distributed'}; "
        "from threadpoolctl import threadpool_info; "
        "print(sorted(heavy & set(sys.modules)), {each['num_threads'] for each in threadpool_info()})"
    )
    free = {name: value for name, value in os.environ.items() if name != BLAS_THREADS}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=free)
    assert done.stdout.splitlines()[-1] == "[] {1}"  # threads of BLAS would spin, and are never used
    assert {"intervals.csv", "fit.json"} <= {path.name for path in (tmp_path / "o").iterdir()}


def test_the_module_runs_as_a_program(tmp_path):
    command = [
        sys.executable,
        "-m",
        "mixmem",
        "fit",
        str(tmp_path / "none.csv"),
        "-k",
        "2",
        "--out",
        str(tmp_path / "o"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"mixmem: error: {tmp_path / 'none.csv'} does not exist; check the name and the folder\n"
    assert list(Path(tmp_path).iterdir()) == []


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """A table whose columns have nothing to do with each other."""
    path = tmp_path_factory.mktemp("noise") / "noise.csv"
    codes = np.random.default_rng(0).integers(0, 3, (400, 8))
    pl.DataFrame({f"q{j}": codes[:, j] for j in range(8)}).write_csv(path)
    return path


@pytest.mark.parametrize("refine", ["none", "em"])
def test_a_table_of_noise_is_told_first_and_everywhere(noise, refine, tmp_path, capsys):
    arguments = ["fit", noise, "-k", 3, "--alpha0", 0.5, "--refine", refine, "--out", tmp_path / "o"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert out.startswith("WARNING: the table does not show more than one component")
    assert "told apart best" not in out
    document = json.loads((tmp_path / "o" / "fit.json").read_text())
    assert document["warnings"][0]["code"] == document["report"]["warnings"][0]["code"] == "no-structure"
    page = (tmp_path / "o" / "report.html").read_text()
    assert page.index("Read this first") < page.index("described as")
    assert run(capsys, *arguments, "--strict", "--quiet") == (3, "", "")
    assert (tmp_path / "o" / "model.mixmem").exists()


@pytest.mark.usefixtures("halves_looked_at")
def test_strict_says_nothing_of_a_good_fit(fitted, tmp_path, capsys):
    arguments = ["fit", fitted / "data.csv", "-k", 2, "--id", "who", "--alpha0", 0.2, "--out", tmp_path / "o"]
    code, out, _ = run(capsys, *arguments, "--strict")
    assert (code, "WARNING" in out) == (0, False)


# --- A fit made again


def test_fit_json_makes_the_fit_again_to_the_last_bit(tmp_path, capsys):
    from mixmem import simulate_gdlm

    rng = np.random.default_rng(0)
    frame = simulate_gdlm(150, 8, 2, random_state=0).frame.assign(w=rng.uniform(0.5, 2.0, 150), note="a")
    frame.to_csv(tmp_path / "odd.csv", sep=";", index=False)
    first = ["fit", tmp_path / "odd.csv", "-k", 2, "--alpha0", 0.3, "--weight", "w", "--kind", "x1=ordinal"]
    run(capsys, *first, "--kind", "note=ignore", "--seed", 5, "--delimiter", ";", "--jobs", 1, "--out", tmp_path / "a")
    document = json.loads((tmp_path / "a" / "fit.json").read_text())
    assert document["options"] == {
        "components": "2", "kind": ["x1=ordinal", "note=ignore"], "delimiter": ";", "weight": "w", "alpha0": "0.3",
        "seed": "5",
    }  # fmt: skip
    assert (tmp_path / "a" / "intervals.csv").exists()  # weights that are no whole numbers: by the jackknife
    run(capsys, "fit", "--config", tmp_path / "a" / "fit.json", "--out", tmp_path / "b")
    for name in ("theta.csv", "alpha.csv", "memberships.csv", "intervals.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    run(capsys, "fit", "--config", tmp_path / "a" / "fit.json", "--seed", 6, "--out", tmp_path / "c")
    assert json.loads((tmp_path / "c" / "fit.json").read_text())["options"]["seed"] == "6"
    (tmp_path / "none.json").write_text("{}")
    refused(capsys, "holds no options", "fit", "--config", tmp_path / "none.json", "--out", tmp_path / "d")
    (tmp_path / "none.json").write_text("{")
    refused(capsys, "is not JSON", "fit", "--config", tmp_path / "none.json", "--out", tmp_path / "d")
