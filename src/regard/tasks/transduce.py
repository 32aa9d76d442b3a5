"""Transduction, N to M: a sequence in, a sequence of its own length out."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard import metrics
from regard.data.batch import pad
from regard.data.check import Check, check
from regard.data.corpus import Corpus, PairCorpus, Side
from regard.data.read import Example, Pair, group
from regard.data.vocabulary import (
    EOS,
    UNK,
    Vocabulary,
    build_vocabulary,
    load_vocabulary,
)
from regard.errors import UserError
from regard.files import read_json, write_json
from regard.models.generator import Generator, GeneratorOptions
from regard.search import Beam, Hypothesis
from regard.tasks.base import Choice, Facts, Prediction, Task, TaskOptions, device_of
from regard.tasks.symbols import SUBWORDS, SideOptions, choose_sides
from regard.tasks.texts import read_like

Metric = Literal["exact", "ser", "cer", "wer", "bleu", "chrf", "bleu_d2l", "perplexity"]


class TransduceOptions(TaskOptions):
    """A sequence in, a sequence out."""

    kind: Literal["transduce"] = "transduce"
    source: SideOptions = SideOptions()
    target: SideOptions = SideOptions()
    shared: bool | None = Field(None, description="one subword vocabulary for both sides")
    max_length: int | None = Field(
        None, gt=0, description="longer examples (symbols, either side) are left out of training"
    )
    metric: Metric | None = Field(None, description="the measure that picks the best model")

    def usable(
        self, pairs: Sequence[Pair], task: Task | None = None
    ) -> tuple[list[Pair], list[str]]:
        """The pairs that can be trained on, and a line for each reason others cannot."""
        kept = [pair for pair in pairs if not pair.empty()]
        notes = []
        if len(kept) < len(pairs):
            notes.append(
                f"{len(pairs) - len(kept):,} pairs with an empty side are left out of training"
            )
        limit = self.max_length
        if limit is not None and task is not None:
            lengths = task.corpus(kept).lengths.max(1) - 1
            short = [pair for pair, length in zip(kept, lengths, strict=True) if length <= limit]
            if len(short) < len(kept):
                notes.append(
                    f"{len(kept) - len(short):,} pairs longer than task.max_length={limit} symbols "
                    "are left out of training"
                )
            kept = short
        if not kept:
            long = f" or is longer than task.max_length={limit}" if limit else ""
            raise UserError(f"no example is left to train on: every pair has an empty side{long}")
        return kept, notes

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["Transduce", "TransduceOptions", list[Choice]]:
        """The task for these pairs, the options with nothing left open, what was chosen and why."""
        chosen: list[Choice] = []
        if like is not None:
            return self._fit_like(pairs, like)
        options = self._filled(pairs, chosen)
        sources, targets = [p.source for p in pairs], [p.target for p in pairs]
        texts = sources + targets if options.shared else sources
        source = build_vocabulary(options.source.symbols, texts, options.source.size)
        target = source
        if not options.shared:
            target = build_vocabulary(options.target.symbols, targets, options.target.size)
        return _measured(source, target, options, pairs), options, chosen

    def _filled(self, pairs: Sequence[Pair], chosen: list[Choice]) -> "TransduceOptions":
        """The options with nothing left open."""
        tree = self.model_dump()
        choose_sides(tree, pairs, chosen)
        return TransduceOptions.model_validate(tree)

    def _fit_like(
        self, pairs: Sequence[Pair], like: Task
    ) -> tuple["Transduce", "TransduceOptions", list[Choice]]:
        """The task with the vocabularies of another one, as far as it has them."""
        source, _ = read_like(like, self.source.symbols)
        tree = self.model_dump()
        tree["source"] = {"symbols": source.kind, "size": None}
        if isinstance(like, Transduce):
            target = like.target
            tree |= {"target": {"symbols": target.kind, "size": None}}
            tree["shared"] = source is target
            tree["metric"] = self.metric or like.metric
            options = TransduceOptions.model_validate(tree)
            return _measured(source, target, options, pairs), options, []
        chosen: list[Choice] = []
        tree["shared"] = False
        options = TransduceOptions.model_validate(tree)._filled(pairs, chosen)
        targets = [pair.target for pair in pairs]
        target = build_vocabulary(options.target.symbols, targets, options.target.size)
        return _measured(source, target, options, pairs), options, chosen

    def load(self, folder: Path) -> "Transduce":
        """The task that `Transduce.save` wrote into a run folder."""
        place = folder / "vocabulary"
        facts = read_json(place / "task.json")
        try:
            shared, metric, ratio = (facts[key] for key in ("shared", "metric", "ratio"))
        except (KeyError, TypeError) as error:
            raise UserError(f"{place / 'task.json'}: damaged, {error} is missing") from error
        source = load_vocabulary(place, "source")
        target = source if shared else load_vocabulary(place, "target")
        return Transduce(source, target, metric, ratio, self.max_length)


def _measured(
    source: Vocabulary, target: Vocabulary, options: TransduceOptions, pairs: Sequence[Pair]
) -> "Transduce":
    """The task of these vocabularies, which knows how long outputs may be."""
    assert options.metric is not None
    task = Transduce(source, target, options.metric, 1.0, options.max_length)
    lengths = task.corpus(pairs).lengths  # (N, 2)
    task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
    return task


class Transduce(Task):
    """Vocabularies of both sides, and how long outputs may be."""

    unit = "sources"

    def __init__(
        self,
        source: Vocabulary,
        target: Vocabulary,
        metric: str,
        ratio: float,
        max_length: int | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.metric = metric
        self.ratio = ratio
        self.max_length = max_length

    def build(self, options: GeneratorOptions) -> Generator:
        """A generator for these vocabularies."""
        return options.build(len(self.source), len(self.target), self.source is self.target)

    def corpus(self, pairs: Sequence[Pair]) -> PairCorpus:
        """The pairs as numbers, each side closed with EOS."""
        source = self.source.encode_all([pair.source for pair in pairs])
        target = self.target.encode_all([pair.target for pair in pairs])
        return PairCorpus(Side.of(source, EOS), Side.of(target, EOS))

    def facts(self, corpus: Corpus) -> Facts:
        """What the choice of a model depends on."""
        words = self.target.kind in (*SUBWORDS, "word")
        return Facts(len(corpus), int(corpus.lengths.sum()), len(self.target), words)

    def limit(self, length: int) -> int:
        """The most symbols, EOS included, that a source of this length may become."""
        return math.ceil(self.ratio * length) + 10

    def predict(
        self,
        model: nn.Module,
        sources: Sequence[str],
        search: Beam,
        nbest: int = 1,
        batch_size: int = 64,
    ) -> list[Prediction]:
        """The best output of each source; sorted by length inside, in order outside."""
        assert isinstance(model, Generator)
        rows = [[*ids, EOS] for ids in self.source.encode_all(sources)]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        device = device_of(model)
        found: dict[int, Prediction] = {}
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            source = pad([rows[i] for i in part])
            source = source._replace(data=source.data.to(device), mask=source.mask.to(device))
            limits = torch.tensor([self.limit(len(rows[i])) for i in part], device=device)
            if search.max_length is not None:
                limits = limits.clamp(max=search.max_length + 1)  # 1: EOS
            for i, hypotheses in zip(part, search.run(model, source, limits, nbest), strict=True):
                found[i] = self._prediction(sources[i], rows[i], hypotheses)
        return [found[i] for i in range(len(rows))]

    def _prediction(self, source: str, row: list[int], hypotheses: list[Hypothesis]) -> Prediction:
        """The first hypothesis as text, with the others as alternatives."""
        texts = [
            Prediction(
                self.target.decode(h.symbols),
                h.score,
                h.symbol_scores,
                tuple(self.target.name(id) for id in h.symbols),
                cut=h.cut,
                value=self.target.decode(h.symbols),
            )
            for h in hypotheses
        ]
        unknown: tuple[str, ...] = ()
        if UNK in row:
            cut = self.source.symbols(source)
            unknown = tuple(symbol for symbol, id in zip(cut, row, strict=False) if id == UNK)
        return replace(texts[0], alternatives=tuple(texts), unknown=unknown)

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """One example a source, with all its targets."""
        return group(pairs)

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """exact ser cer wer bleu chrf bleu_d2l."""
        outputs = [prediction.text for prediction in predictions]
        return metrics.score(outputs, self._references(examples), self.target.symbols)

    def intervals(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the same measures."""
        outputs = [prediction.text for prediction in predictions]
        return metrics.intervals(outputs, self._references(examples), self.target.symbols)

    def measures(self, loss: float, parts: dict[str, float]) -> dict[str, float]:
        """The perplexity, from the loss without smoothing."""
        return {"perplexity": math.exp(min(parts["nll"], 700.0))}

    def signatures(self, examples: Sequence[Example]) -> dict[str, str]:
        """How sacrebleu computed its measures."""
        return metrics.signatures([example.references for example in examples])

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> Check:
        """What is in the data, and what is odd."""
        return check(list(train), list(dev), self.source, self.target, self.max_length)

    def _references(self, examples: Sequence[Example]) -> list[list[str]]:
        """The references as the model would write them: spaced symbols with one space between."""
        return [[self.target.normal(text) for text in e.references] for e in examples]

    def save(self, folder: Path) -> None:
        """Writes `vocabulary/`."""
        place = folder / "vocabulary"
        place.mkdir(parents=True, exist_ok=True)
        self.source.save(place, "source")
        shared = self.source is self.target
        if not shared:
            self.target.save(place, "target")
        facts = {
            "shared": shared,
            "metric": self.metric,
            "ratio": self.ratio,
        }
        write_json(place / "task.json", facts)
