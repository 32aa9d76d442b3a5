"""The task of sequence tagging: one tag per word. Its options are in `tag.py`."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.baselines import BaselineFit, MostFrequentTag, WordTags
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.checks.check_tags import TagCheck, check_tags
from regard.data.corpus.corpora import Corpus, TagCorpus
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import Example, Pair
from regard.data.reading.tagged import Sentence, read_sentences
from regard.inputs.input import Input
from regard.metrics.label_metrics import class_table, confusion
from regard.metrics.numbers import WeightedScores
from regard.metrics.spans import is_span_scheme, measure_tags, span_table
from regard.models.encoder_model import EncoderModel, TaggerOptions
from regard.search.search import SearchResult
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.tagger_pass import TaggerPass, tagger_pass
from regard.tasks.labeled_data import source_stats
from regard.tasks.task import Prediction, Task
from regard.tasks.values import InputItem, predicted_and_expected


class TagTask(Task):
    """The sequence tagging task. tags: the tag set."""

    kind = "tag"
    unit = "sentences"
    by_line = False
    writes_text = True
    is_aligned = True
    empty_prediction: Prediction | None = Prediction("", 0.0, value=())

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
        if not isinstance(value, Iterable):
            raise UserError(f"example {number}: expected a string, found {value!r}")
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
