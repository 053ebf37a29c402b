"""Topics by the values of a column: labels as they are, dates by year or month, many numbers in classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixmem.errors import InputError
from mixmem.typing import Array

MOST_GROUPS, CLASSES = 60, 10


def by_groups(memberships: Array, values: NDArray[Any], name: str) -> pl.DataFrame:
    """Return a row per group of documents: its value, how many they are, and their mean memberships.

    >>> import numpy as np
    >>> by_groups(np.eye(2), np.array(["a", "b"]), "label").columns
    ['label', 'documents', 'topic_1', 'topic_2']
    """
    groups = group_names(values, name)
    frame = pl.DataFrame({
        name: groups, **{f"topic_{h + 1}": memberships[:, h] for h in range(memberships.shape[1])}
    })  # fmt: skip
    topics = [column for column in frame.columns if column != name]
    return frame.group_by(name).agg(pl.len().alias("documents"), pl.col(topics).mean().round_sig_figs(6)).sort(name)


def group_names(values: NDArray[Any], name: str) -> list[str]:
    """Return the group of every document, by name; groups sort in their own order."""
    texts = pl.Series([None if value is None else str(value) for value in values.tolist()], dtype=pl.String)
    if texts.n_unique() <= MOST_GROUPS:
        return texts.fill_null("").to_list()
    if (dates := _dates(texts)) is not None:
        years = dates.dt.year()
        span = int(years.max()) - int(years.min())  # type: ignore[arg-type]
        return dates.dt.strftime("%Y" if span > 4 else "%Y-%m").fill_null("").to_list()
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return _classes(numbers.to_numpy())
    raise InputError(
        f"column {name!r} has {texts.n_unique():,} different values, more than {MOST_GROUPS}, and they are neither "
        "dates nor numbers; name a column of labels with --by"
    )


def _dates(texts: pl.Series) -> pl.Series | None:
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m"):
        cut = texts.str.slice(0, 10) if form != "%Y-%m" else texts + "-01"
        found = cut.str.to_date(form if form != "%Y-%m" else "%Y-%m-%d", strict=False)
        if found.null_count() == texts.null_count():
            return found
    return None


def _classes(numbers: Array) -> list[str]:
    """Return tenths of the documents, named by their limits and in order."""
    edges = np.unique(np.nanquantile(numbers, np.linspace(0.0, 1.0, CLASSES + 1)))
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    width = len(str(len(edges)))
    return [
        "" if np.isnan(value) else f"{at + 1:0{width}d}: {edges[at]:g} to {edges[at + 1]:g}"
        for at, value in zip(place.tolist(), numbers.tolist(), strict=True)
    ]
