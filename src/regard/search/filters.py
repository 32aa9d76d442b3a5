"""Sampling from a filtered distribution: temperature, top-k, top-p and min-p.

R rows (one distribution each), V vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.search.top import check_nan


class Filters(NamedTuple):
    """Filters of a distribution, applied in this order. At least one token remains.

    temperature: divides the logits. 0 keeps only the most probable token.
    top_k: keeps the k most probable tokens.
    top_p: keeps the fewest tokens with total probability top_p (nucleus sampling, Holtzman et al.
    2020, 3.1).
    min_p: keeps tokens with at least min_p times the highest probability (Nguyen et al. 2025).
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None


def filter_logits(logits: Tensor, filters: Filters) -> Tensor:
    """Return the renormalized log probabilities (R, V), -inf for tokens that are filtered out."""
    temperature, top_k, top_p, min_p = filters
    if temperature == 0:
        top_k, temperature = 1, 1.0
    scores = (logits - logits.amax(-1, keepdim=True)) / temperature
    if top_k:
        best = scores.topk(min(top_k, scores.shape[-1]))
        scores = torch.full_like(scores, float("-inf")).scatter(-1, best.indices, best.values)
    if top_p is not None and top_p < 1:
        ordered, indices = scores.double().softmax(-1).sort(dim=-1, descending=True, stable=True)
        before = F.pad(ordered.cumsum(-1)[..., :-1], (1, 0))  # (R, V) sum over better tokens
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
