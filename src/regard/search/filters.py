"""Filters of the distribution that tokens are sampled from.

R rows, V vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.search.top import check_nan


class Filters(NamedTuple):
    """First the temperature, then the best `top_k`, then of these the fewest that reach `top_p`
    (nucleus sampling, Holtzman et al. 2020, 3.1), then those with at least `min_p` times the
    highest probability (Nguyen et al. 2025). At least one stays; temperature 0: only the best.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None


def filter_logits(logits: Tensor, filters: Filters) -> Tensor:
    """Return the log probabilities (R, V) of the remaining tokens, -inf for the others."""
    temperature, top_k, top_p, min_p = filters
    if temperature == 0:
        top_k, temperature = 1, 1.0
    scores = (logits - logits.amax(-1, keepdim=True)) / temperature
    if top_k:
        best = scores.topk(min(top_k, scores.shape[-1]))
        scores = torch.full_like(scores, float("-inf")).scatter(-1, best.indices, best.values)
    if top_p is not None and top_p < 1:
        ordered, indices = scores.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = F.pad(ordered.cumsum(-1)[..., :-1], (1, 0))  # (R, V) probability of better ones
        dropped = before >= top_p
        dropped[..., 0] = False
        scores = scores.masked_fill(dropped.gather(-1, indices.argsort(-1)), float("-inf"))
    if min_p:
        lowest = scores.amax(-1, keepdim=True) + torch.tensor(min_p).log()
        scores = scores.masked_fill(scores < lowest, float("-inf"))
    return scores.log_softmax(-1)


def sample_tokens(logprobs: Tensor, uniform: Tensor) -> Tensor:
    """Return the tokens (R,) at which the cumulative probability first exceeds `uniform` (R,)."""
    sums = logprobs.double().exp().cumsum(-1)  # (R, V)
    check_nan(sums[:, -1])
    sums = sums / sums[:, -1:]
    return torch.searchsorted(sums, uniform[:, None].contiguous(), right=True).squeeze(1)
