"""Topics of documents beside tomotopy, scikit-learn, gensim and NMF: completion, coherence, CPU seconds, one thread.

Five splits of two corpora and five simulated ones, ten and fifty topics. 80 % of the documents are fitted. The tokens
of every other document are halved at random, memberships come from one half by EM to convergence under the model's own
alpha, and the other half is scored: log-likelihood per token, the same routine for all. Words that the fitted documents
do not hold are left out of both, since most peers cannot know them. Needs the public data sets (MIXMEM_DATA) and, for
the comparison, ``pip install tomotopy gensim``. Further parts: ``python -m benchmarks.topics PART``, with PART many,
peers, purity, cells or large.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from benchmarks.crowd_sets import DATA
from benchmarks.measure import in_process, memory
from mixmem import TopicModel, simulate_documents
from mixmem.data.corpus_files import read_corpus
from mixmem.data.documents import Documents
from mixmem.engine.local import threads
from mixmem.likelihood.documents import document_memberships, log_likelihoods
from mixmem.likelihood.topic_coherence import coherence_of

CORPORA = {"BBC": DATA / "topics_bbc" / "bbc.ldac.gz", "AP": DATA / "topics_ap" / "ap.dat.gz"}
ITERATIONS, LONG = 200, 1000
FLOOR = 1e-8

Fit = tuple[np.ndarray, np.ndarray, float]
"""Topics (k, words), alpha (k,), CPU seconds."""


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """A row per corpus, split, number of topics and method."""
    warm_up()
    for k in (10, 50):
        for seed in range(1 if quick else 5):
            yield from simulated_rows(k, seed)
    for name in CORPORA:
        counts = matrix(name)
        for k in (10, 50):
            for seed in range(1 if quick else 5):
                yield from split_rows(name, counts, k, seed, long=seed == 0)


def split_rows(name: str, counts: Any, k: int, seed: int, *, long: bool) -> Iterator[dict[str, Any]]:
    """One split: ours, tomotopy told our beta, and on the first split as it is by default, for long."""
    train, known, hidden = split(counts, seed)
    model, seconds = timed(lambda: TopicModel(k, random_state=seed, n_jobs=1).fit(train))
    ours = model.components_, model.alpha_, seconds
    yield row(name, k, seed, "mixmem", ours, train, known, hidden)
    told = tomotopy_fit(train, k, seed, ITERATIONS, eta=model.beta_)
    if told is None:
        return
    yield row(name, k, seed, "tomotopy, our beta", told, train, known, hidden, seconds)
    if long:
        default = tomotopy_fit(train, k, seed, LONG)
        assert default is not None
        yield row(name, k, seed, f"tomotopy, {LONG}", default, train, known, hidden, seconds)
        yield passed(name, k, seed, default, train, known, hidden)


def passed(name: str, k: int, seed: int, other: Fit, train: Any, known: Any, hidden: Any) -> dict[str, Any]:
    """The shortest of our fits that scores as well as the other does, and how many times less CPU it takes."""
    goal = completion(other[0], other[1], known, hidden)
    for start in ("online", "moments", "auto"):
        for most in (1, 5, 10, 30):
            model, seconds = timed(
                lambda start=start, most=most: TopicModel(
                    k, start=start, max_iter=most, random_state=seed, n_jobs=1
                ).fit(train)
            )
            if completion(model.components_, model.alpha_, known, hidden) >= goal:
                fit = model.components_, model.alpha_, seconds
                return row(name, k, seed, f"mixmem, {start} {most}", fit, train, known, hidden, other[2], inverse=True)
    return row(name, k, seed, "mixmem, not passed", (model.components_, model.alpha_, seconds), train, known, hidden)


def simulated_rows(k: int, seed: int) -> Iterator[dict[str, Any]]:
    """5,000 documents of 120 tokens from 3,000 words, alpha_h = 0.1, beta = 0.05; L1 of topics instead of a score."""
    drawn = simulated(k, seed)
    model, seconds = timed(lambda: TopicModel(k, random_state=seed, n_jobs=1).fit(drawn.counts))
    fits = {"mixmem": (model.components_, model.alpha_, seconds)}
    if (theirs := tomotopy_fit(drawn.counts, k, seed, ITERATIONS, eta=model.beta_)) is not None:
        fits["tomotopy, our beta"] = theirs
    for method, (topics, _, spent) in fits.items():
        yield {
            "corpus": "simulated", "k": k, "seed": seed, "method": method, "score": distance(drawn.components, topics),
            "npmi": float("nan"), "cpu_s": spent, "share": seconds / spent,
        }  # fmt: skip


def simulated(k: int, seed: int) -> Any:
    return simulate_documents(5000, 3000, k, length=120, alpha=0.1, beta=0.05, random_state=seed)


def row(
    name: str, k: int, seed: int, method: str, fit: Fit, train: Any, known: Any, hidden: Any,
    against: float | None = None, *, inverse: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """``share`` is our CPU as a share of theirs, or with ``inverse`` how many times theirs is ours."""
    topics, alpha, seconds = fit
    share = 1.0 if against is None else against / seconds
    return {
        "corpus": name, "k": k, "seed": seed, "method": method, "score": completion(topics, alpha, known, hidden),
        "npmi": float(np.mean(coherence_of(topics, Documents.of(train), "npmi", 10))), "cpu_s": seconds, "share": share,
    }  # fmt: skip


def matrix(name: str) -> Any:
    """Return the counts of a corpus as a sparse matrix."""
    found = read_corpus(CORPORA[name]).documents
    shape = (found.n_documents, found.n_words)
    return sparse.csr_matrix((found.counts.astype(float), found.indices, found.indptr), shape=shape)


def split(counts: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return documents to fit, and two halves of the others, without words that the first do not hold."""
    rng = np.random.default_rng(seed)
    order, size = rng.permutation(counts.shape[0]), counts.shape[0] * 4 // 5
    train, rest = counts[np.sort(order[:size])], counts[np.sort(order[size:])].tocsr()
    seen = np.flatnonzero(np.asarray(train.sum(axis=0)).ravel() > 0)
    train, rest = train[:, seen], rest[:, seen].tocsr()
    known, hidden = rest.copy(), rest.copy()
    known.data = rng.binomial(rest.data.astype(int), 0.5).astype(float)
    hidden.data = rest.data - known.data
    known.eliminate_zeros()
    hidden.eliminate_zeros()
    return train, known, hidden


