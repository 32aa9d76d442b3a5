"""Scores of hypotheses: log probabilities, normalized by length.

B sentences, W beams per sentence, S source length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from regard.search.hypothesis import LengthNorm


@dataclass(frozen=True)
class Scoring:
    """A scoring function: log p / length_divisor(L) + coverage, where the length L counts EOS.

    With e = length_penalty, length_divisor(L) depends on length_norm: L^e (average),
    ((5 + L) / 6)^e (gnmt; Wu et al. 2016, eq. 14) or 1 (none). coverage is coverage_penalty times
    the sum over source positions of log min(received attention, 1) (ibid.).
    """

    length_norm: LengthNorm = "average"
    length_penalty: float = 0.75
    coverage_penalty: float = 0.0

    def length_divisor(self, length: Tensor) -> Tensor:
        """Return the divisor of log probabilities for these lengths."""
        length = length.double()
        if self.length_norm == "none" or self.length_penalty == 0:
            return torch.ones_like(length)
        if self.length_norm == "gnmt":
            return ((5 + length) / 6) ** self.length_penalty
        return length**self.length_penalty

    def score(self, total: Tensor, length: int, cover: Tensor | None) -> Tensor:
        """Return the scores of hypotheses of equal length with log probabilities `total` (B, W).

        cover: attention that each source position received (B, W, S), 1 for padding.
        """
        score = total.double() / self.length_divisor(torch.tensor(length)).to(total.device)
        if cover is not None:
            score = score + self.coverage_penalty * cover.clamp(1e-6, 1.0).log().sum(-1)
        return score

    def upper_bound(self, total: Tensor, limits: Tensor) -> Tensor:
        """Return an upper bound of the score that each live beam (B, W) can still reach.

        A log probability can only fall, and its divisor is largest at the maximum length (B,).
        """
        return total.double() / self.length_divisor(limits)[:, None]


class Scored(Protocol):
    """A hypothesis with its score and the log probability of each token, EOS included."""

    @property
    def score(self) -> float | None: ...

    @property
    def token_logprobs(self) -> tuple[float, ...]: ...


Output = TypeVar("Output", bound=Scored)


def rerank(nbest: Sequence[Sequence[Output]], found: Scoring, other: Scoring) -> list[Output]:
    """Return the best hypothesis of each n-best list by another length normalization or penalty.

    found: the scoring that ranked the lists. Its coverage term is part of each score and stays.
    """
    longest = max(len(one.token_logprobs) for hypotheses in nbest for one in hypotheses)
    lengths = torch.arange(longest + 1)
    before, after = (each.length_divisor(lengths).tolist() for each in (found, other))

    def score(one: Output) -> float:
        assert one.score is not None
        total, length = sum(one.token_logprobs), len(one.token_logprobs)
        return one.score - total / before[length] + total / after[length]

    return [max(hypotheses, key=score) for hypotheses in nbest]  # of equal scores, the first
