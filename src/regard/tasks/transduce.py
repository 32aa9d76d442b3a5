"""Transduction, N to M: a sequence in, a sequence of its own length out."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard import metrics
from regard.data.batch import pad
from regard.data.corpus import Corpus, Side
from regard.data.read import Example, Pair
from regard.data.subword import default_size
from regard.data.vocabulary import (
    EOS,
    UNK,
    Vocabulary,
    build_vocabulary,
    choose_symbols,
    load_vocabulary,
)
from regard.errors import UserError
from regard.files import read_json, write_json
from regard.models.generator import Generator, GeneratorOptions
from regard.options import Options
from regard.search import Hypothesis, Search
from regard.tasks.base import Choice, Facts, Prediction, Task

Symbols = Literal["auto", "char", "word", "space", "bpe", "unigram"]
Metric = Literal["exact", "ser", "cer", "wer", "bleu", "chrf", "bleu_d2l", "perplexity"]
SUBWORDS = ("bpe", "unigram")


class SideOptions(Options):
    """How one side is cut into symbols."""

    symbols: Symbols = Field("auto", description="auto chooses from the data and says why")
    size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")


class TransduceOptions(Options):
    """A sequence in, a sequence out."""

    kind: Literal["transduce"] = "transduce"
    source: SideOptions = SideOptions()
    target: SideOptions = SideOptions()
    shared: bool | None = Field(None, description="one subword vocabulary for both sides")
    max_length: int | None = Field(
        None, gt=0, description="longer examples (symbols, either side) are left out of training"
    )
    metric: Metric | None = Field(None, description="the measure that picks the best model")

    def fit(self, pairs: Sequence[Pair]) -> tuple["Transduce", "TransduceOptions", list[Choice]]:
        """The task for these pairs, the options with nothing left open, what was chosen and why."""
        chosen: list[Choice] = []
        options = _fill(self, pairs, chosen)
        sources, targets = [p.source for p in pairs], [p.target for p in pairs]
        texts = sources + targets if options.shared else sources
        source = build_vocabulary(options.source.symbols, texts, options.source.size)
        target = source
        if not options.shared:
            target = build_vocabulary(options.target.symbols, targets, options.target.size)
        assert options.metric is not None
        task = Transduce(source, target, options.metric, 1.0)
        lengths = task.corpus(pairs).lengths  # (N, 2)
        task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
        return task, options, chosen

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
        return Transduce(source, target, metric, ratio)


class Transduce(Task):
    """Vocabularies of both sides, and how long outputs may be."""

    def __init__(self, source: Vocabulary, target: Vocabulary, metric: str, ratio: float) -> None:
        self.source = source
        self.target = target
        self.metric = metric
        self.ratio = ratio

    def build(self, options: GeneratorOptions) -> Generator:
        """A generator for these vocabularies."""
        return options.build(len(self.source), len(self.target), self.source is self.target)

    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """The pairs as numbers, each side closed with EOS."""
        source = self.source.encode_all([pair.source for pair in pairs])
        target = self.target.encode_all([pair.target for pair in pairs])
        return Corpus(Side.of(source, EOS), Side.of(target, EOS))

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
        search: Search,
        nbest: int = 1,
        batch_size: int = 64,
    ) -> list[Prediction]:
        """The best output of each source; sorted by length inside, in order outside."""
        assert isinstance(model, Generator)
        rows = [[*ids, EOS] for ids in self.source.encode_all(sources)]
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        device = next(model.parameters()).device
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
            )
            for h in hypotheses
        ]
        unknown: tuple[str, ...] = ()
        if UNK in row:
            cut = self.source.symbols(source)
            unknown = tuple(symbol for symbol, id in zip(cut, row, strict=False) if id == UNK)
        first = texts[0]
        return Prediction(
            first.text,
            first.score,
            first.symbol_scores,
            first.symbols,
            tuple(texts),
            unknown,
            first.cut,
        )

    def score(self, outputs: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
        """exact ser cer wer bleu chrf bleu_d2l."""
        return metrics.score(outputs, self._references(examples), self.target.symbols)

    def intervals(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the same measures."""
        return metrics.intervals(outputs, self._references(examples), self.target.symbols)

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


def _fill(
    options: TransduceOptions, pairs: Sequence[Pair], chosen: list[Choice]
) -> TransduceOptions:
    """The options with symbols, sharing, sizes and metric filled in."""
    tree = options.model_dump()

    def choose(section: dict[str, Any], path: str, key: str, value: Any, why: str) -> None:
        section[key] = value
        chosen.append(Choice(f"{path}.{key}", value, why))

    texts = {"source": [p.source for p in pairs], "target": [p.target for p in pairs]}
    for side in texts:
        if tree[side]["symbols"] == "auto":
            choose(tree[side], f"task.{side}", "symbols", *choose_symbols(texts[side]))
    kinds = [tree[side]["symbols"] for side in texts]
    if tree["shared"] is None:
        sizes = {tree[side]["size"] for side in texts} - {None}
        alike = kinds[0] == kinds[1] and kinds[0] in SUBWORDS and len(sizes) < 2
        share = alike and _same_script(texts)
        tree["shared"] = share
        if share:
            choose(tree, "task", "shared", True, "both sides are written in the same characters")
            for side in texts:
                tree[side]["size"] = next(iter(sizes), None)
    for side in texts:
        if tree[side]["symbols"] in SUBWORDS and tree[side]["size"] is None:
            counted = [*texts["source"], *texts["target"]] if tree["shared"] else texts[side]
            choose(tree[side], f"task.{side}", "size", default_size(counted), "by amount of text")
    if tree["metric"] is None:
        tree["metric"] = "bleu" if kinds[1] in (*SUBWORDS, "word") else "exact"
    if tree["shared"] and tree["source"] != tree["target"]:
        raise UserError(
            "task.shared: both sides must have the same symbols and size, but the source has "
            f"{tree['source']}, the target {tree['target']}"
        )
    return TransduceOptions.model_validate(tree)


def _same_script(texts: dict[str, list[str]]) -> bool:
    """Whether most characters of the two sides are the same."""
    left, right = (set("".join(side)) for side in texts.values())
    return len(left & right) >= 0.5 * len(left | right)
