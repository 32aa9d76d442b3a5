"""Sequence tagging: one tag per word."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from regard.baselines import BaselineFit, MostFrequentTag, WordTags
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.field_types import Names
from regard.core.files import read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.checks.check_tags import TagCheck, check_tags
from regard.data.corpus.corpora import Corpus, TagCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import Example, Pair, Pairs
from regard.data.reading.tagged import Sentence, read_sentences, read_tagged
from regard.data.sources.open import DataSpec
from regard.inputs import Inputs, fit_input
from regard.inputs.input import Input
from regard.inputs.words import Words
from regard.metrics.label_metrics import class_table, confusion
from regard.metrics.numbers import WeightedScores
from regard.metrics.spans import is_span_scheme, measure_tags, span_table
from regard.models.encoder_model import EncoderModel, TaggerOptions
from regard.search.search import SearchResult
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.tagger_pass import TaggerPass, tagger_pass
from regard.tasks.labeled_data import source_stats
from regard.tasks.task import Prediction, Task
from regard.tasks.task_options import TaskOptions
from regard.tasks.values import InputItem, predicted_and_expected

Metric = Literal["accuracy", "f1", "sentence_accuracy"]


class TagOptions(TaskOptions):
    """Options of sequence tagging."""

    kind: Literal["tag"] = "tag"
    source: Inputs = Field(Words(), description="input type and tokenizer")
    pseudo_label_threshold: float = Field(
        0.9, gt=0, le=1, description="minimum confidence of a pseudo-label (--unlabeled)"
    )
    metric: Metric | None = Field(
        None,
        description="metric that selects the best checkpoint; None: f1 or accuracy",
    )

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        return self.pseudo_label_threshold

    def read(self, spec: DataSpec) -> Pairs:
        """Return the sentences of a file, as words and tags."""
        return read_tagged(spec.file(), spec.source_column, spec.target_column)[0]

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["TagTask", "TagOptions", list[AutoSetting]]:
        """Fit the task to sentences. Return the task, complete options and automatic settings."""
        if not pairs:
            raise UserError("no sentences to train on")
        auto_settings, known = list[AutoSetting](), None if like is None else like.source
        sources = [pair.source for pair in pairs]
        source, section = fit_input(self.source, sources, "task.source", auto_settings, known)
        tags = sorted({tag for pair in pairs for tag in pair.target})
        if len(tags) < 2:
            raise UserError(
                f"expected at least two tags, found one: every word has the tag {tags[0]!r}"
            )
        metric = self.metric
        if metric is None:
            metric = "f1" if is_span_scheme(tags) else "accuracy"
            reason = "the tags mark spans" if metric == "f1" else "one tag per word"
            auto_settings.append(AutoSetting("task.metric", metric, reason))
        options = self.model_copy(update={"metric": metric, "source": section})
        return TagTask(source, tags, metric), options, auto_settings

    def load(self, folder: Path) -> "TagTask":
        """Return the task that `TagTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        tags, metric = read_fields(path / "task.json", tags=Names, metric=Metric)
        return TagTask(self.source.load(path), tags, metric)


class TagTask(Task):
    """The sequence tagging task. tags: the tag set."""

    kind = "tag"
    unit = "sentences"
    by_line = False
    writes_text = True
    is_aligned = True
    empty_prediction = Prediction("", 0.0, value=())

    def __init__(self, source: Input, tags: list[str], metric: str) -> None:
        self.source = source
        self.tags = tags
        self.metric = metric
        self.tag_ids = {tag: id for id, tag in enumerate(tags)}

    def build(self, options: TaggerOptions) -> EncoderModel:
        """Return an encoder model with one output per tag."""
        return options.build(self.source.shape, len(self.tags))

    def corpus(self, pairs: Sequence[Pair]) -> TagCorpus:
        """Return the sentences as tensors. Unknown tags become the first tag of the tag set."""
        target = Ragged.of([[self.tag_ids.get(tag, 0) for tag in pair.target] for pair in pairs])
        return TagCorpus(self.source.encode([pair.source for pair in pairs]), target)

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        return source_stats(self.source, corpus, len(self.tags), labels=True)

    def parse(self, text: str) -> Any:
        """Return the whitespace-separated words of an input line."""
        return self.source.parse(text)

    def read_items(self, input: str, *columns: str | None) -> tuple[Iterator[InputItem], list[str]]:
        """Return the sentences of a file, and notes on its format.

        Each item renders its predicted tags in the format of the file.
        """
        sentences, layout = read_sentences(input, *columns)

        def item(sentence: Sentence) -> InputItem:
            render = lambda found: layout.render(sentence, found.value)  # noqa: E731
            return InputItem(sentence.tokens, "\n".join(sentence.raw), render)

        return map(item, sentences), [*layout.notes]

    @staticmethod
    def to_source(value: Any, number: int = 1) -> tuple[str, ...]:
        """Return the words of a sentence; a text is split at whitespace."""
        words = tuple(map(str, value.split() if isinstance(value, str) else value))
        if not words:
            raise UserError(f"example {number}: expected a sentence, found no words")
        if not all(words):
            raise UserError(f"example {number}: expected words, found an empty text")
        return words

    def forced_pass(self, request: InspectionRequest) -> TaggerPass:
        """Return the forced pass over a sentence, with its predicted or the given tags."""
        return tagger_pass(request)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return the tags of a sentence. found: tag ids and their probabilities."""
        labels, confidences = found
        tags = tuple(self.tags[label] for label in labels)
        return Prediction(
            " ".join(tags),
            float(np.log(np.maximum(confidences, 1e-30)).sum()),
            tuple(confidences),
            tags,
            unknown_tokens=self.source.unknown(source),
            value=tags,
            confidence=float(np.mean(confidences)),
        )

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return `accuracy`, `oov_accuracy`, `sentence_accuracy` and, for spans, `f1`."""
        words = [example.source for example in examples]
        return measure_tags(*predicted_and_expected(predictions, examples), words, self.knows)

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the most frequent tag, of all words and per word."""
        return [BaselineFit(one.name, one.fit) for one in (MostFrequentTag, WordTags)]

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """Return metrics per tag, the confusion matrix and, for spans, metrics per span type."""
        y_pred, y_true = predicted_and_expected(predictions, examples)
        predicted, expected = ([(tag,) for row in rows for tag in row] for rows in (y_pred, y_true))
        details: dict[str, Any] = {
            "classes": class_table(predicted, expected),
            "confusion": confusion(predicted, expected),
        }
        if is_span_scheme(self.tags):
            details["spans"] = span_table(y_pred, y_true)
        return details

    def knows(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        return self.source.knows(word)

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> TagCheck:
        """Return statistics of the data, and warnings about the data."""
        shape = self.source.shape
        return check_tags(train, dev, (shape.size, shape.characters), self.knows)

    def save(self, folder: Path) -> None:
        """Write the input and the tags to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        path.mkdir(parents=True, exist_ok=True)
        self.source.save(path)
        write_json(path / "task.json", {"tags": self.tags, "metric": self.metric})
