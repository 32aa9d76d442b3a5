"""Transduction, N to M: a sequence in, a sequence of its own length out."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard import metrics
from regard.data.batch import pad
from regard.data.corpus import Corpus, Side
from regard.data.read import Example, Pair
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
from regard.tasks.base import Choice, Prediction, Task

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


class Transduce(Task):
    """Vocabularies of both sides, and how long outputs may be."""

    def __init__(
        self, source: Vocabulary, target: Vocabulary, metric: str, ratio: float, longest: int
    ) -> None:
        self.source = source
        self.target = target
        self.metric = metric
        self.ratio = ratio
        self.longest = longest

    def build(self, options: GeneratorOptions) -> Generator:
        """A generator for these vocabularies."""
        return options.build(len(self.source), len(self.target), self.source is self.target)

    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """The pairs as numbers, each side closed with EOS."""
        source = self.source.encode_all([pair.source for pair in pairs])
        target = self.target.encode_all([pair.target for pair in pairs])
        return Corpus(Side.of(source, EOS), Side.of(target, EOS))

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
            )
            for h in hypotheses
        ]
        unknown: tuple[str, ...] = ()
        if UNK in row:
            cut = self.source.symbols(source)
            unknown = tuple(symbol for symbol, id in zip(cut, row, strict=False) if id == UNK)
        first = texts[0]
        return Prediction(
            first.text, first.score, first.symbol_scores, first.symbols, tuple(texts), unknown
        )

    def score(self, outputs: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
        """exact ser cer wer bleu chrf bleu_d2l."""
        references = [example.references for example in examples]
        return metrics.score(outputs, references, self.target.symbols)

    def intervals(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, tuple[float, float]]:
        """95 % bootstrap intervals of the same measures."""
        references = [example.references for example in examples]
        return metrics.intervals(outputs, references, self.target.symbols)

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
            "longest": self.longest,
        }
        write_json(place / "task.json", facts)

    @classmethod
    def load(cls, folder: Path) -> "Transduce":
        """The task that `save` wrote."""
        place = folder / "vocabulary"
        facts = read_json(place / "task.json")
        source = load_vocabulary(place, "source")
        target = source if facts["shared"] else load_vocabulary(place, "target")
        return cls(source, target, facts["metric"], facts["ratio"], facts["longest"])


def fit_task(
    options: TransduceOptions, pairs: Sequence[Pair]
) -> tuple[Transduce, TransduceOptions, list[Choice]]:
    """The task for this data, its options with nothing left open, and what was chosen and why."""
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    chosen: list[Choice] = []
    source = _choose_kind(options.source, "source", sources, chosen)
    target = _choose_kind(options.target, "target", targets, chosen)
    shared = options.shared
    if shared is None:
        shared = _may_share(source, target, sources, targets)
        if source.symbols in SUBWORDS:
            why = "both sides use the same characters" if shared else "the sides differ in script"
            chosen.append(Choice("task.shared", shared, why))
    if shared and source != target:
        raise UserError(
            "task.shared: both sides must have the same symbols and size, but the source has "
            f"{source.symbols} {source.size}, the target {target.symbols} {target.size}"
        )
    first = build_vocabulary(source.symbols, sources + targets if shared else sources, source.size)
    second = first if shared else build_vocabulary(target.symbols, targets, target.size)
    metric = options.metric or ("bleu" if target.symbols in (*SUBWORDS, "word") else "exact")
    task = Transduce(first, second, metric, 1.0, 1)
    lengths = task.corpus(pairs).lengths  # (N, 2)
    task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
    task.longest = int(lengths.max())
    filled = options.model_copy(
        update={"source": source, "target": target, "shared": shared, "metric": metric}
    )
    return task, filled, chosen


def _choose_kind(
    options: SideOptions, side: str, texts: list[str], chosen: list[Choice]
) -> SideOptions:
    """The options of a side with the kind of symbols and the size filled in."""
    kind, size = options.symbols, options.size
    if kind == "auto":
        name, why = choose_symbols(texts)
        chosen.append(Choice(f"task.{side}.symbols", name, why))
        kind = name  # type: ignore[assignment]
    if kind in SUBWORDS and size is None:
        words = sum(text.count(" ") + 1 for text in texts)
        size = round(min(32000, max(500, 6000 * (words / 360_000) ** 0.35)) / 100) * 100
        chosen.append(Choice(f"task.{side}.size", size, f"{words:,} words"))
    return SideOptions(symbols=kind, size=size)


def _may_share(
    source: SideOptions, target: SideOptions, sources: list[str], targets: list[str]
) -> bool:
    """Whether one subword vocabulary would serve both sides."""
    if source.symbols != target.symbols or source.symbols not in SUBWORDS:
        return False
    left, right = (set("".join(texts)) for texts in (sources, targets))
    return len(left & right) >= 0.5 * len(left | right)
