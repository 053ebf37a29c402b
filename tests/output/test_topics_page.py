from __future__ import annotations

import numpy as np

from mixmem import TopicModel, simulate_documents
from mixmem.data.corpus import Corpus
from mixmem.data.documents import Documents
from mixmem.output.topics_page import map_places, render_topics_page

DRAWN = simulate_documents(60, 20, 2, random_state=0)


def test_names_cannot_end_the_script_or_become_markup():
    words = ["</script><b>x", *(f"w{w}" for w in range(19))]
    model = TopicModel(2, random_state=0).fit(DRAWN.counts, words=words)
    texts = ["<i>text</i>"] * 60
    corpus = Corpus(Documents.of(DRAWN.counts), words, ["<u>name"] * 60, {}, texts)
    document = {
        "mixmem": "0", "corpus": "c.csv", "settings": {}, "alpha": [0.1, 0.1], "beta": 0.1, "coherence": None,
        "choice": None, "report": model.report_.to_plain(),
    }  # fmt: skip
    page = render_topics_page(document, model, corpus, model.memberships_, None)
    assert page.count("</script>") == 1
    assert "<b>x" not in page
    assert "<i>text" not in page
    assert "<u>name" not in page


def test_places_on_the_map_lie_inside_and_apart():
    rng = np.random.default_rng(0)
    places = map_places(TopicModel(5, random_state=0).fit(rng.integers(0, 5, (40, 30))).topic_similarity())
    assert places.min() >= 0
    assert places.max() <= 1
    assert map_places(np.ones((1, 1))).tolist() == [[0.0, 0.0]]
