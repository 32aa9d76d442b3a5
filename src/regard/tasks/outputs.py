"""Length limits and predictions of a search. This module does not import torch."""

import math
from collections.abc import Sequence
from typing import Any

from regard.data.tokenizers.tokenizer import Tokenizer
from regard.search.hypothesis import Hypothesis
from regard.tasks.values import Prediction


def max_output_length(ratio: float, length: int, search: Any) -> int:
    """Return the maximum output length, EOS included, for a source of this length.

    ratio: maximum number of output tokens per source token.
    """
    limit = math.ceil(ratio * length) + 10
    if (most := getattr(search, "max_length", None)) is not None:
        limit = min(limit, most + 1)  # 1: EOS
    return max(limit, getattr(search, "min_length", 0) + 1)


def best_prediction(
    target: Tokenizer,
    found: Sequence[Hypothesis],
    unknown: tuple[str, ...] = (),
    folded: tuple[str, ...] = (),
) -> Prediction:
    """Return the best hypothesis as a prediction, with all hypotheses as its n-best list.

    unknown, folded: the unknown tokens and the folded characters of the source.
    """
    nbest = tuple(_prediction(target, one, target.decode(one.tokens)) for one in found)
    best = nbest[0]
    return Prediction(
        *(best.text, best.score, best.token_logprobs, best.tokens),
        nbest=nbest,
        unknown_tokens=unknown,
        folded=folded,
        truncated=best.truncated,
        value=best.value,
    )


def _prediction(target: Tokenizer, one: Hypothesis, text: str) -> Prediction:
    names = target.names_of(one.tokens)
    return Prediction(
        text, one.score, one.token_logprobs, names, truncated=one.truncated, value=text
    )
