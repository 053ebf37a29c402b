"""report.html of topics: what a reader should look at; the template holds all markup and the script of the map."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from mixmem.data.corpus import Corpus
from mixmem.likelihood.topic_coherence import largest
from mixmem.models.topics.model import TopicModel
from mixmem.output.page import shown_source, template
from mixmem.results.topics import word_scores
from mixmem.typing import Array
from mixmem.words import plain_number, short

SHOWN_WORDS, TYPICAL, SHOWN_SAMPLES, SHOWN_GROUPS = 30, 3, 1200, 40
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Positions of the slider whose likeliest words the page holds; between them it ranks all of those anew."""
COLORS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#7F7F7F", "#8C564B", "#9467BD",
)  # fmt: skip


def render_topics_page(
    document: Mapping[str, Any], model: TopicModel, corpus: Corpus, memberships: Array, groups: pl.DataFrame | None
) -> str:
    """Return the page, from what topics.json holds, the fitted model, its documents and their memberships."""
    by = None if groups is None else groups.columns[0]
    data = {
        "topics": _topics(document, model),
        "samples": [] if by is None else _samples(memberships, corpus, by),
        "colors": COLORS,
    }
    return template("topics.html.jinja").render(
        topics=document,
        report=document["report"],
        source=shown_source(document["corpus"]),
        rows=_rows(document, model, corpus, memberships),
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        by=by,
        groups=[] if groups is None else _groups(groups),
        choice=None if document["choice"] is None else _choice(document["choice"]),
        left_out=0 if groups is None else max(0, groups.height - SHOWN_GROUPS),
        colors=COLORS,
        number=plain_number,
        short=short,
    )


def _choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of topics tried, and a curve of how well each completes documents, 600 by 160."""
    rows = choice["table"]
    values = [row["completion"] for row in rows]
    low, high = min(values), max(values)
    heights = [140.0 - 120.0 * (value - low) / max(high - low, 1e-12) for value in values]
    places = [40.0 + 520.0 * at / max(len(rows) - 1, 1) for at in range(len(rows))]
    points = [
        {"x": x, "y": y, "k": row["n_components"], "holds": row["holds"]}
        for x, y, row in zip(places, heights, rows, strict=True)
    ]
    return {"reason": choice["reason"], "rows": rows, "points": points}


def _topics(document: Mapping[str, Any], model: TopicModel) -> list[dict[str, Any]]:
    """What the map needs of every topic: place, prevalence, and words with probability and share."""
    places = map_places(model.topic_similarity())
    shares, found = model.word_shares_, []
    scores = [word_scores(model.components_, shares, "relevance", weight) for weight in WEIGHTS]
    for h in range(len(model.alpha_)):
        held = np.unique(np.concatenate([largest(score[h], SHOWN_WORDS) for score in scores]))
        words = [
            [short(model.words_[w], 40), _digits(model.components_[h, w]), _digits(shares[w])] for w in held.tolist()
        ]
        found.append({
            "x": _digits(places[h, 0]), "y": _digits(places[h, 1]), "share": _digits(model.topic_prevalence_[h]),
            "words": words,
        })  # fmt: skip
    return found


def map_places(similarity: Array) -> Array:
    """Return places (k, 2) from 0 to 1 whose distances are near the topics' (classical scaling).

    >>> import numpy as np
    >>> map_places(np.eye(3)).shape
    (3, 2)
    """
    k = len(similarity)
    squares = np.maximum(1.0 - similarity, 0.0)  # the root of this divergence is a distance
    center = np.eye(k) - 1.0 / k
    values, vectors = np.linalg.eigh(-0.5 * center @ squares @ center)
    places = np.zeros((k, 2))
    for axis in range(min(2, k)):
        places[:, axis] = vectors[:, -1 - axis] * np.sqrt(max(float(values[-1 - axis]), 0.0))
        places[:, axis] *= 1.0 if places[np.abs(places[:, axis]).argmax(), axis] >= 0.0 else -1.0
    low, width = places.min(axis=0), max(float(np.ptp(places, axis=0).max()), 1e-12)
    return np.asarray((places - low) / width)


def _rows(document: Mapping[str, Any], model: TopicModel, corpus: Corpus, memberships: Array) -> list[dict[str, Any]]:
    """A line per topic: its share, coherence, words, and the documents most typical of it."""
    words = model.top_words(12, by="relevance").groupby("topic")["word"].agg(list)
    lengths = corpus.documents.lengths
    widest = float(model.topic_prevalence_.max())
    found = []
    for h, share in enumerate(model.topic_prevalence_.tolist()):
        # Of documents that are wholly about a topic, the longer ones say so more surely.
        order = np.argsort(-memberships[:, h] * lengths / (lengths + 20.0), kind="stable")[:TYPICAL]
        typical = [{"name": _name(corpus, d), "share": float(memberships[d, h])} for d in order.tolist()]
        found.append({
            "number": h + 1, "share": share, "width": 100.0 * share / widest, "alpha": float(model.alpha_[h]),
            "coherence": None if document["coherence"] is None else document["coherence"][h],
            "words": words.get(h + 1, []), "typical": typical, "color": COLORS[h % len(COLORS)],
        })  # fmt: skip
    return found


def _name(corpus: Corpus, d: int) -> str:
    name = corpus.ids[d] if corpus.ids is not None else f"document {d + 1}"
    return f"{short(name)}: {short(corpus.texts[d], 120)}" if corpus.texts is not None else short(name)


def _groups(groups: pl.DataFrame) -> list[dict[str, Any]]:
    topics = [name for name in groups.columns if name.startswith("topic_")]
    return [
        {"name": short(str(row[groups.columns[0]])), "documents": row["documents"], "shares": [row[t] for t in topics]}
        for row in groups.head(SHOWN_GROUPS).to_dicts()
    ]


def _samples(memberships: Array, corpus: Corpus, by: str) -> list[dict[str, Any]]:
    """The structure plot: documents of each group side by side, ordered by their largest topic within it."""
    from mixmem.results.topic_groups import group_names

    groups = np.array(group_names(corpus.column(by), by), dtype=object)
    share = min(1.0, SHOWN_SAMPLES / max(len(groups), 1))
    found = []
    for name in sorted(set(groups.tolist()))[:SHOWN_GROUPS]:
        own = np.flatnonzero(groups == name)
        own = own[np.unique(np.linspace(0, len(own) - 1, max(1, round(share * len(own)))).astype(int))]
        leading = int(memberships[own].mean(axis=0).argmax())
        own = own[np.argsort(-memberships[own, leading], kind="stable")]
        rows = np.rint(100.0 * memberships[own]).astype(int).tolist()
        found.append({"name": short(str(name), 30), "rows": rows})
    return found


def _digits(value: float) -> float:
    return float(f"{value:.5g}")
