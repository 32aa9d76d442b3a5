"""Scores of outputs: log probabilities, normalized by length.

B sentences, W beams, S source length.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.hypothesis import LengthNorm


@dataclass(frozen=True)
class Scoring:
    """score = log p / length_divisor(L) + coverage; L counts EOS.

    With p = length_penalty, the divisor is L^p (average), ((5 + L) / 6)^p (gnmt; Wu et al. 2016,
    eq. 14) or 1 (none). coverage: coverage_penalty times the sum over source positions of
    log min(received attention, 1) (ibid.).
    """

    length_norm: LengthNorm = "average"
    length_penalty: float = 0.75
    coverage_penalty: float = 0.0

    def length_divisor(self, length: Tensor) -> Tensor:
        """Return the divisor of the log probabilities of outputs with these lengths."""
        length = length.double()
        if self.length_norm == "none" or self.length_penalty == 0:
            return torch.ones_like(length)
        if self.length_norm == "gnmt":
            return ((5 + length) / 6) ** self.length_penalty
        return length**self.length_penalty

    def score(self, total: Tensor, length: int, cover: Tensor | None) -> Tensor:
        """Return the scores of outputs of one length with log probabilities `total` (B, W).

        cover: (B, W, S), the attention that each source position received; 1 for padding.
        """
        score = total.double() / self.length_divisor(torch.tensor(length)).to(total.device)
        if cover is not None:
            score = score + self.coverage_penalty * cover.clamp(1e-6, 1.0).log().sum(-1)
        return score

    def upper_bound(self, total: Tensor, limits: Tensor) -> Tensor:
        """Return the best score that live beams (B, W) can still reach.

        A log probability can only fall, and is divided by most at the maximum length (B,).
        """
        return total.double() / self.length_divisor(limits)[:, None]
