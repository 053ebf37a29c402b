"""A kind that the package does not know passes through every stage, and no stage knows kinds by name."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixmem
from mixmem import GDLM, Schema, Variable, choose_k, load, rmse
from mixmem.cli import main
from mixmem.data.kinds import KINDS, register
from mixmem.data.kinds.base import Draw, NumberKind
from mixmem.data.kinds.categorical import Categorical
from mixmem.errors import InputError
from mixmem.results.simulate import draw_values

pytestmark = pytest.mark.usefixtures("quick_halves")

ROOT = Path(mixmem.__file__).parent


class Waiting(NumberKind):
    """Waiting times: exponential, theta holds the mean alone. Prior of the rate: Gamma, worth half a row."""

    statistics = ("mean",)
    words = "times from 0 up"
    nouns = ("waiting time", "waiting times")

    def from_moments(self, column, mean, variance, spread):
        return np.maximum(mean, 1e-3 * mean.mean())[None]

    def moments(self, theta):
        return theta[0], theta[0] ** 2

    def log_density(self, values, theta):
        return -np.log(theta[0]) - values / theta[0]

    def fitted(self, sums):
        return self.inside((sums.columns.center + sums.first / np.maximum(sums.n, 1e-300))[None], sums.columns)

    def inside(self, theta, columns):
        return np.maximum(theta, 1e-3 * columns.center)

    def draw(self, sums, theta, rng):
        center = sums.columns.center
        shape, scale = 2.5 + sums.n, 1.5 * center + sums.n * center + sums.first
        mean = scale / (shape - 1.0)
        return Draw((scale / rng.standard_gamma(shape))[None], mean[None], (mean**2 / (shape - 2.0))[None])

    def numbers(self, theta, rng):
        return theta[0] * rng.exponential(size=theta.shape[1])

    def upper_tail(self, values, theta):
        return np.exp(-np.maximum(values, 0.0) / theta[0])

    def bounds(self):
        return [(0.0, np.inf)]


class Graded(Categorical):
    """Categories under another name, which noise does not touch."""

    nouns = ("grade", "grades")
    contaminable = False


@pytest.fixture(scope="module", autouse=True)
def registered():
    register(Waiting, "waiting")
    register(Graded, "graded")
    yield
    del KINDS["waiting"], KINDS["graded"]


K, ROWS = 2, 400
KINDS_OF = {f"wait{j}": "waiting" for j in range(4)} | {f"grade{j}": "graded" for j in range(3)}


@pytest.fixture(scope="module")
def drawn(registered):
    """Waiting times, grades and categories, some cells missing; the truth."""
    rng = np.random.default_rng(0)
    variables = [Variable(f"wait{j}", value_type="float", kind="waiting") for j in range(4)]
    variables += [Variable(f"grade{j}", ("a", "b", "c"), kind="graded") for j in range(3)]
    variables += [Variable(f"x{j}", ("no", "yes")) for j in range(5)]
    schema = Schema(tuple(variables))
    theta = np.concatenate(
        [
            np.array([[1.0, 8.0]] * 4),
            np.tile([[0.8, 0.1], [0.1, 0.1], [0.1, 0.8]], (3, 1)),
            np.tile([[0.9, 0.2], [0.1, 0.8]], (5, 1)),
        ]
    )
    frame = draw_values(schema, theta, rng.dirichlet([0.3, 0.3], ROWS), rng)
    return frame.mask(rng.random(frame.shape) < 0.05), theta


@pytest.fixture(scope="module", params=[None, pytest.param("gibbs", marks=pytest.mark.slow), "em"], ids=str)
def fitted(request, drawn):
    options = {} if request.param == "gibbs" else {"alpha0": 0.6}
    return GDLM(K, variables=KINDS_OF, refine=request.param, random_state=0, **options).fit(drawn[0])


def test_the_truth_is_found(fitted, drawn):
    theta = fitted.theta_
    assert theta["statistic"].tolist() == ["mean"] * 4 + ["probability"] * 19
    found = theta.filter(like="component").to_numpy()
    assert np.isfinite(found).all()
    scale = np.array([8.0] * 4 + [1.0] * 19)[:, None]
    assert rmse(drawn[1] / scale, found / scale) < 0.12  # sampling error is about 0.05


def test_memberships_and_likelihoods(fitted, drawn):
    memberships = fitted.transform(drawn[0])
    assert np.allclose(memberships.sum(axis=1), 1.0)
    assert memberships.max(axis=1).mean() > 0.7
    assert np.isfinite(fitted.score(drawn[0]))
    assert np.array_equal(memberships, fitted.memberships_)


def test_missing_cells_are_filled(fitted, drawn):
    filled = fitted.impute(drawn[0])
    assert not filled.isna().any().any()
    known = drawn[0].notna()
    assert (filled[known] == drawn[0][known])[known].stack().all()
    assert (filled.filter(like="wait") > 0).all().all()


def test_new_rows_are_drawn(fitted):
    rows = fitted.sample(200, random_state=0)
    assert rows.columns.tolist() == list(fitted.schema_.names)
    assert (rows.filter(like="wait") >= 0).all().all()
    assert set(rows["grade0"]) <= {"a", "b", "c"}


def test_goodness_and_intervals(fitted, drawn):
    # maximum likelihood of theta and memberships together leaves alpha too large for pairs to fit
    assert fitted.goodness_of_fit(drawn[0]).misfit < (4.0 if fitted.refine == "em" else 1.5)
    assert fitted.membership_intervals(drawn[0][:3]).shape == (6, 6)
    if fitted.refine == "em":
        return
    found = fitted.intervals()
    means = found[found["statistic"] == "mean"]
    assert (means["lower"] >= 0.0).all()
    assert (means["lower"] <= means["estimate"]).all()


def test_models_are_stored(fitted, drawn, tmp_path):
    fitted.save(tmp_path / "m.mixmem")
    again = load(tmp_path / "m.mixmem")
    assert again.coding_ == fitted.coding_
    assert np.array_equal(again.transform(drawn[0]), fitted.transform(drawn[0]))


def test_commands(drawn, tmp_path, capsys):
    data, out = tmp_path / "d.csv", tmp_path / "fit"
    drawn[0].to_csv(data, index=False)
    kinds = [word for name, kind in KINDS_OF.items() for word in ("--kind", f"{name}={kind}")]
    assert main(["info", str(data), *kinds]) == 0
    assert "4 waiting, 3 graded, 5 categorical" in capsys.readouterr().out
    assert main(["fit", str(data), "-k", "2", *kinds, "--alpha0", "0.6", "--out", str(out), "--refine", "none"]) == 0
    page = (out / "report.html").read_text()
    assert "4 waiting times, 3 grades, 5 categories" in page
    assert main(["report", str(out)]) == 0
    assert "4 waiting times, 3 grades, 5 categories" in (out / "report.html").read_text()
    assert main(["impute", str(out / "model.mixmem"), str(data), "--out", str(tmp_path / "f.csv"), "--quiet"]) == 0
    assert not pd.read_csv(tmp_path / "f.csv").isna().any().any()


@pytest.mark.slow
def test_the_number_of_components_is_chosen(drawn):
    found = choose_k(drawn[0], (1, 3), alpha0=0.6, variables=KINDS_OF, n_splits=1, random_state=0)
    assert found.k == K


@pytest.mark.slow
@pytest.mark.usefixtures("halves_looked_at")
def test_the_same_bits_at_any_number_of_threads(drawn):
    one, two = (
        GDLM(K, alpha0=0.6, variables=KINDS_OF, random_state=0, n_jobs=jobs).fit(drawn[0])._theta for jobs in (1, 2)
    )
    assert np.array_equal(one, two)


# --- Registration


def test_a_kind_that_lacks_a_method_is_refused_by_name():
    class Half(NumberKind):
        statistics = ("mean",)
        words = "numbers"
        nouns = ("half", "halves")

        def moments(self, theta):
            return theta[0], theta[0]

    with pytest.raises(InputError, match="kind Half lacks draw, fitted, from_moments, inside, log_density, numbers"):
        register(Half, "half")
    assert "half" not in KINDS


def test_a_kind_without_words_or_names_is_refused():
    class Wordless(Categorical):
        pass

    with pytest.raises(InputError, match="the kind Wordless is registered without a name"):
        register(Wordless)

    class Bare(Waiting):
        pass

    del Bare.__doc__
    assert register(Bare, "bare") is KINDS.pop("bare")


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="variable 'a' is declared 'nonsense'; expected one of categorical"):
        Variable("a", ("0", "1"), kind="nonsense")


# --- No stage knows kinds by name

KIND_NAMES = {"categorical", "binary", "ordinal", "dosage", "count", "continuous"}
KIND_CLASSES = {"Categorical", "Ordinal", "Dosage", "Count", "Continuous"}


def named_kinds(path):
    """Texts that are a kind's name and classes of kinds, in a file."""
    place = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in KIND_NAMES:
            yield f"{place}:{node.lineno}: {node.value!r}"
        elif isinstance(node, ast.Name) and node.id in KIND_CLASSES:
            yield f"{place}:{node.lineno}: {node.id}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{place}:{node.lineno}: {a.name}" for a in node.names if a.name in KIND_CLASSES)


def test_nothing_outside_data_names_a_kind():
    files = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] != "data"]
    assert [found for path in files for found in named_kinds(path)] == []
