"""Functions shared by several tasks, mainly those that predict labels or numbers."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from regard.baselines import BaselineFit, NearestNeighbor, trigrams, words
from regard.core.data_stats import DataStats
from regard.core.errors import UserError, UserTypeError
from regard.data.corpus.corpora import Corpus
from regard.data.reading.columns import number
from regard.data.reading.graphs import Reading
from regard.data.reading.media_source import MediaSource
from regard.data.reading.read import Pair, Pairs
from regard.data.sources.graphs import read_unlabeled
from regard.data.sources.open import DataSpec
from regard.inputs.input import Input
from regard.tasks.values import InputItem


def check_not_streamed(spec: DataSpec, read: Pairs) -> Pairs:
    """Return `read` unchanged. Raise UserError if its sources are numbers from standard input."""
    first = read.pairs[:20]
    if spec.file() == "-" and all(number(pair.source) is not None for pair in first):
        raise UserError("standard input: found numbers, but vectors can only be read from files")
    return read


def graphs_of(source: Any, spec: DataSpec) -> tuple[Iterator[InputItem], list[str]]:
    """Return one item per graph of a table of nodes, and notes. source: input of the model."""
    if not source.unordered:
        spec.check_no_graph()
    if not spec.graph_column:
        raise UserError(
            "--graph-column: missing: this model predicts a label per graph",
            help="add --graph-column COLUMN",
        )
    data = read_unlabeled(spec, Reading(source.features, source.directed, labeled=False))
    return (InputItem(graph, graph.name, name=graph.name) for graph in data.graphs), data.notes


def text_or_vector(value: Any, number: int = 1) -> Any:
    """Return a text unchanged, and a vector as a tuple of floats.

    number: example number, for error messages.
    """
    if isinstance(value, str | MediaSource):
        return value
    if isinstance(value, np.ndarray) and np.iscomplexobj(value):
        raise UserError(f"example {number}: Complex data not supported: expected real numbers")
    if not isinstance(value, Iterable):
        raise UserTypeError(f"example {number}: expected a text or numbers, found {value!r}")
    try:
        vector = tuple(map(float, value))
    except (TypeError, ValueError) as error:
        kind = UserTypeError if isinstance(error, TypeError) else UserError
        raise kind(f"example {number}: expected a text or numbers: {error}") from None
    _check_finite(vector, number)
    return vector


def _check_finite(vector: tuple[float, ...], number: int) -> None:
    """Raise UserError if a vector contains NaN or inf. number: example number."""
    for index, value in enumerate(vector):
        if not math.isfinite(value):
            found = "NaN" if math.isnan(value) else str(value)
            raise UserError(
                f"example {number}: expected finite numbers, found {found} at index {index}"
            )


def balanced_weights(pairs: Sequence[Pair], labels: list[str]) -> dict[str, float]:
    """Return label weights like `class_weight="balanced"` of scikit-learn."""
    counts = Counter(label for pair in pairs for label in pair.target)
    return {label: counts.total() / (len(labels) * counts[label]) for label in labels}


def source_stats(source: Input, corpus: Corpus, outputs: int, labels: bool = False) -> DataStats:
    """Return the data statistics from which default settings are chosen."""
    return DataStats(
        len(corpus),
        int(corpus.lengths.sum()),
        outputs,
        source.whole_words,
        labels=labels,
        vectors=0 if source.sequential else source.shape.values,
        grid=source.shape.grid,
        frames=source.shape.rate > 0,
        source=source.kind,
        edges=corpus.source.num_edges if source.unordered else 0,  # type: ignore[attr-defined]
    )


def neighbor_fits(source: Input) -> list[BaselineFit]:
    """Return the nearest neighbor of texts, by words or character trigrams; none for others."""
    if not source.sequential or source.unordered or source.media:
        return []
    fit = partial(NearestNeighbor.fit, trigrams if source.characters else words)
    return [BaselineFit(NearestNeighbor.name, fit, stored=False)]
