"""Decoding of sequence-to-sequence models: search, constraints, forced decoding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.tensors.special import EOS, SPECIALS, UNK
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs.input import Input
from regard.search import Beam, TokenConstraints
from regard.search.callbacks import PartialHypothesis, StepCallback
from regard.search.forced_decoding import next_token_logprobs, score_targets
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.search import SearchRequest
from regard.tasks.banning import encode_bans
from regard.tasks.batches import plan
from regard.tasks.outputs import best_prediction, max_output_length
from regard.tasks.rows import EncodedRows
from regard.tasks.values import Constraints, Prediction


class SequenceDecoding:
    """Mixin of tasks that generate target sequences from sources."""

    step_abilities = frozenset(
        ("constraints", "alignment", "alternatives", "stream", "score pairs")
    )
    abilities = frozenset(("predict", "nbest")) | step_abilities
    exportable = uses_threads = True
    source: Input
    target: Tokenizer
    ratio: float

    def max_output_length(self, length: int, search: Any) -> int:
        """Return the maximum output length, EOS included, for a source of this length."""
        return max_output_length(self.ratio, length, search)

    def rows(self, sources: Sequence[Any]) -> EncodedRows:
        """Return the sources as token ids."""
        return EncodedRows(self.source.encode(sources))

    def search_request(self, rows: EncodedRows, part: Sequence[int], search: Any) -> SearchRequest:
        """Return the search request for one batch. part: indices of the sources in the batch."""
        indices = np.asarray(part)
        lengths = rows.lengths[indices].tolist()
        limits = [self.max_output_length(length, search) for length in lengths]
        return SearchRequest(rows.pad(indices), torch.tensor(limits))

    def encode_constraints(self, constraints: Constraints) -> TokenConstraints:
        """Return the constraints as token ids. Raise UserError if no output can meet them."""
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
        banned = encode_bans(self.target, constraints.ban)
        return replace(banned, prefix=tuple(encode(constraints.prefix)), require=require)

    def score_pairs(
        self, engine: Any, pairs: Sequence[Pair], rows: int
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Return the log probability, perplexity and tokens of each target, and its prediction.

        rows: pairs per batch.
        """
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
                found[i] = (_score_row(prediction), prediction)
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
        """Return the most probable next tokens after a prefix, each with a complete output.

        Each element is (token, probability, best prediction that continues with this token).
        constraints: the prefix, required and banned words. count: number of next tokens.
        """
        encoded = self.rows([source])
        common = self.encode_constraints(constraints)
        prefix = common.prefix
        source_row = encoded.pad([0]).to(engine.device)
        logp = next_token_logprobs(engine.stepper(), source_row, prefix)[0].clone()  # (V,)
        after_boundary = not prefix or prefix[-1] in common.boundary_tokens
        banned = [*common.banned, *(common.banned_after_boundary if after_boundary else ())]
        masked = {*NON_OUTPUT_IDS, *(phrase[0] for phrase in banned if len(phrase) == 1)}
        logp[[*masked]] = float("-inf")
        best = logp.topk(min(count, len(self.target) - len(masked)))
        tokens, probabilities = best.indices.tolist(), best.values.exp().tolist()
        forced = [replace(common, prefix=(*prefix, token)) for token in tokens]
        found: list[list[Hypothesis]] = []
        for part in plan([int(encoded.lengths[0])] * len(tokens), len(tokens)):
            request = self.search_request(encoded, [0] * len(part), search)
            request = replace(request, constraints=[forced[i] for i in part], on_step=on_step)
            found += engine.run(search, request)
        return [
            (
                self.target.name(token),
                p,
                self.make_prediction(source, encoded.row(0), one, search, 1),
            )
            for token, p, one in zip(tokens, probabilities, found, strict=True)
        ]

    def partial_prediction(self, source: Any) -> Callable[[PartialHypothesis], Prediction]:
        """Return a function that turns an unfinished output into a prediction."""

        def predict(partial: PartialHypothesis) -> Prediction:
            text, names = self.target.decode(partial.tokens), self.target.names_of(partial.tokens)
            return Prediction(text, None, tuple(partial.token_logprobs), names, value=text)

        return predict

    def make_prediction(
        self, source: Any, row: Any, found: Sequence[Hypothesis], search: Any, nbest: int
    ) -> Prediction:
        """Return the best hypothesis as a prediction, with all hypotheses as its n-best list."""
        unknown, folded = self.source.unknown(source, row), self.source.folded(source)
        return best_prediction(self.target, found, unknown, folded)


def _score_row(prediction: Prediction) -> dict[str, Any]:
    """Return log probability, perplexity and tokens of a target, EOS included."""
    total, tokens = math.fsum(prediction.token_logprobs), [*prediction.tokens, SPECIALS[EOS]]
    return {
        "log_probability": total,
        "perplexity": math.exp(min(-total / len(tokens), 700.0)),
        "tokens": tokens,
        "token_logprobs": list(prediction.token_logprobs),
    }