def completion(topics: np.ndarray, alpha: np.ndarray, known: Any, hidden: Any) -> float:
    """Return the log-likelihood per token of the hidden halves."""
    floored = np.maximum(topics, FLOOR / topics.shape[1])
    table = (floored / floored.sum(axis=1, keepdims=True)).T
    with threads(1):
        memberships = document_memberships(Documents.of(known), table, alpha).memberships
        return float(log_likelihoods(Documents.of(hidden), table, memberships).sum() / hidden.sum())


def distance(truth: np.ndarray, topics: np.ndarray) -> float:
    """Return the mean L1 distance of topics after the best matching."""
    apart = np.array([np.abs(truth - topic).sum(axis=1) for topic in topics]).T
    rows, columns = linear_sum_assignment(apart)
    return float(apart[rows, columns].mean())


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call()
    return found, time.process_time() - began


def warm_up() -> None:
    """Compile what is not compiled yet."""
    drawn = simulate_documents(200, 100, 3, random_state=0)
    for refine in ("cvb0", "em"):
        timed(lambda refine=refine: TopicModel(3, refine=refine, random_state=0, n_jobs=1).fit(drawn.counts))


def tomotopy_fit(counts: Any, k: int, seed: int, iterations: int, eta: float = 0.01) -> Fit | None:
    """Return tomotopy's topics, one worker; only its training is timed."""
    try:
        import tomotopy
    except ImportError:
        return None
    model = tomotopy.LDAModel(k=k, seed=seed + 1, eta=eta)
    for d in range(counts.shape[0]):
        here = slice(counts.indptr[d], counts.indptr[d + 1])
        model.add_doc([str(w) for w in np.repeat(counts.indices[here], counts.data[here].astype(int))])
    _, seconds = timed(lambda: model.train(iterations, workers=1))
    topics, places = np.zeros((k, counts.shape[1])), [int(word) for word in model.used_vocabs]
    for h in range(k):
        topics[h, places] = model.get_topic_word_dist(h)
    return topics, np.array(model.alpha), seconds


def many() -> Iterator[dict[str, Any]]:
    """AP with 100 and 200 topics, one split."""
    for k in (100, 200):
        yield from split_rows("AP", matrix("AP"), k, 0, long=True)


def peers() -> Iterator[dict[str, Any]]:
    """AP with 10 topics, one split: scikit-learn's two ways, its NMF with KL loss, and gensim."""
    from sklearn.decomposition import NMF, LatentDirichletAllocation

    train, known, hidden = split(matrix("AP"), 0)
    for way in ("online", "batch"):
        model, seconds = timed(
            lambda way=way: LatentDirichletAllocation(10, learning_method=way, random_state=0).fit(train)
        )
        topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
        yield row("AP", 10, 0, f"scikit-learn {way}", (topics, np.full(10, 0.1), seconds), train, known, hidden)
    model, seconds = timed(
        lambda: NMF(10, beta_loss="kullback-leibler", solver="mu", max_iter=200, random_state=0).fit(train)
    )
    topics = model.components_ / model.components_.sum(axis=1, keepdims=True)
    yield row("AP", 10, 0, "NMF, KL", (topics, np.full(10, 0.1), seconds), train, known, hidden)
    try:
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel
    except ImportError:
        return
    corpus = Sparse2Corpus(train.T)
    names = {w: str(w) for w in range(train.shape[1])}
    model, seconds = timed(lambda: LdaModel(corpus, 10, names, passes=5, alpha="auto", eta="auto", random_state=0))
    yield row("AP", 10, 0, "gensim, 5 passes", (model.get_topics(), model.alpha, seconds), train, known, hidden)


