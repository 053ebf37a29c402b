"""What buyers do with crowd labels: odd tables, doubts, advice, labels added later, files, ratings, agreement."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from mixmem import FitWarning, load
from mixmem.cli import main
from mixmem.crowd import (
    DawidSkene,
    MajorityVote,
    NumericRatings,
    agreement,
    error_rate,
    log_loss,
    read_labels,
    read_truth,
)
from mixmem.errors import InputError
from mixmem.models.crowd.agreement import krippendorff
from tests.models.test_crowd import simulated

ROWS = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "eve", "dog"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]


@pytest.fixture(scope="module")
def crowd():
    return simulated()


@pytest.fixture(scope="module")
def fitted(crowd):
    return DawidSkene().fit(crowd[0])


# --- Tables as people have them


@pytest.mark.parametrize(
    "names", [("item", "annotator", "answer"), ("Question ID", "Worker-ID", "Response"), ("task", "rater", "label")]
)
def test_columns_are_found_by_usual_names(names):
    frame = pd.DataFrame(ROWS, columns=names).assign(seconds=3.0)[["seconds", *names[::-1]]]
    labels = read_labels(frame)
    assert labels.classes.tolist() == ["cat", "dog"]
    assert labels.worker_ids.tolist() == ["ann", "bob", "eve"]
    assert "as the worker" in labels.note
    assert DawidSkene().fit(frame).notices_[-1].code == "columns-guessed"


def test_named_columns_are_not_guessed():
    assert read_labels(pd.DataFrame(ROWS, columns=["task", "worker", "label"])).note is None
    with pytest.raises(InputError, match="there is no column 'who'"):
        read_labels(pd.DataFrame(ROWS, columns=["item", "worker", "label"]), columns=("item", "who", "label"))
    with pytest.raises(InputError, match="there is no column 'worker'"):
        read_labels(pd.DataFrame({"task": [1, 2], "text": ["a", "b"], "length": [3, 5]}))


def test_a_column_per_worker_is_a_table_of_labels(tmp_path):
    wide = pd.DataFrame(
        {"q": [1, 2, 3], "ann": ["yes", "no", "yes"], "bob": ["yes", None, "no"], "eve": ["no", "no", None]}
    )
    wide.to_csv(tmp_path / "wide.csv", index=False)
    for source in (wide, tmp_path / "wide.csv"):
        labels = read_labels(source)
        assert (labels.n_tasks, labels.n_labels) == (3, 7)
        assert labels.worker_ids.tolist() == ["ann", "bob", "eve"]
        assert labels.classes.tolist() == ["no", "yes"]
        assert "every other column as a worker" in labels.note


def test_the_truth_in_a_wide_table_is_no_worker():
    frame = pd.DataFrame({"image": ["i1", "i2", "i3"], "ann": ["a", "b", "a"], "bob": ["a", "b", "b"]})
    labels = read_labels(frame.assign(**{"Ground truth": ["a", "b", "a"]}))
    assert labels.worker_ids.tolist() == ["ann", "bob"]
    assert "left out 'Ground truth'" in labels.note


def test_files_of_mechanical_turk_are_understood():
    labels = read_labels(pd.DataFrame(ROWS, columns=["HITId", "WorkerId", "Answer.animal"]).assign(Reward=0.1))
    assert labels.classes.tolist() == ["cat", "dog"]
    two = pd.DataFrame(ROWS, columns=["HITId", "WorkerId", "Answer.animal"]).assign(**{"Answer.age": 3})
    with pytest.raises(InputError, match="there is no column 'task'"):
        read_labels(two)


def test_numbers_in_a_wide_table_with_gaps_stay_whole():
    labels = read_labels(pd.DataFrame({"item": list("abcd"), "w1": [1, 2, np.nan, 1], "w2": [1.0, 1.0, 2.0, np.nan]}))
    assert labels.classes.tolist() == [1, 2]


def test_truth_columns_are_found_or_named(tmp_path):
    frame = pd.DataFrame({"item": ["t1", "t2"], "gold": ["cat", "dog"], "other": [1, 2]})
    assert read_truth(frame) == {"t1": "cat", "t2": "dog"}
    assert read_truth(frame, columns=("item", "other")) == {"t1": 1, "t2": 2}
    with pytest.raises(InputError, match="there is no column 'klass'"):
        read_truth(frame, columns=("item", "klass"))


def test_labels_alike_are_told_and_can_be_joined():
    rows = [(i, w, label) for i in range(4) for w, label in enumerate(["yes", "Yes", "yes ", "no", "yes"])]
    with pytest.warns(FitWarning, match="differ in case or blanks only"):
        assert len(DawidSkene().fit(rows).classes_) == 4
    assert DawidSkene(clean=True).fit(rows).classes_.tolist() == ["no", "yes"]


def test_gold_is_spelled_as_the_labels_are():
    model = DawidSkene(clean=True).fit(ROWS, {"t1": "Dog "})
    assert model.classes_.tolist() == ["cat", "dog"]
    assert model.labels_["t1"] == "dog"


def test_refusals_of_a_truth_name_its_own_option_and_count_the_tasks(tmp_path):
    pd.DataFrame({"a": ["t1"], "b": ["cat"]}).to_csv(tmp_path / "truth.csv", index=False)
    with pytest.raises(InputError, match="--truth-columns on the command line"):
        read_truth(tmp_path / "truth.csv")
    rows = [(f"t{i}", "ann", "cat") for i in range(9)]
    with pytest.raises(InputError, match=re.escape("'t0', 't1', 't2', ... (9 in all) here")):
        DawidSkene().fit(rows, {"x": "cat"})


def test_numbers_as_labels_are_told():
    rng = np.random.default_rng(0)
    rows = [(i, w, int(rng.integers(-100, 100))) for i in range(20) for w in range(3)]
    with pytest.warns(FitWarning, match="different numbers from -?[0-9]+ to [0-9]+, each taken for a class"):
        DawidSkene().fit(rows)


# --- Doubts


def test_a_class_under_another_name_and_labels_nobody_gave_are_told():
    rng = np.random.default_rng(0)
    # Workers 0 to 5 see everything and never say 2; class 2 is what they call 0 when worker 6 says 1.
    truth = rng.integers(3, size=200)
    rows = [(i, w, 0 if truth[i] == 2 else truth[i]) for i in range(200) for w in range(6)]
    gold = {i: int(truth[i]) for i in range(100)}
    with pytest.warns(FitWarning, match="mostly labelled '0'"):
        model = DawidSkene(classes=[0, 1, 2], model="ds").fit(rows, gold)
    assert {"class-under-another-name"} <= {notice.code for notice in model.notices_}
    model = DawidSkene(classes=[0, 1, 2]).fit(rows, {0: 2})
    assert [notice.code for notice in model.notices_ if notice.code == "labels-nobody-gave"] or model.labels_[0] == 2


def test_votes_that_tie_go_to_the_class_with_more_votes():
    rows = [("t", "a", 0), ("t", "b", 1), ("u", "a", 1), ("u", "b", 1)]
    model = MajorityVote().fit(rows)
    assert model.labels_["t"] == 1
    assert error_rate(model.probas_, [0, 1]) == 0.25


# --- What to buy next


def test_advice_spends_the_budget_where_it_helps(fitted):
    advice = fitted.advise(40)
    assert advice["labels"].sum() <= 40
    assert advice["labels"].between(1, 3).all()
    assert advice["gain"].gt(0).all()
    rate = (advice["gain"] / advice["labels"]).to_numpy()
    assert np.all(np.diff(rate[:-1]) <= 1e-12)
    others = fitted.tasks_.drop(advice.index)["probability"]
    assert advice["probability"].mean() < others.mean()
    with pytest.raises(InputError, match="budget must be a number of labels"):
        fitted.advise(0)


def test_gains_are_expectations_over_further_labels():
    from mixmem.models.crowd.advice import expected_gains

    typical = np.array([[0.8, 0.3], [0.2, 0.7]])  # [label, class]
    p = np.array([0.6, 0.4])
    gains = expected_gains(p[None], typical)[0]
    one = sum(max(p[j] * typical[label, j] for j in range(2)) for label in range(2))
    two = sum(max(p[j] * typical[a, j] * typical[b, j] for j in range(2)) for a in range(2) for b in range(2))
    assert gains[:2] == pytest.approx([one - 0.6, two - 0.6])


def test_workers_get_intervals_and_advice(fitted):
    workers = fitted.workers_
    assert (workers["reliability_low"] <= workers["reliability"]).all()
    assert (workers["reliability"] <= workers["reliability_high"]).all()
    assert set(workers["advice"]) <= {"keep", "drop", "see more labels"}
    good = workers[workers["reliability"] > 0.8]
    assert (good["advice"] == "keep").all()
    assert (good["worth"] > 1.0).all()
    assert np.average(workers["worth"], weights=workers["labels"]) == pytest.approx(1.0)


def test_label_quality_tells_right_labels_from_wrong(fitted, crowd):
    quality = fitted.label_quality_
    assert len(quality) == len(crowd[0])
    right = quality["label"].to_numpy() == crowd[1][quality["task"].to_numpy()]
    assert quality["quality"][right].mean() > 0.8
    assert quality["quality"][~right].mean() < 0.2
    assert (quality["without_it"] <= quality["quality"] + 1e-9)[right].mean() > 0.9


# --- Labels added later, and files


def test_labels_can_be_added_later(crowd):
    frame = crowd[0].sample(frac=1.0, random_state=0)
    whole, parts = DawidSkene().fit(frame), DawidSkene().fit(frame[:1000])
    parts.partial_fit(frame[1000:])
    assert parts.encoded_.n_labels == len(frame)
    assert (parts.labels_ == whole.labels_).mean() > 0.99
    assert len(parts.loss_history_) <= len(whole.loss_history_) + 2
    new = pd.DataFrame({"task": [999], "worker": [77], "label": [5]})  # a task, a worker and a class of its own
    parts.partial_fit(new)
    assert parts.classes_.tolist() == [0, 1, 2, 5]
    assert parts.labels_[999] == 5
    with pytest.raises(InputError, match="of another type"):
        parts.partial_fit([("a", "b", 1)])


def test_gold_tells_errors_that_labels_cannot_show(tmp_path):
    """Every worker takes a third of the cats for dogs: without gold hardly any error is expected."""
    rng = np.random.default_rng(0)
    truth = {f"t{i:03d}": ("dog" if i % 2 else "cat") for i in range(300)}
    misled = {task for i, task in enumerate(truth) if i % 6 == 0}
    rows = []
    for task, name in truth.items():
        said = "dog" if task in misled else name
        rows += [(task, f"w{w}", said if rng.random() < 0.9 else "cat") for w in rng.choice(12, 5, replace=False)]
    gold = {task: truth[task] for task in rng.choice(sorted(truth), 60, replace=False).tolist()}
    blind, model = DawidSkene().fit(rows), DawidSkene().fit(rows, gold)
    others = [task for task in truth if task not in gold]
    wrong = np.mean([model.labels_[task] != truth[task] for task in others])
    assert abs(model.expected_error_ - wrong) < 0.06 < abs(blind.expected_error_ - wrong)
    model.save(tmp_path / "m.mixmem")
    assert DawidSkene.load(tmp_path / "m.mixmem").expected_error_ == model.expected_error_


def test_gold_given_later_is_kept(crowd):
    model = DawidSkene().fit(crowd[0], {0: 1})
    model.partial_fit(crowd[0].head(6), {1: 2})
    assert model.gold_ == {0: 1, 1: 2}
    assert model.labels_[[0, 1]].tolist() == [1, 2]


@pytest.mark.parametrize("model", ["blend", "ebcc", "minimax", "community", "bwa"])
def test_saved_models_come_back(tmp_path, crowd, model):
    frame = crowd[0].head(300).assign(worker=lambda rows: "w" + rows["worker"].astype(str))
    one = DawidSkene(model=model, random_state=0).fit(frame, {0: 1})
    one.save(tmp_path / "m.mixmem")
    again = DawidSkene.load(tmp_path / "m.mixmem")
    assert again.probas_.equals(one.probas_)
    assert again.predict_proba(frame.head(50)).equals(one.predict_proba(frame.head(50)))
    assert again.workers_.equals(one.workers_)
    assert again.gold_ == {0: 1}
    assert (again.partial_fit(frame.tail(5)).labels_ == one.partial_fit(frame.tail(5)).labels_).all()


def test_other_files_are_refused(tmp_path, fitted):
    fitted.save(tmp_path / "crowd.mixmem")
    with pytest.raises(InputError):
        load(tmp_path / "crowd.mixmem")
    (tmp_path / "x").write_text("nothing")
    with pytest.raises(InputError, match="not a model file"):
        DawidSkene.load(tmp_path / "x")


# --- A classifier


def test_a_classifier_is_heard_as_far_as_workers_confirm_it(crowd):
    frame, truth = simulated(votes=2, seed=7)
    rng = np.random.default_rng(0)
    good = np.full((300, 3), 0.1)
    good[np.arange(300), np.where(rng.random(300) < 0.85, truth, rng.integers(3, size=300))] = 0.8
    noise = rng.dirichlet(np.ones(3), 300)
    alone = DawidSkene().fit(frame)
    helped, misled = (DawidSkene().fit(frame, None, pd.DataFrame(p)) for p in (good, noise))
    assert error_rate(helped.probas_, truth) < error_rate(alone.probas_, truth)
    assert log_loss(helped.probas_, truth) < log_loss(alone.probas_, truth)
    assert error_rate(misled.probas_, truth) < error_rate(alone.probas_, truth) + 0.02
    assert misled._fit.further["classifier_power"] < 0.2 < helped._fit.further["classifier_power"]
    with pytest.raises(InputError, match="lack a column for the class '2'"):
        DawidSkene().fit(frame, None, pd.DataFrame(good[:, :2]))


# --- Ratings


def test_ratings_know_biased_and_noisy_workers():
    rng = np.random.default_rng(0)
    value, bias, noise = rng.normal(0, 30, 200), rng.normal(0, 15, 12), rng.uniform(2, 25, 12)
    rows = []
    for i in range(200):
        for w in rng.choice(12, 5, replace=False):
            rows.append((i, int(w), value[i] + bias[w] + rng.normal(0, noise[w])))
    found = {name: NumericRatings(name).fit(rows) for name in ("bias", "mean", "median")}

    def off(model):
        return float(np.std(model.ratings_.to_numpy() - value))

    assert off(found["bias"]) < 0.7 * min(off(found["mean"]), off(found["median"]))
    assert found["bias"].converged_
    workers = found["bias"].workers_
    assert np.corrcoef(workers["bias"], bias)[0, 1] > 0.95
    assert np.corrcoef(workers["noise"], noise)[0, 1] > 0.9
    again = found["bias"].predict(rows)
    np.testing.assert_allclose(again, found["bias"].ratings_, atol=1e-3)
    with pytest.raises(InputError, match="holds what is no number"):
        NumericRatings().fit(ROWS)
    with pytest.raises(InputError, match="model must be one of 'bias'"):
        NumericRatings("best").fit(rows)


# --- Agreement


def test_krippendorffs_alpha_is_the_textbooks():
    """Krippendorff's example of four observers, twelve units and missing values: nominal alpha 0.743, ordinal 0.815."""
    table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]  # fmt: skip
    rows = [(unit, who, value) for who, row in enumerate(table) for unit, value in enumerate(row) if value is not None]
    found = agreement(rows)
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    assert found.ordinal_alpha == pytest.approx(0.815, abs=5e-4)
    assert found.tasks == 11
    assert krippendorff(np.array([[2.0, 0.0]]), 1.0 - np.eye(2)) is None
    assert agreement([("t", "w", 1)]).alpha is None


