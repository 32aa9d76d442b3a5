"""Transduction, N to M: a sequence in, a sequence of its own length out."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from regard import metrics
from regard.data.batch import pad
from regard.data.cache import cached, make_key
from regard.data.check import Check, check, load_check
from regard.data.corpus import Corpus, PairCorpus, Side
from regard.data.large import Part, large_base, part_rows, split
from regard.data.mapped import MappedCorpus, lengths_of, map_corpus
from regard.data.read import Example, Pair, group
from regard.data.vocabulary import (
    EOS,
    UNK,
    Vocabulary,
)
from regard.files import write_json
from regard.models.generator import Generator, GeneratorOptions
from regard.search import Beam, Hypothesis
from regard.tasks.base import Facts, Prediction, Task, device_of
from regard.tasks.symbols import SUBWORDS
from regard.threads import in_threads


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
        # The pairs that were encoded last and what they became: a run asks for its training
        # pairs several times before it begins, and then for others.
        self._encoded: tuple[Sequence[Pair], PairCorpus] | None = None

    def build(self, options: GeneratorOptions) -> Generator:
        """A generator for these vocabularies."""
        return options.build(len(self.source), len(self.target), self.source is self.target)

    def corpus(self, pairs: Sequence[Pair]) -> PairCorpus | MappedCorpus:
        """The pairs as numbers, each side closed with EOS; of large files in a mapped cache."""
        large = large_base(pairs)
        if large is not None:
            return map_corpus(large, part_rows(pairs), self.source, self.target)
        base, rows = split(pairs)
        if self._encoded is None or self._encoded[0] is not base:
            sides = (("source", self.source), ("target", self.target))
            texts = [(vocabulary, [getattr(p, n) for p in base]) for n, vocabulary in sides]
            encoded = PairCorpus(*(Side.flat_of(*v.encode_flat(t, EOS)) for v, t in texts))
            self._encoded = (base, encoded)
        encoded = self._encoded[1]
        return encoded.take(rows) if isinstance(pairs, Part) else encoded

    def lengths(self, pairs: Sequence[Pair]) -> np.ndarray:
        """(N, 2): symbols of both sides of each pair."""
        large = large_base(pairs)
        if large is not None:
            return lengths_of(large, part_rows(pairs), self.source, self.target) - 1
        return self.corpus(pairs).lengths - 1

    def facts(self, corpus: Corpus) -> Facts:
        """What the choice of a model depends on."""
        words = self.target.kind in (*SUBWORDS, "word")
        symbols = int(corpus.lengths.sum())
        return Facts(len(corpus), symbols, len(self.target), words, inputs=len(self.source))

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

        def answer(part: list[int]) -> list[Prediction]:
            source = pad([rows[i] for i in part])
            source = source._replace(data=source.data.to(device), mask=source.mask.to(device))
            limits = torch.tensor([self.limit(len(rows[i])) for i in part], device=device)
            if search.max_length is not None:
                limits = limits.clamp(max=search.max_length + 1)  # 1: EOS
            found = search.run(model, source, limits, nbest)
            return [
                self._prediction(sources[i], rows[i], hypotheses)
                for i, hypotheses in zip(part, found, strict=True)
            ]

        parts = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
        threads = torch.get_num_threads() if device.type == "cpu" and len(parts) > 1 else 1
        found = in_threads(answer, parts, threads)
        flat = dict(zip(order, (one for part in found for one in part), strict=True))
        return [flat[i] for i in range(len(rows))]

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
        facts = (self.source, self.target, self.max_length)
        large = large_base(train)
        if large is None:
            return check(train, dev, *facts, self.lengths(train))
        rows = part_rows(train)
        key = make_key(
            *(large.key, b"" if rows is None else rows.tobytes()),
            *(self.source.content(), self.target.content(), self.max_length),
            [[pair.source, pair.target] for pair in dev],
        )
        _, found = cached(
            "checks", key, lambda _: check(train, dev, *facts, self.lengths(train)).as_dict()
        )
        return load_check(found)

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
