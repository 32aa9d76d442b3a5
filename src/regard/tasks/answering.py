"""Answers of a transducer: by search, by force, and with wishes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.corpus.ragged import Rows
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import UNK
from regard.data.vocabulary.vocabulary import Vocabulary
from regard.inference.engine import Engine
from regard.inference.torch_engine import TorchEngine
from regard.inputs.input import Input
from regard.search import Beam, Hypothesis, Sample, TokenConstraints
from regard.search.callbacks import Begun, Unwanted, followed, placed
from regard.search.constrained import Unmet
from regard.search.force import align as attention
from regard.search.force import force, next_symbols
from regard.search.hypothesis import NEVER
from regard.tasks.banning import bans
from regard.tasks.batches import ALL, TOKENS, Work, batches
from regard.tasks.values import Prediction, Request

Found = tuple[Padded, list[list[Hypothesis]], Engine]  # sources, their outputs, by whom


class Answering:
    """What a task with two vocabularies can do with a model or an engine."""

    source: Input
    target: Vocabulary
    ratio: float

    def limit(self, length: int) -> int:
        """The most symbols, EOS included, that a source of this length may become."""
        return math.ceil(self.ratio * length) + 10

    def predict(
        self,
        model: nn.Module | Engine,
        sources: Sequence[str],
        search: Beam | Sample,
        nbest: int = 1,
        batch_size: int = 64,
        work: Work = ALL,
        requests: Sequence[Request] | None = None,
        align: bool = False,
    ) -> list[Prediction]:
        """The best output of each source; sorted by length inside, in order outside."""
        rows = self.source.encode(sources)
        wishes = None if requests is None else [self.wish(request) for request in requests]

        def find(runner: Engine, part: list[int]) -> Found:
            wished = None if wishes is None else [wishes[i] for i in part]
            try:
                return self._found(runner, rows, part, search, nbest, wished)
            except Unmet as error:
                raise Unmet(part[error.row]) from error

        runner = as_engine(model)
        size = min(batch_size, runner.share(len(rows)))
        parts = batches(rows.lengths.tolist(), size, work.tokens)
        engine = runner.suited(parts, lambda engine, part: find(engine, part)[1])
        engine.check(int(rows.lengths.max(initial=0)))

        def made(found: Mapping[int, Sequence[Hypothesis]]) -> list[Prediction]:
            return [self._prediction(sources[i], rows.row(i), one) for i, one in found.items()]

        def answer(part: list[int]) -> list[Prediction]:
            try:
                with followed(placed(work.follower, part)):
                    source, found, own = find(engine, part)
            except Unwanted as error:
                there = {part[row]: one for row, one in error.settled.items() if not align}
                work.answered([*there], made(there))
                raise
            answers = made(dict(zip(part, found, strict=True)))
            answers = self._aligned(own, source, found, answers) if align else answers
            work.answered(part, answers)
            return answers

        flat: dict[int, Prediction] = {}
        for part, found in zip(parts, engine.spread(answer, parts), strict=True):
            flat.update(zip(part, found, strict=True))
            work.done(len(part))
        return [flat[i] for i in range(len(rows))]

    def _found(
        self,
        runner: Engine,
        rows: Rows,
        part: list[int],
        search: Beam | Sample,
        nbest: int,
        wishes: list[TokenConstraints] | None,
    ) -> Found:
        """The outputs of these rows, all at once."""
        lengths = rows.lengths[part].tolist()
        engine = runner.fitting(max(lengths), self.longest(max(lengths), search))
        source = rows.pad(np.asarray(part)).to(engine.device)
        limits = self.limits(lengths, search, engine)
        return source, engine.search(search, source, limits, nbest, wishes), engine

    def longest(self, length: int, search: Beam | Sample) -> int:
        """The most symbols, EOS included, that a search gives to a source of this length."""
        most = self.limit(length)
        if search.max_length is not None:
            most = min(most, search.max_length + 1)  # 1: EOS
        return max(most, search.min_length + 1)

    def limits(self, lengths: list[int], search: Beam | Sample, engine: Engine) -> Tensor:
        """(B,) the most symbols, EOS included, for sources of these lengths, by an engine."""
        wanted = [self.longest(length, search) for length in lengths]
        limits = torch.tensor(wanted, device=engine.device)
        most = engine.target_places  # an answer that ends there is marked as cut
        return limits if most is None else limits.clamp(max=most)

    def wish(self, request: Request) -> TokenConstraints:
        """What is asked for, as symbols."""
        encode = self.target.encode
        must = tuple(tuple(encode(word)) for word in request.must)
        for name, word, ids in (
            ("prefix", request.prefix, encode(request.prefix)),
            *(("must", *pair) for pair in zip(request.must, must, strict=True)),
        ):
            if UNK in ids:
                raise UserError(f"{name}: {word!r} has symbols that no answer can have")
            if word in request.ban:
                raise UserError(f"{name}: {word!r} is banned as well")
        if not all((*must, *map(encode, request.ban))):
            raise UserError("must, ban: a word expected, an empty text given")
        banned = bans(self.target, request.ban)
        return replace(banned, prefix=tuple(encode(request.prefix)), must=must)

    def _aligned(
        self,
        engine: Engine,
        source: Padded,
        found: list[list[Hypothesis]],
        answers: list[Prediction],
    ) -> list[Prediction]:
        """The answers with the attention of their symbols to their sources."""
        targets = [list(hypotheses[0].symbols) for hypotheses in found]
        weights = attention(engine.stepper(), source, targets)
        return [
            replace(answer, alignment=tuple(tuple(row) for row in one.tolist()))
            for answer, one in zip(answers, weights, strict=True)
        ]

    def forced(
        self, model: nn.Module | Engine, pairs: Sequence[Pair], search: Beam, batch_size: int = 64
    ) -> list[Prediction]:
        """The targets of the pairs as if they had been predicted, with their scores."""
        engine = as_engine(model)
        rows = self.source.encode([pair.source for pair in pairs])
        targets = self.target.encode_all([pair.target for pair in pairs])
        sides = zip(rows.lengths.tolist(), map(len, targets), strict=True)
        lengths = [max(both) for both in sides]
        found: dict[int, Prediction] = {}
        for part in batches(lengths, batch_size, TOKENS):
            source = rows.pad(np.asarray(part)).to(engine.device)
            wanted, size = [targets[i] for i in part], len(self.target)
            scored = force(engine.stepper(), source, wanted, search.scoring, size)
            for i, hypothesis in zip(part, scored, strict=True):
                found[i] = self._prediction(pairs[i].source, rows.row(i), [hypothesis])
        return [found[i] for i in range(len(rows))]

    def alternatives(
        self, model: nn.Module | Engine, source: str, request: Request, count: int, search: Beam
    ) -> list[tuple[str, float, Prediction]]:
        """How an answer may go on after a beginning: symbol, probability, the best such answer.

        The most probable symbol first. request: the beginning, and words that answers must have
        or not have.
        """
        engine = as_engine(model)
        rows = self.source.encode([source])
        length = int(rows.lengths[0])
        wish = self.wish(request)
        begun = wish.prefix
        source_row = rows.all().to(engine.device)
        logp = next_symbols(engine.stepper(), source_row, begun)[0].clone()  # (V,)
        banned = [*wish.banned, *(wish.glued if not begun or begun[-1] in wish.ends else ())]
        struck = {*NEVER, *(phrase[0] for phrase in banned if len(phrase) == 1)}
        logp[[*struck]] = float("-inf")
        best = logp.topk(min(count, len(self.target) - len(struck)))
        symbols, chances = best.indices.tolist(), best.values.exp().tolist()
        wishes = [replace(wish, prefix=(*begun, symbol)) for symbol in symbols]
        found: list[list[Hypothesis]] = []
        for part in batches([length] * len(symbols), len(symbols), TOKENS):
            copies = rows.pad(np.zeros(len(part), np.int64)).to(engine.device)
            limits = self.limits([length] * len(part), search, engine)
            found += engine.search(search, copies, limits, 1, [wishes[i] for i in part])
        return [
            (self.target.name(symbol), p, self._prediction(source, rows.row(0), hypotheses))
            for symbol, p, hypotheses in zip(symbols, chances, found, strict=True)
        ]

    def growing(self, source: str) -> Callable[[Begun], Prediction]:
        """What makes an answer of an output that is not whole yet; each symbol is named once."""
        name = cache(self.target.name)

        def grown(so_far: Begun) -> Prediction:
            text, names = self.target.decode(so_far.symbols), tuple(map(name, so_far.symbols))
            return Prediction(text, None, tuple(so_far.symbol_scores), names, value=text)

        return grown

    def _prediction(
        self, source: Any, row: np.ndarray, hypotheses: Sequence[Hypothesis]
    ) -> Prediction:
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
        unknown = self.source.unknown(source, row)
        return replace(texts[0], alternatives=tuple(texts), unknown=unknown)


def as_engine(model: nn.Module | Engine) -> Engine:
    """The engine that runs a model."""
    return model if isinstance(model, Engine) else TorchEngine(model)