# --- The command


def test_the_command_updates_and_advises(tmp_path, crowd, capsys):
    frame = crowd[0]
    frame[:1200].to_csv(tmp_path / "first.csv", index=False)
    frame[1200:].to_csv(tmp_path / "second.csv", index=False)
    first, second = str(tmp_path / "one"), str(tmp_path / "two")
    assert main(["crowd", str(tmp_path / "first.csv"), "--out", first]) == 0
    words = ["--update", first, "--budget", "12", "--quality", "--out", second]
    assert main(["crowd", str(tmp_path / "second.csv"), *words]) == 0
    assert f"{len(frame):,} labels" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "two" / "next_labels.csv")["labels"].sum() <= 12
    assert len(pd.read_csv(tmp_path / "two" / "label_quality.csv")) == len(frame)
    summary = json.loads((tmp_path / "two" / "summary.json").read_text())
    assert 0.0 < summary["agreement"]["alpha"] < 1.0
    assert main(["crowd", str(tmp_path / "second.csv"), "--update", str(tmp_path / "no"), "--out", second]) == 2


def test_the_command_takes_ratings_classifiers_and_named_truths(tmp_path, capsys):
    rows = [(t, w, t + w) for t in range(6) for w in range(3)]
    pd.DataFrame(rows, columns=["item", "rater", "score"]).to_csv(tmp_path / "r.csv", index=False)
    pd.DataFrame({"id": range(6), "v": range(6)}).to_csv(tmp_path / "t.csv", index=False)
    words = [
        "--ratings",
        "bias",
        "--truth",
        str(tmp_path / "t.csv"),
        "--truth-columns",
        "id,v",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main(["crowd", str(tmp_path / "r.csv"), *words]) == 0
    assert "18 ratings by 3 workers for 6 tasks" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["ratings.csv", "summary.json", "workers.csv"]
    pd.DataFrame(ROWS, columns=["task", "worker", "label"]).to_csv(tmp_path / "l.csv", index=False)
    pd.DataFrame({"task": ["t1", "t2"], "cat": [0.1, 0.5], "dog": [0.9, 0.5]}).to_csv(tmp_path / "c.csv", index=False)
    words = ["--classifier", str(tmp_path / "c.csv"), "--out", str(tmp_path / "p"), "--quiet"]
    assert main(["crowd", str(tmp_path / "l.csv"), *words]) == 0
    assert (
        main(["crowd", str(tmp_path / "l.csv"), "--truth", "x", "--truth-columns", "a", "--out", str(tmp_path / "q")])
        == 2
    )
    assert "--truth-columns must name two columns" in capsys.readouterr().err


def test_strict_ends_with_three(tmp_path):
    rows = [(i, w, label) for i in range(4) for w, label in enumerate(["yes", "Yes", "no"])]
    pd.DataFrame(rows, columns=["task", "worker", "label"]).to_csv(tmp_path / "l.csv", index=False)
    assert main(["crowd", str(tmp_path / "l.csv"), "--out", str(tmp_path / "o"), "--strict", "--quiet"]) == 3
    assert (tmp_path / "o" / "summary.json").exists()


def test_columns_without_names_in_a_file_are_told_and_blank_labels_are_missing(tmp_path):
    rows = [(f"t{t}", f"w{w}", "ab"[(t + w % 2) % 2]) for t in range(20) for w in range(3)]
    (tmp_path / "d.csv").write_text("".join(",".join(row) + "\n" for row in rows))
    model = DawidSkene().fit(tmp_path / "d.csv")
    assert "took the columns in order as task, worker and label" in " ".join(notice.text for notice in model.notices_)
    assert not any("in order" in notice.text for notice in DawidSkene().fit(rows).notices_)
    with pytest.raises(InputError, match=r"column 'label' is missing in 1 row\(s\), first in row 1"):
        DawidSkene().fit([("t0", "w0", " "), *rows])


def test_tasks_labelled_once_are_told():
    rng = np.random.default_rng(0)
    rows = [(t, t % 9, t % 2 if rng.random() < 0.8 else 1 - t % 2) for t in range(200)]
    model = DawidSkene().fit(rows)
    (told,) = [notice for notice in model.notices_ if notice.code == "labelled-once"]
    assert told.text.startswith("no task has more than one label, so that the labels do not tell how often")
    gold = {t: t % 2 for t in range(40)}
    for known in (DawidSkene().fit(rows, gold), DawidSkene().fit([*rows, *((t, 9, t % 2) for t in range(50))])):
        assert "labelled-once" not in [notice.code for notice in known.notices_]


def test_intervals_of_workers_hold_what_they_are():
    """Half of them did where errors took other workers, and the classes found, for certain."""
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth, right = rng.integers(0, 3, 200), rng.uniform(0.5, 0.95, 12)
        rows = [
            (t, w, truth[t] if rng.random() < right[w] else (truth[t] + rng.integers(1, 3)) % 3)
            for t in range(200) for w in rng.choice(12, 5, replace=False)
        ]  # fmt: skip
        workers = DawidSkene().fit(rows).workers_
        inside.append((np.abs(workers["reliability"] - right[workers.index]) < 1.96 * workers["reliability_se"]).mean())
    assert np.mean(inside) > 0.85


def test_labels_that_say_nothing_are_told():
    rng = np.random.default_rng(3)
    tasks, workers = (
        np.repeat(np.arange(150), 4),
        np.concatenate([rng.choice(20, 4, replace=False) for _ in range(150)]),
    )
    habits = rng.dirichlet([1.0, 1.0, 1.0], 20)  # workers who prefer some class agree by chance more often
    noise = np.array([rng.choice(3, p=habits[w]) for w in workers])
    told = [notice.code for notice in DawidSkene().fit(list(zip(tasks, workers, noise, strict=True))).notices_]
    assert "agreement-by-chance" in told
    weak = np.where(rng.random(600) < 0.3, tasks % 3, noise)
    told = [notice.code for notice in DawidSkene().fit(list(zip(tasks, workers, weak, strict=True))).notices_]
    assert "agreement-by-chance" not in told
    once = [(t, f"{t}-{w}", t % 2 if rng.random() < 0.8 else 1 - t % 2) for t in range(100) for w in range(3)]
    assert "agreement-by-chance" not in [notice.code for notice in DawidSkene().fit(once).notices_]
