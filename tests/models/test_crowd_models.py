"""Crowd models by name against slow forms of their papers' rounds, and the default's own rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma, softmax

from mixmem.crowd import DawidSkene, MajorityVote, error_rate, expected_error, read_labels
from mixmem.kernels import reference
from mixmem.models.crowd import ebcc, votes
from mixmem.models.crowd.dependence import DISCOUNT, Dependence, measure
from mixmem.models.crowd.fits import MODELS, Settings, fit_labels
from mixmem.models.crowd.rounds import Passes, run_rounds
from mixmem.models.crowd.strengths import Strengths
from mixmem.models.crowd.workers import Mace, Variational
from tests.models.test_crowd import simulated


def unknown(labels):
    return np.full(labels.n_tasks, -1, dtype=np.int32)


def one_hot(labels):
    return np.eye(labels.n_classes)[labels.labels]


@pytest.fixture(scope="module")
def small():
    return read_labels(simulated(n_tasks=40, n_workers=8, votes=4, seed=1)[0])


def shares_of(labels):
    found = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(found, (labels.task_of, labels.labels), 1.0)
    return found / found.sum(axis=1, keepdims=True)


def slow_rounds(labels, scores_of, posterior, log_prior, rounds):
    """Classes from workers and workers from classes, label by label."""
    for _ in range(rounds):
        counts = np.zeros((labels.n_workers, labels.n_classes, posterior.shape[1]))
        for i, w, label in zip(labels.task_of, labels.workers, labels.labels, strict=True):
            counts[w, label] += posterior[i]
        scores, joint = scores_of(counts), np.tile(log_prior(posterior.sum(axis=0)), (labels.n_tasks, 1))
        for i, w, label in zip(labels.task_of, labels.workers, labels.labels, strict=True):
            joint[i] += scores[w, label]
        posterior = softmax(joint, axis=1)
    return posterior


def variational(imagined):
    def scores_of(counts):
        known = counts + imagined
        return digamma(known) - digamma(known.sum(axis=1, keepdims=True))

    return scores_of


def test_ibcc_is_its_papers_mean_field(small):
    k = small.n_classes
    found = fit_labels(small, unknown(small), Settings("ibcc", n_iter=6, tol=-1.0), None).posterior
    slow = slow_rounds(
        small, variational(1.0 + 3.0 * np.eye(k)), shares_of(small),
        lambda sizes: digamma(sizes + 1.0) - digamma((sizes + 1.0).sum()), 6,
    )  # fmt: skip
    np.testing.assert_allclose(found, slow, atol=1e-10)


def test_ebcc_has_subtypes_of_classes(small):
    width, k = 2, small.n_classes
    passes = Passes(small, unknown(small), width)
    parts = np.random.default_rng(0).dirichlet(np.ones(width), size=(small.n_tasks, k))
    start = (shares_of(small)[:, :, None] * parts).reshape(small.n_tasks, -1)
    found = run_rounds(
        passes, Variational(k, width=width), start.copy(), passes.counts(start), n_iter=4, tol=-1.0,
        log_prior=ebcc._log_prior(width),
    ).posterior  # fmt: skip

    def log_prior(sizes):
        classes = sizes.reshape(k, width).sum(axis=1)
        logs = []
        for j in range(k):
            share = digamma(classes[j] + 1.0) - digamma(classes.sum() + k)
            for m in range(width):
                inside = digamma(sizes[j * width + m] + 0.1 / width) - digamma(classes[j] + 0.1)
                logs.append(share + inside)
        return np.array(logs)

    imagined = np.repeat(1.0 + 3.0 * np.eye(k), width, axis=1)
    np.testing.assert_allclose(found, slow_rounds(small, variational(imagined), start, log_prior, 4), atol=1e-9)
    tables = np.random.default_rng(1).dirichlet(np.ones(k), size=(1, k * width)).transpose(0, 2, 1)
    prior = np.arange(1.0, k * width + 1.0)
    mean = ebcc.class_tables(tables, prior, width)
    np.testing.assert_allclose(mean[0, :, 0], (tables[0, :, 0] + 2.0 * tables[0, :, 1]) / 3.0)


def test_mace_splits_right_labels_between_knowing_and_habit():
    counts = np.random.default_rng(0).gamma(1.0, 5.0, (4, 3, 3))
    model = Mace(0.5)
    model.update(counts)
    before = model.trust.copy(), model.habit.copy()
    model.update(counts)
    for w in range(4):
        knew = np.array(
            [counts[w, c, c] * before[0][w] / (before[0][w] + (1 - before[0][w]) * before[1][w, c]) for c in range(3)]
        )
        assert model.trust[w] == pytest.approx((knew.sum() + 0.5) / (counts[w].sum() + 1.0))
        habit = counts[w].sum(axis=1) - knew + 0.5
        np.testing.assert_allclose(model.habit[w], habit / habit.sum())
    np.testing.assert_allclose(model.probabilities.sum(axis=1), 1.0)


def test_wawa_weighs_by_agreement_with_the_majority(small):
    found = votes.wawa(Passes(small, unknown(small)))
    shares = shares_of(small)
    leading = shares >= shares.max(axis=1, keepdims=True) - 1e-12
    agree = [[] for _ in range(small.n_workers)]
    for i, w, label in zip(small.task_of, small.workers, small.labels, strict=True):
        agree[w].append(leading[i, label] / leading[i].sum())
    weights = np.array([np.mean(each) for each in agree])
    np.testing.assert_allclose(found.weights, weights)
    total = np.zeros_like(shares)
    np.add.at(total, (small.task_of, small.labels), weights[small.workers])
    np.testing.assert_allclose(found.shares, total / total.sum(axis=1, keepdims=True))


def test_bwa_alternates_points_and_precisions(small):
    found = votes.bwa(Passes(small, unknown(small)), n_iter=3, tol=-1.0)
    k, label, task, worker = small.n_classes, one_hot(small), small.task_of, small.workers
    z = shares_of(small)
    mean, given = z.mean(axis=0), np.bincount(worker, minlength=small.n_workers)
    noise = votes.PRECISION * ((label - z[task]) ** 2).sum() / (small.n_labels * k)
    for _ in range(3):
        off = np.bincount(worker, ((label - z[task]) ** 2).sum(axis=1), small.n_workers)
        precision = (votes.PRECISION + given) / (noise + off / k)
        for i in range(small.n_tasks):
            mine = task == i
            z[i] = (mean + (precision[worker[mine], None] * label[mine]).sum(axis=0)) / (
                1.0 + precision[worker[mine]].sum()
            )
        mean = z.mean(axis=0)
    np.testing.assert_allclose(found.shares, z, atol=1e-10)


def test_glad_finds_able_workers_and_easy_tasks():
    rng = np.random.default_rng(0)
    truth, able = rng.integers(2, size=150), np.array([3.0] * 4 + [0.2] * 3)
    rows = []
    for i in range(150):
        for w in range(7):
            right = rng.random() < 1.0 / (1.0 + np.exp(-able[w] * (2.0 if i % 2 else 0.4)))
            rows.append((i, w, truth[i] if right else 1 - truth[i]))
    model = DawidSkene(model="glad").fit(rows)
    assert model.skills_[:4].min() > model.skills_[4:].max()
    ease = model._fit.further["ease"]
    assert ease[1::2].mean() > ease[::2].mean()


def test_strengths_are_their_slow_form(small):
    counts = Passes(small, unknown(small)).counts(shares_of(small))
    model = Strengths((1.0, 16.0, 256.0))
    model.update(counts)
    given = counts.sum(axis=2, keepdims=True)  # a label is no evidence of itself
    counts = counts * np.maximum(given - 1.0, 0.0) / np.maximum(given, 1e-9)
    memberships, means = np.empty((small.n_workers, 4)), np.empty_like(counts)
    reference.strength_pass(
        counts, model.right, model.wrong, model.strengths, model.habit, model.log_weights, 0, 1, memberships, means
    )
    np.testing.assert_allclose(model.memberships, memberships, atol=1e-10)
    np.testing.assert_allclose(model.probabilities, means, atol=1e-10)
    np.testing.assert_allclose(model.probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.typical(counts).sum(axis=0), 1.0)


# --- The default


def drawn(shares, n_tasks=1500, seed=0):
    """Labels of workers of one accuracy each."""
    rng = np.random.default_rng(seed)
    k = len(shares)
    truth, accuracy = rng.choice(k, size=n_tasks, p=shares), rng.uniform(0.4, 0.95, 40)
    task = np.repeat(np.arange(n_tasks), 5)
    worker = np.concatenate([rng.choice(40, 5, replace=False) for _ in range(n_tasks)])
    wrong = (truth[task] + rng.integers(1, k, size=len(task))) % k
    label = np.where(rng.random(len(task)) < accuracy[worker], truth[task], wrong)
    return read_labels(np.column_stack([task, worker, label])), truth


@pytest.mark.parametrize("shares", [(0.2,) * 5, (0.7, 0.1, 0.1, 0.05, 0.05)])
def test_rare_classes_neither_drown_nor_vanish(shares):
    labels, truth = drawn(shares)
    found = {
        name: fit_labels(labels, unknown(labels), Settings(name), None).posterior
        for name in ("blend", "one_coin", "majority")
    }
    error = {name: error_rate(posterior, truth) for name, posterior in found.items()}
    assert error["blend"] < error["one_coin"] + 0.005  # the model that the labels were drawn from
    assert error["blend"] < error["majority"]
    assert expected_error(found["blend"]) == pytest.approx(error["blend"], abs=0.05)
    np.testing.assert_allclose(found["blend"].mean(axis=0), shares, atol=0.03)


def test_workers_who_err_together_are_noticed():
    labels, truth = drawn((0.5, 0.5))
    independent = DawidSkene().fit(labels).dependence_
    assert independent.probability < 0.5
    rng = np.random.default_rng(1)
    hard = rng.random(labels.n_tasks) < 0.15  # tasks that mislead everyone alike
    misled = np.where(
        hard[labels.task_of] & (rng.random(labels.n_labels) < 0.8), 1 - truth[labels.task_of], labels.labels
    )
    together = DawidSkene().fit(np.column_stack([labels.task_of, labels.workers, misled]))
    assert together.dependence_.probability > 0.99
    assert together.dependence_.excess > 3.0 * together.dependence_.error
    assert together.dependence_.discount == pytest.approx(DISCOUNT, rel=0.02)


def test_tempering_keeps_the_order_and_single_labels():
    posterior = np.array([[0.9, 0.1], [0.9, 0.1]])
    found = Dependence(0.1, 0.01, 1.0, 0.5).temper(posterior, np.array([1, 4]))
    np.testing.assert_allclose(found[0], posterior[0])
    assert found[1, 0] == pytest.approx(3.0 / 4.0)  # the square root of 9 to 1


def test_dependence_needs_tasks_with_two_labels():
    labels = read_labels([(i, i % 3, i % 2) for i in range(9)])
    found = measure(labels, np.full((3, 2, 2), 0.5), np.full((9, 2), 0.5))
    assert (found.excess, found.error) == (0.0, 0.0)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_predicts_what_it_fitted(model):
    frame, _ = simulated(n_tasks=120, seed=2)
    fitted = DawidSkene(model=model, random_state=0).fit(frame)
    again = fitted.predict_proba(frame)
    assert (again.to_numpy().argmax(axis=1) == fitted.probas_.to_numpy().argmax(axis=1)).mean() > 0.93
    np.testing.assert_allclose(again.sum(axis=1), 1.0)
    assert fitted.errors_.groupby("worker").sum().to_numpy() == pytest.approx(1.0)
    assert fitted.skills_.index.name == "worker"


def test_classes_do_not_collapse_where_workers_gave_few_labels():
    """Workers who gave four labels each prefer one of two classes: all tasks would become that class."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=600)
    task = np.repeat(np.arange(600), 4)
    worker = rng.permutation(len(task)) // 4
    right = np.where(truth[task] == 1, 0.8, 0.55)  # a class that workers often miss
    label = np.where(rng.random(len(task)) < right, truth[task], 1 - truth[task])
    model = DawidSkene().fit(np.column_stack([task, worker, label]))
    votes = np.bincount(label) / len(label)
    assert (model.priors_.to_numpy() > 0.45 * votes).all()
    worse = error_rate(model.probas_, truth) - error_rate(MajorityVote().fit(model.encoded_).probas_, truth)
    assert worse <= 0.01


def test_votes_are_heard_as_far_as_workers_are_unknown():
    rows = [(f"t{i}", f"w{i}-{j}", int(j > 0)) for i in range(20) for j in range(3)]
    shares = [voice.share for voice in DawidSkene().fit(rows)._fit.voices]
    assert shares[-1] == pytest.approx(0.8)  # one label each beside four of all workers
    assert sum(shares) == pytest.approx(1.0)
