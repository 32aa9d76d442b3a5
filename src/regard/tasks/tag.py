"""Tagging, N to N: a label for each word."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
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
from regard.tasks.values import InputItem, columns


class TagOptions(TaskOptions):
    """A label for each word of a sentence."""

    kind: Literal["tag"] = "tag"
    source: Inputs = Field(Words(), description="input type and tokenizer")
    pseudo_label_threshold: float = Field(
        0.9, gt=0, le=1, description="minimum confidence of a pseudo-label (--unlabeled)"
    )
    metric: Literal["accuracy", "f1", "sentence_accuracy"] | None = Field(
        None, description="metric that selects the best checkpoint; None: f1 for spans"
    )

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        return self.pseudo_label_threshold

    def read(self, place: DataSpec) -> Pairs:
        """The sentences of a file, as words and tags."""
        return read_tagged(place.file(), place.source_column, place.target_column)[0]

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["TagTask", "TagOptions", list[AutoSetting]]:
        """The task for these sentences, the options with nothing left open, what was chosen."""
        if not pairs:
            raise UserError("no sentence is left to train on")
        auto_settings, known = list[AutoSetting](), None if like is None else like.source
        sources = [pair.source for pair in pairs]
        source, section = fit_input(self.source, sources, "task.source", auto_settings, known)
        tags = sorted({tag for pair in pairs for tag in pair.target})
        if len(tags) < 2:
            raise UserError(f"every word has the tag {tags[0]!r}: there is nothing to learn")
        metric = self.metric
        if metric is None:
            metric = "f1" if is_span_scheme(tags) else "accuracy"
            reason = "the tags mark spans" if metric == "f1" else "a tag for each word"
            auto_settings.append(AutoSetting("task.metric", metric, reason))
        options = self.model_copy(update={"metric": metric, "source": section})
        return TagTask(source, tags, metric), options, auto_settings

    def load(self, folder: Path) -> "TagTask":
        """The task that `TagTask.save` wrote into a run folder."""
        place = folder / "vocabulary"
        tags, metric = read_fields(place / "task.json", "tags", "metric")
        return TagTask(self.source.load(place), tags, metric)


class TagTask(Task):
    """What is read, and the tags."""

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
        self.numbers = {tag: number for number, tag in enumerate(tags)}

    def build(self, options: TaggerOptions) -> EncoderModel:
        """A labeler for these sources."""
        return options.build(self.source.shape, len(self.tags))

    def corpus(self, pairs: Sequence[Pair]) -> TagCorpus:
        """The sentences as numbers; a tag that training never saw counts as the first."""
        target = Ragged.of([[self.numbers.get(tag, 0) for tag in pair.target] for pair in pairs])
        return TagCorpus(self.source.encode([pair.source for pair in pairs]), target)

    def stats(self, corpus: Corpus) -> DataStats:
        """What the choice of a model depends on."""
        return source_stats(self.source, corpus, len(self.tags), labels=True)

    def parse(self, text: str) -> Any:
        """A source as it is written in a line: the words between its spaces."""
        return self.source.parse(text)

    def read_items(self, input: str, *columns: str | None) -> tuple[Iterator[InputItem], list[str]]:
        """Return the sentences of a file, which are written as they were, with their tags."""
        sentences, layout = read_sentences(input, *columns)

        def item(sentence: Sentence) -> InputItem:
            render = lambda found: layout.render(sentence, found.value)  # noqa: E731
            return InputItem(sentence.tokens, "\n".join(sentence.raw), render)

        return map(item, sentences), [*layout.notes]

    @staticmethod
    def to_source(value: Any, number: int = 1) -> tuple[str, ...]:
        """The words of a sentence; a text is split at its spaces."""
        words = tuple(map(str, value.split() if isinstance(value, str) else value))
        if not words:
            raise UserError(f"example {number}: a sentence without words")
        if not all(words):
            raise UserError(f"example {number}: a word is empty")
        return words

    def forced_pass(self, request: InspectionRequest) -> TaggerPass:
        """Return the pass over the tags of a sentence, or over given ones."""
        return tagger_pass(request)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """The tags of a sentence with the probability of each."""
        labels, sure = found
        tags = tuple(self.tags[label] for label in labels)
        return Prediction(
            " ".join(tags),
            float(np.log(np.maximum(sure, 1e-30)).sum()),
            tuple(sure),
            tags,
            unknown_tokens=self.source.unknown(source),
            value=tags,
            confidence=float(np.mean(sure)),
        )

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return `accuracy`, `oov_accuracy`, `sentence_accuracy` and, for spans, `f1`."""
        words = [example.source for example in examples]
        return measure_tags(*columns(predictions, examples), words, self.knows)

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """The table of tags, and what is taken for what."""
        given, wanted = columns(predictions, examples)
        one, other = ([(tag,) for row in rows for tag in row] for rows in (given, wanted))
        found: dict[str, Any] = {
            "classes": class_table(one, other),
            "confusion": confusion(one, other),
        }
        if is_span_scheme(self.tags):
            found["spans"] = span_table(given, wanted)
        return found

    def knows(self, word: str) -> bool:
        """Whether training saw this word."""
        return self.source.knows(word)

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> TagCheck:
        """What is in the data, and what is odd."""
        shape = self.source.shape
        return check_tags(train, dev, (shape.size, shape.characters), self.knows)

    def save(self, folder: Path) -> None:
        """Writes `vocabulary/`."""
        place = folder / "vocabulary"
        place.mkdir(parents=True, exist_ok=True)
        self.source.save(place)
        write_json(place / "task.json", {"tags": self.tags, "metric": self.metric})
