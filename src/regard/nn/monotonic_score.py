"""Monotonic attention of a recurrent decoder: it reads the source from left to right.

The memory is the encoder output. Shapes: B sentences, k beams per sentence, R = k * B rows,
S source length, T target length, D width of the decoder.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import fold, unfold
from regard.data.tensors.tree import Tree
from regard.nn.additive_network import AdditiveNetwork
from regard.nn.attention_scores import ScoredContext, ScoreOptions
from regard.nn.dropout import normal_noise
from regard.nn.kernels.kernel import full_precision

FIRST_GAIN = 6.0  # so that the scores of a new model differ by more than the noise


class MonotonicScore(ScoredContext):
    """Soft monotonic attention (Raffel et al. 2017).

    Each token starts where the previous one stopped (the first token: at the first position) and
    moves to the right. It stops at position j with probability sigmoid(e_j), or at the last
    position. The weights are the probabilities of the stops, in training and in decoding: to round
    them to one stop would make outputs depend on rounding errors, and so on the padding.

    e_j = g v . tanh(W h + U m) / |v| + r, plus noise in training, so that the probabilities become
    0 or 1. chunk: number of positions up to the stop that are averaged, with weights by content
    (MoChA, Chiu and Raffel 2018).
    """

    def __init__(
        self, width: int, memory_width: int, chunk: int, offset: float, noise: float
    ) -> None:
        super().__init__()
        self.stop = AdditiveNetwork(width, memory_width)
        self.gain = nn.Parameter(torch.full((1,), FIRST_GAIN))
        self.offset = nn.Parameter(torch.full((1,), offset))
        self.content = AdditiveNetwork(width, memory_width) if chunk > 1 else None
        self.chunk, self.noise = chunk, noise

    def project(self, memory: Padded) -> Tensor:
        parts = [self.stop, *([self.content] if self.content is not None else [])]
        return torch.cat([part.project(memory) for part in parts], -1)  # (B, S, D or 2 * D)

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (B, T, S) to stop, without noise."""
        found = self.stop.score(h, keys[..., : h.shape[-1]]) / self.stop.weigh.weight.norm()
        return self.gain * found + self.offset

    def attend(self, h: Tensor, memory: Padded, keys: Tensor, past: Tree) -> tuple[Tensor, Tree]:
        """Return the weights (B, k*T, S) of states h (R, T, D), and the last stops (R, S)."""
        B = len(keys)
        queries = fold(h, B)
        scores = full_precision(unfold(self.score(queries, keys), h))  # (R, T, S)
        if self.training and self.noise:
            scores = scores + self.noise * normal_noise(scores)
        ends = _last(memory.mask).repeat_interleave(len(h) // B, 0).unsqueeze(1)  # (R, 1, S)
        if past is None:
            past = F.one_hot(ends.new_zeros(len(h), dtype=torch.long), keys.shape[1]).to(scores)
        stops = expected_stops(scores.sigmoid().masked_fill(ends, 1.0), past)
        weights = fold(stops, B)
        if self.content is not None:
            content = full_precision(self.content.score(queries, keys[..., h.shape[-1] :]))
            weights = chunk_weights(weights, content, self.chunk)
        return weights.to(memory.data.dtype), stops[:, -1]


def _last(mask: Tensor) -> Tensor:
    """Return a mask (B, S) that is True only at the last real position of each row."""
    return mask & ~F.pad(mask, (0, 1))[:, 1:]


def expected_stops(stop: Tensor, before: Tensor) -> Tensor:
    """Return the probability (R, T, S) that each token stops at each position.

    stop: (R, T, S), of a token that reads a position, to stop there. before: (R, S), of the token
    before the first one. With q_j the probability to read position j,

        a_tj = stop_tj q_tj,  q_tj = (1 - stop_t,j-1) q_t,j-1 + a_t-1,j

    (Raffel et al. 2017). Each q is computed by doubling: what comes from up to n
    positions before is added to what comes from the last n. There is no division, and all factors
    are probabilities, so that nothing overflows.
    """
    moves, passing = [], F.pad(1 - stop, (1, -1))  # (R, T, S): from j-1 to j
    step = 1
    while step < stop.shape[-1]:
        moves.append((step, passing[..., step:]))  # to j from j - step
        passing = F.pad(passing[..., step:] * passing[..., :-step], (step, 0))
        step *= 2
    found = []
    for t in range(stop.shape[1]):
        read = before
        for step, move in moves:
            read = read + F.pad(move[:, t] * read[:, :-step], (step, 0))
        before = stop[:, t] * read
        found.append(before)
    return torch.stack(found, 1)


def chunk_weights(stops: Tensor, scores: Tensor, size: int) -> Tensor:
    """Return the weights (..., S) of stops (..., S), each spread over a chunk that ends there.

    scores: (..., S); a softmax over the `size` positions of a chunk gives their weights.
    """
    chunks = F.pad(scores, (size - 1, 0), value=float("-inf")).unfold(-1, size, 1)
    spread = (stops.unsqueeze(-1) * chunks.softmax(-1)).unbind(-1)  # first to last of the chunk
    parts = [F.pad(part, (i, size - 1 - i)) for i, part in enumerate(spread)]
    return torch.stack(parts).sum(0)[..., size - 1 :]


class Monotonic(ScoreOptions):
    """Reads the source from left to right and never returns: for sounds and other long sources."""

    kind: Literal["monotonic"] = "monotonic"
    chunk: int = Field(
        1, gt=0, description="positions up to the stop that are averaged; 1: only the stop (MoChA)"
    )
    offset: float = Field(
        -1.0,
        allow_inf_nan=False,
        description="first value of the bias of the scores; the lower, the further it moves at "
        "first",
    )
    noise: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="standard deviation of the noise in training"
    )

    def build(self, width: int, memory_width: int) -> MonotonicScore:
        return MonotonicScore(width, memory_width, self.chunk, self.offset, self.noise)
