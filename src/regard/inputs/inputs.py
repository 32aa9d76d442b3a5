"""What tasks with one answer a row read: texts, or vectors of numbers."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.files import read_facts, read_json, write_json
from regard.data.corpus.corpora import Corpus, LabelCorpus, TokenRows, VectorCorpus, vectors
from regard.data.reading.vectors import number
from regard.data.tensors.padded import Batch, pad
from regard.data.tensors.special import BOS, EOS, UNK
from regard.data.vocabulary.build import load_vocabulary
from regard.data.vocabulary.cut import GLUED
from regard.data.vocabulary.vocabulary import Vocabulary
from regard.inputs.tokenizers import PIECES
from regard.models.labeller import Labeller, PooledOptions
from regard.tasks.task import Facts


class Inputs(ABC):
    """Sources as numbers."""

    @abstractmethod
    def corpus(
        self, sources: Sequence[Any], labels: np.ndarray, weight: np.ndarray | None
    ) -> Corpus:
        """Sources with their labels."""

    @abstractmethod
    def batch(self, sources: Sequence[Any]) -> Batch:
        """Sources without labels."""

    @abstractmethod
    def build(self, options: PooledOptions, outputs: int) -> Labeller:
        """The model that reads them."""

    @abstractmethod
    def facts(self, corpus: Corpus, outputs: int, task: str) -> Facts:
        """What the choice of a model depends on."""

    @abstractmethod
    def save(self, place: Path) -> None:
        """Writes all that `load_inputs` needs."""

    def parse(self, text: str) -> Any:
        """A source as it is written in a line."""
        return text

    def length(self, source: Any) -> int:
        """How long a source is."""
        return 1

    def unknown(self, source: Any) -> tuple[str, ...]:
        """The symbols of a source that training never saw."""
        return ()


class Texts(Inputs):
    """Texts as symbols between BOS and EOS; `lower`: without case."""

    def __init__(self, vocabulary: Vocabulary, lower: bool) -> None:
        self.vocabulary = vocabulary
        self.lower = lower

    def rows(self, sources: Sequence[str]) -> list[list[int]]:
        """The symbols of each text."""
        for place, source in enumerate(sources, 1):
            if not isinstance(source, str):
                raise UserError(f"example {place}: a text expected, {source!r} found")
        texts = [text.lower() for text in sources] if self.lower else list(sources)
        return [[BOS, *ids, EOS] for ids in self.vocabulary.encode_all(texts)]

    def corpus(
        self, sources: Sequence[str], labels: np.ndarray, weight: np.ndarray | None
    ) -> LabelCorpus:
        """Texts with their labels."""
        return LabelCorpus(TokenRows.of(self.rows(sources)), labels, weight)

    def batch(self, sources: Sequence[str]) -> Batch:
        """Texts without labels."""
        return Batch(pad(self.rows(sources)))

    def build(self, options: PooledOptions, outputs: int) -> Labeller:
        """A labeller for this vocabulary."""
        return options.build(len(self.vocabulary), outputs)

    def facts(self, corpus: Corpus, outputs: int, task: str) -> Facts:
        """What the choice of a model depends on."""
        words = self.vocabulary.kind in ("word", *PIECES)
        return Facts(len(corpus), int(corpus.lengths.sum()), outputs, words, task)

    def length(self, source: str) -> int:
        """Characters, which is near enough for sorting."""
        return len(source)

    def unknown(self, source: str) -> tuple[str, ...]:
        """The symbols that training never saw."""
        text = source.lower() if self.lower else source
        ids = self.vocabulary.encode(text)
        if UNK not in ids:
            return ()
        cut = zip(self.vocabulary.symbols(text), ids, strict=True)
        return tuple(symbol.removeprefix(GLUED) for symbol, id in cut if id == UNK)

    def save(self, place: Path) -> None:
        """Writes the vocabulary."""
        self.vocabulary.save(place, "source")
        write_json(place / "inputs.json", {"lower": self.lower})


class Vectors(Inputs):
    """Vectors, each number shifted and scaled to mean 0 and deviation 1 over the training part."""

    def __init__(self, mean: Sequence[float], deviation: Sequence[float]) -> None:
        self.mean = np.asarray(mean, np.float64)
        self.deviation = np.asarray(deviation, np.float64)

    @classmethod
    def of(cls, sources: Sequence[tuple[float, ...]]) -> "Vectors":
        """Fitted to these vectors; a number that never changes is only shifted."""
        mean, deviation = standard(np.asarray(sources, np.float64))
        return cls(mean.tolist(), deviation.tolist())

    def scaled(self, sources: Sequence[Any]) -> np.ndarray:
        """(N, F) numbers around zero."""
        for place, source in enumerate(sources, 1):
            if isinstance(source, str) or len(source) != len(self.mean):
                found = repr(source) if isinstance(source, str) else len(source)
                raise UserError(f"vector {place}: {len(self.mean)} numbers expected, {found} found")
        rows = np.asarray(sources, np.float64).reshape(len(sources), len(self.mean))
        return ((rows - self.mean) / self.deviation).astype(np.float32)

    def parse(self, text: str) -> tuple[float, ...]:
        """The numbers between commas, semicolons, tabs or spaces."""
        cells = text.replace(",", " ").replace(";", " ").split()
        found = [value for cell in cells if (value := number(cell)) is not None]
        if len(found) != len(cells) or len(found) != len(self.mean):
            raise UserError(
                f"{text!r}: {len(self.mean)} finite numbers expected, separated by commas"
            )
        return tuple(found)

    def corpus(
        self, sources: Sequence[tuple[float, ...]], labels: np.ndarray, weight: np.ndarray | None
    ) -> VectorCorpus:
        """Vectors with their labels."""
        return VectorCorpus(self.scaled(sources), labels, weight)

    def batch(self, sources: Sequence[tuple[float, ...]]) -> Batch:
        """Vectors without labels."""
        return Batch(vectors(self.scaled(sources)))

    def build(self, options: PooledOptions, outputs: int) -> Labeller:
        """A labeller for vectors of this size."""
        return options.build_vectors(len(self.mean), outputs)

    def facts(self, corpus: Corpus, outputs: int, task: str) -> Facts:
        """What the choice of a model depends on."""
        return Facts(len(corpus), len(corpus), outputs, False, task, vectors=len(self.mean))

    def save(self, place: Path) -> None:
        """Writes means and deviations."""
        scale = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        write_json(place / "inputs.json", scale)


def standard(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each column; the deviation of a constant one is 1."""
    mean, deviation = rows.mean(0), rows.std(0)
    return mean, np.where(deviation > 1e-12 * np.maximum(1, np.abs(mean)), deviation, 1.0)


def load_inputs(place: Path) -> Inputs:
    """The inputs that `save` wrote."""
    path = place / "inputs.json"
    facts = read_json(path)
    if isinstance(facts, dict) and "mean" in facts:
        return Vectors(*read_facts(path, "mean", "deviation"))
    (lower,) = read_facts(path, "lower")
    return Texts(load_vocabulary(place, "source"), lower)
