"""Predictions of a transducer: by search, forced to given targets, and under constraints."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch

from regard.core.errors import UserError
from regard.data.corpus.ragged import Rows
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS, SPECIALS, UNK
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.input import Input
from regard.search import Beam, TokenConstraints
from regard.search.callbacks import PartialHypothesis, StepCallback
from regard.search.forced_decoding import next_token_logprobs, score_targets
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.search import SearchRequest
from regard.tasks.banning import bans
from regard.tasks.batches import plan
from regard.tasks.values import Constraints, Prediction


class SequenceDecoding:
    """What a task with two vocabularies can do with a model."""

    step_abilities = frozenset(
        ("constraints", "alignment", "alternatives", "stream", "score pairs")
    )
    abilities = frozenset(("predict", "nbest")) | step_abilities
    exportable = uses_threads = True
    source: Input
    target: Tokenizer
    ratio: float

    def max_output_length(self, length: int, search: Any) -> int:
        """The most tokens, EOS included, that a search gives to a source of this length."""
        most = math.ceil(self.ratio * length) + 10
        if search.max_length is not None:
            most = min(most, search.max_length + 1)  # 1: EOS
        return max(most, search.min_length + 1)

    def rows(self, sources: Sequence[Any]) -> Rows:
        """The sources as tokens, all at once."""
        return self.source.encode(sources)

    def search_request(self, rows: Rows, part: Sequence[int], search: Any) -> SearchRequest:
        """What a search is asked about these of the rows."""
        at = np.asarray(part)
        limits = [self.max_output_length(length, search) for length in rows.lengths[at].tolist()]
        return SearchRequest(rows.pad(at), torch.tensor(limits))

    def encode_constraints(self, constraints: Constraints) -> TokenConstraints:
        """What is asked of a prediction, as tokens."""
        encode = self.target.encode
        require = tuple(tuple(encode(word)) for word in constraints.require)
        for name, word, ids in (
            ("prefix", constraints.prefix, encode(constraints.prefix)),
            *(("require", *pair) for pair in zip(constraints.require, require, strict=True)),
        ):
            if UNK in ids:
                raise UserError(f"{name}: {word!r} contains tokens outside the target vocabulary")
            if word in constraints.ban:
                raise UserError(f"{name}: {word!r} is also banned")
        if not all((*require, *map(encode, constraints.ban))):
            raise UserError("require, ban: expected a word, found an empty text")
        banned = bans(self.target, constraints.ban)
        return replace(banned, prefix=tuple(encode(constraints.prefix)), require=require)

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Log probability, perplexity and tokens of each target, and it as if predicted."""
        encoded = self.rows([pair.source for pair in pairs])
        targets = self.target.encode_all([pair.target for pair in pairs])
        sides = zip(encoded.lengths.tolist(), map(len, targets), strict=True)
        scoring, size = Beam().scoring, len(self.target)
        found: dict[int, tuple[dict[str, Any], Prediction]] = {}
        for part in plan([max(both) for both in sides], rows):
            source = encoded.pad(np.asarray(part)).to(engine.device)
            scored = score_targets(
                engine.stepper(), source, [targets[i] for i in part], scoring, size
            )
            for i, one in zip(part, scored, strict=True):
                prediction = self.make_prediction(pairs[i].source, encoded.row(i), [one], None, 1)
                found[i] = (_statistics(prediction), prediction)
        return [found[i] for i in range(len(pairs))]

    def alternatives(
        self,
        engine: Any,
        source: str,
        constraints: Constraints,
        count: int,
        search: Any,
        on_step: StepCallback | None = None,
    ) -> list[tuple[str, float, Prediction]]:
        """How a prediction may continue after a prefix: token, probability, the best such one.

        The most probable token first. constraints: the prefix, required and banned words.
        """
        encoded = self.rows([source])
        wish = self.encode_constraints(constraints)
        begun = wish.prefix
        source_row = encoded.all().to(engine.device)
        logp = next_token_logprobs(engine.stepper(), source_row, begun)[0].clone()  # (V,)
        banned = [
            *wish.banned,
            *(wish.banned_after_boundary if not begun or begun[-1] in wish.boundary_tokens else ()),
        ]
        struck = {*NON_OUTPUT_IDS, *(phrase[0] for phrase in banned if len(phrase) == 1)}
        logp[[*struck]] = float("-inf")
        best = logp.topk(min(count, len(self.target) - len(struck)))
        tokens, chances = best.indices.tolist(), best.values.exp().tolist()
        wishes = [replace(wish, prefix=(*begun, token)) for token in tokens]
        found: list[list[Hypothesis]] = []
        for part in plan([int(encoded.lengths[0])] * len(tokens), len(tokens)):
            asked = self.search_request(encoded, [0] * len(part), search)
            own = [wishes[i] for i in part]
            found += engine.run(search, replace(asked, constraints=own, on_step=on_step))
        return [
            (
                self.target.name(token),
                p,
                self.make_prediction(source, encoded.row(0), one, search, 1),
            )
            for token, p, one in zip(tokens, chances, found, strict=True)
        ]

    def partial_prediction(self, source: Any) -> Callable[[PartialHypothesis], Prediction]:
        """What makes a prediction of an output that is not complete; each token is named once."""
        name = cache(self.target.name)

        def grown(so_far: PartialHypothesis) -> Prediction:
            text, names = self.target.decode(so_far.tokens), tuple(map(name, so_far.tokens))
            return Prediction(text, None, tuple(so_far.token_logprobs), names, value=text)

        return grown

    def make_prediction(
        self, source: Any, row: Any, found: Sequence[Hypothesis], search: Any, nbest: int
    ) -> Prediction:
        """The first hypothesis as text, with the others as alternatives."""
        texts = [
            Prediction(
                self.target.decode(h.tokens),
                h.score,
                h.token_logprobs,
                tuple(self.target.name(id) for id in h.tokens),
                truncated=h.truncated,
                value=self.target.decode(h.tokens),
            )
            for h in found
        ]
        unknown = self.source.unknown(source, row)
        return replace(texts[0], nbest=tuple(texts), unknown_tokens=unknown)


def _statistics(found: Prediction) -> dict[str, Any]:
    """How probable a target is, as a whole and token by token, EOS included."""
    total, tokens = math.fsum(found.token_logprobs), [*found.tokens, SPECIALS[EOS]]
    return {
        "log_probability": total,
        "perplexity": math.exp(min(-total / len(tokens), 700.0)),
        "tokens": tokens,
        "token_logprobs": list(found.token_logprobs),
    }