def purity() -> Iterator[dict[str, Any]]:
    """BBC with 5 topics, all documents: share of documents whose largest membership goes with their section."""
    import pandas as pd

    counts, labels = matrix("BBC"), pd.read_csv(DATA / "topics_bbc" / "labels.csv")["label"].to_numpy()
    found: dict[str, list[float]] = {"mixmem": [], "tomotopy": []}
    for seed in range(5):
        model, _ = timed(lambda seed=seed: TopicModel(5, random_state=seed, n_jobs=1).fit(counts))
        found["mixmem"].append(pure(model.transform(counts), labels))
        if (theirs := tomotopy_fit(counts, 5, seed, LONG)) is not None:
            memberships = document_memberships(Documents.of(counts), theirs[0].T, theirs[1]).memberships
            found["tomotopy"].append(pure(memberships, labels))
    for method, values in found.items():
        if values:
            yield {"method": method, "best": max(values), "mean": float(np.mean(values)), "worst": min(values)}


def pure(memberships: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of documents in the commonest label of their largest membership."""
    own = memberships.argmax(axis=1)
    return sum(np.unique(labels[own == h], return_counts=True)[1].max() for h in np.unique(own)) / len(labels)


def cells() -> Iterator[dict[str, Any]]:
    """Gene counts of brain samples: log-likelihood per sample, purity by tissue, CPU; scikit-learn's NMF beside it."""
    from sklearn.decomposition import NMF

    found = read_corpus(DATA / "cells_gtex_brain" / "counts.csv.gz", row_id="row")
    documents, labels = found.documents, found.column("tissue")
    shape = (documents.n_documents, documents.n_words)
    counts = sparse.csr_matrix((documents.counts.astype(float), documents.indices, documents.indptr), shape=shape)
    for k in (4, 6):
        model, seconds = timed(lambda k=k: TopicModel(k, random_state=0, n_jobs=1).fit(counts))
        yield cell_row("mixmem", k, counts, model.components_, model.transform(counts), labels, seconds)
        for rounds in (200, 2000):
            nmf = NMF(k, beta_loss="kullback-leibler", solver="mu", max_iter=rounds, tol=0, random_state=0)
            weights, seconds = timed(lambda nmf=nmf: nmf.fit_transform(counts.toarray()))
            sums = nmf.components_.sum(axis=1)
            shares = weights * sums / (weights * sums).sum(axis=1, keepdims=True)
            yield cell_row(f"NMF, {rounds} rounds", k, counts, nmf.components_ / sums[:, None], shares, labels, seconds)


def cell_row(
    method: str, k: int, counts: Any, topics: np.ndarray, memberships: np.ndarray, labels: np.ndarray, seconds: float
) -> dict[str, Any]:
    expected = memberships @ topics
    dense = counts.toarray()
    value = float((dense * np.log(np.maximum(expected, 1e-300))).sum() / len(dense))
    return {"method": method, "k": k, "log_likelihood": value, "purity": pure(memberships, labels), "cpu_s": seconds}


def large(documents: int = 1_000_000) -> Iterator[dict[str, Any]]:
    """Simulated documents of 50 tokens from 10,000 words, 20 topics, out of a docword.gz file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "docword.large.txt.gz"
        truth = in_process(write_docword, path, documents)
        yield in_process(_large, path, truth)


def write_docword(path: Path, documents: int) -> np.ndarray:
    """Write simulated documents and return their topics."""
    drawn = simulate_documents(documents, 10_000, 20, length=50, alpha=0.1, beta=0.05, random_state=0)
    counts = drawn.counts
    owners = np.repeat(np.arange(1, documents + 1), np.diff(counts.indptr))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(f"{documents}\n10000\n{counts.nnz}\n")
        for at in range(0, counts.nnz, 1_000_000):
            part = slice(at, at + 1_000_000)
            triples = zip(owners[part], counts.indices[part] + 1, counts.data[part].astype(int), strict=True)
            file.write("".join(f"{d} {w} {c}\n" for d, w, c in triples))
    return drawn.components


def _large(path: Path, truth: np.ndarray) -> dict[str, Any]:
    began, busy = time.perf_counter(), time.process_time()
    corpus = read_corpus(path)
    read = time.perf_counter() - began
    model = TopicModel(20, random_state=0).fit(corpus.documents)
    return {
        "documents": corpus.documents.n_documents, "read_s": read, "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - busy, "peak_mb": memory("VmHWM") / 1e6,
        "l1": distance(truth, model.components_), "start": model.report_.start,
    }  # fmt: skip


PARTS = {"run": run, "many": many, "peers": peers, "purity": purity, "cells": cells, "large": large}


def main() -> int:
    warm_up()
    for name in sys.argv[1:] or PARTS:
        for found in PARTS[name]():
            print(
                "  ".join(
                    f"{key} {value:.4f}" if isinstance(value, float) else f"{value}" for key, value in found.items()
                ),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
