"""What scikit-learn is about, by its own words: topics of the docstrings of its public functions and classes."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.discovery import all_estimators, all_functions

from mixmem import TopicModel
from mixmem.plots import colour

K = 8


def main(folder: Path) -> None:
    """Fit the docstrings and draw the words that stand for each topic."""
    found = {name: one.__doc__ for name, one in [*all_functions(), *all_estimators()] if one.__doc__}
    # two documents may share most of their words: the same parameter is explained in many places
    vectorizer = CountVectorizer(min_df=5, max_df=0.3, stop_words="english", token_pattern=r"[a-z]{3,}")
    counts = vectorizer.fit_transform(found.values())
    model = TopicModel(K, random_state=0).fit(counts, words=vectorizer.get_feature_names_out())

    memberships = model.transform(counts)
    figure = Figure(figsize=(2.1 * K / 2, 5), dpi=120, layout="constrained")
    words = model.top_words(8, by="relevance")
    names = list(found)
    for h, axes in enumerate(figure.subplots(2, K // 2).ravel()):
        own = words[words["topic"] == h + 1]
        axes.barh(own["word"][::-1], own["probability"][::-1], color=colour(h))
        axes.set_title(f"Topic {h + 1}", fontsize=10)
        axes.tick_params(labelsize=8)
        most = [names[row] for row in memberships[:, h].argsort()[::-1][:3]]
        print(f"topic {h + 1}: {', '.join(own['word'])}; most in {', '.join(most)}")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "topics.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
