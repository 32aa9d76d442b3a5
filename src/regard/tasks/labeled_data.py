"""What tasks with labels or numbers as answers share."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.data.corpus.corpora import Corpus
from regard.data.reading.columns import number
from regard.data.reading.read import Pair, Pairs
from regard.data.sources.open import DataSpec
from regard.inputs.input import Input


def refuse_streamed_vectors(place: DataSpec, read: Pairs) -> Pairs:
    """What was read as texts, unless it came from a pipe and is numbers."""
    first = read.pairs[:20]
    if place.file() == "-" and all(number(pair.source) is not None for pair in first):
        raise UserError("standard input: these are numbers; vectors are read from files only")
    return read


def text_or_vector(value: Any, number: int = 1) -> Any:
    """Return a text as it is, and a vector as a tuple of numbers. number: of the example."""
    if isinstance(value, str):
        return value
    try:
        vector = tuple(float(one) for one in value)
    except (TypeError, ValueError):
        raise UserError(f"example {number}: a text or numbers expected, {value!r} found") from None
    if not np.isfinite(vector).all():
        raise UserError(f"example {number}: a number is missing or not finite: {value!r}")
    return vector


def balance(pairs: Sequence[Pair], labels: list[str]) -> dict[str, float]:
    """The weight of each label: all labels together count the same, the mean weight is 1."""
    counts = Counter(label for pair in pairs for label in pair.target)
    return {label: counts.total() / (len(labels) * counts[label]) for label in labels}


def source_stats(source: Input, corpus: Corpus, outputs: int, labels: bool = False) -> DataStats:
    """What the choice of a model depends on, of a task with labels or numbers as outputs."""
    return DataStats(
        len(corpus),
        int(corpus.lengths.sum()),
        outputs,
        source.whole_words,
        labels=labels,
        vectors=0 if source.sequential else source.shape.size,
        source=source.kind,
    )
