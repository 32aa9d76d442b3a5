"""Scores of outputs: log probabilities made comparable between lengths.

B sentences, W beams, S source length.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.search.hypothesis import Normalize


@dataclass(frozen=True)
class Scoring:
    """score = log p / divisor(L) + coverage; L counts EOS.

    average: L^alpha.    gnmt: ((5 + L) / 6)^alpha (Wu et al. 2016, eq. 14).    none: 1.
    coverage: weight of sum over the source of log min(attention received, 1) (ibid.).
    """

    normalize: Normalize = "average"
    alpha: float = 0.75
    coverage: float = 0.0

    def divisor(self, length: Tensor) -> Tensor:
        """What log probabilities of outputs of these lengths are divided by."""
        length = length.double()
        if self.normalize == "none" or self.alpha == 0:
            return torch.ones_like(length)
        if self.normalize == "gnmt":
            return ((5 + length) / 6) ** self.alpha
        return length**self.alpha

    def score(self, total: Tensor, length: int, cover: Tensor | None) -> Tensor:
        """Scores of outputs of one length with log probabilities `total` (B, W).

        cover: (B, W, S), the attention that each place of the source received; 1 for padding.
        """
        score = total.double() / self.divisor(torch.tensor(length)).to(total.device)
        if cover is not None:
            score = score + self.coverage * cover.clamp(1e-6, 1.0).log().sum(-1)
        return score

    def hope(self, total: Tensor, limits: Tensor) -> Tensor:
        """The best score that live beams (B, W) can still come to: of no further loss at all.

        A log probability can only fall, and counts most at the greatest length (B,).
        """
        return total.double() / self.divisor(limits)[:, None]
