"""A linear-chain conditional random field (Lafferty et al. 2001), as functions on tensors.

score(y | x) = start(y1) + sum_t emission_t(y_t) + sum_t transition(y_t-1, y_t) + end(y_n)
p(y | x) = exp(score(y | x)) / Z, with Z the sum of exp(score) over all label sequences of length n.

Shapes: B batch size, S length, C labels. Arguments of all functions:

- `emissions` (B, S, C): the score of each label at each position.
- `transitions` (C + 1, C + 1): [i, j] is the score of label j after label i. The last row is the
  start, the last column is the end, and [C, C] is unused.
- `mask` (B, S): True for real tokens, which are the first one or more positions of each row.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

FLOAT32_SPAN, FLOAT64_SPAN = 80, 600  # maximum spans: exp(-span) is a normal number


def path_score(emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Return the scores (B,) of these labels (B, S)."""
    C = emissions.shape[-1]
    labels = torch.where(mask, labels, C)  # what follows the last label is the end
    steps = F.pad(labels, (1, 1), value=C)  # (B, S + 2)
    moves = steps[:, :-1] * (C + 1) + steps[:, 1:]  # (B, S + 1)
    here = emissions.gather(2, labels.clamp(max=C - 1)[..., None]).squeeze(2)  # (B, S)
    scores = transitions.flatten().index_select(0, moves.flatten()).unflatten(0, moves.shape)
    real = torch.cat([mask.new_ones(len(mask), 1), mask], 1)  # (B, S + 1)
    return here.masked_fill(~mask, 0).sum(1) + scores.masked_fill(~real, 0).sum(1)


def partition(emissions: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return log Z (B,): the log of the sum of exp(score) over all label sequences.

    Outside log space the forward algorithm is a chain of matrix products, which is many times
    faster. The logs of all values are at most `span` below the largest. So nothing underflows if
    exp(-span) is a normal floating-point number.
    """
    emissions = emissions.masked_fill(~mask[..., None], 0)
    with torch.no_grad():
        spread = emissions.amax(-1) - emissions.amin(-1)  # (B, S)
        low, high = transitions.flatten()[:-1].aminmax()
        span = float(spread.max() + 2 * (high - low))
    if span < FLOAT32_SPAN or (span < FLOAT64_SPAN and emissions.dtype == torch.float64):
        return Partition.apply(emissions, transitions, mask)
    if span < FLOAT64_SPAN:
        return Partition.apply(emissions.double(), transitions.double(), mask).to(emissions.dtype)
    return partition_in_logs(emissions, transitions, mask)


def partition_in_logs(emissions: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return log Z (B,) by the textbook forward algorithm in log space, for any scores."""
    C = emissions.shape[-1]
    total = transitions[C, :C] + emissions[:, 0]  # (B, C)
    for t in range(1, emissions.shape[1]):
        paths = total[:, :, None] + transitions[:C, :C]  # (B, C, C)
        grown = paths.logsumexp(1) + emissions[:, t]
        total = torch.where(mask[:, t, None], grown, total)
    return (total + transitions[:C, C]).logsumexp(1)


class Partition(torch.autograd.Function):
    """log Z by the forward algorithm, its gradient by the backward algorithm (Rabiner 1989, V.A).

    The gradient of log Z is the probability of each label (emissions) and the expected number of
    each pair of labels (transitions). So training needs two loops over S without an autograd graph.
    """

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
        """Return log Z (B,) for finite scores, with emissions 0 at padding."""
        C, lengths = emissions.shape[-1], mask.sum(1)
        best = transitions.flatten()[:-1].max()
        moves = (transitions - best).exp()  # (C + 1, C + 1), all <= 1 but the last
        high = emissions.amax(-1, keepdim=True)  # (B, S, 1)
        weights = (emissions - high).exp_().transpose(0, 1).contiguous()  # (S, B, C)

        ahead = torch.empty_like(weights)  # forward probabilities, each (B, C) with sum 1
        sums = weights.new_empty(*weights.shape[:2], 1)  # (S, B, 1)
        inner, current = moves[:C, :C].contiguous(), moves[C, :C].expand(weights.shape[1:])
        for t in range(len(weights)):
            grown = (current @ inner if t > 0 else current) * weights[t]  # (B, C)
            torch.sum(grown, 1, keepdim=True, out=sums[t])
            current = torch.div(grown, sums[t], out=ahead[t])

        last = ahead[lengths - 1, torch.arange(len(mask), device=mask.device)]  # (B, C)
        end = last @ moves[:C, C]  # (B,)
        logs = sums.squeeze(2).t().log() + high.squeeze(2)  # (B, S)
        ctx.save_for_backward(weights, ahead, sums, moves, mask, end)
        return logs.masked_fill(~mask, 0).sum(1) + end.log() + best * (lengths + 1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients: probabilities of labels and label pairs, times grad (B,)."""
        weights, ahead, sums, moves, mask, end = ctx.saved_tensors
        C, real = weights.shape[-1], mask.t()[..., None]  # (S, B, 1)
        scaled = weights * (real / sums)  # (S, B, C), 0 at padding
        final = real & ~F.pad(real, (0, 0, 0, 0, 0, 1))[1:]  # (S, B, 1) the last real position
        behind = final * (moves[:C, C] / end[:, None])  # (S, B, C) backward probabilities
        back, arriving = moves[:C, :C].t().contiguous(), torch.zeros_like(weights)
        for t in range(len(weights) - 1, 0, -1):
            torch.mul(scaled[t], behind[t], out=arriving[t])
            behind[t - 1].addmm_(arriving[t], back)

        labels = ahead * behind * grad[:, None]  # (S, B, C), 0 at padding
        before = (ahead[:-1] * grad[:, None]).flatten(0, 1)  # ((S - 1) * B, C)
        pairs = torch.zeros_like(moves)
        pairs[:C, :C] = moves[:C, :C] * (before.t() @ arriving[1:].flatten(0, 1))
        pairs[C, :C] = labels[0].sum(0)
        pairs[:C, C] = (labels * final).sum((0, 1))
        return labels.transpose(0, 1), pairs, None


def nll(emissions: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Return -log p (B,) of these labels (B, S)."""
    score = path_score(emissions, transitions, labels, mask)
    return partition(emissions, transitions, mask) - score


def marginals(emissions: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return the probability (B, S, C) of each label per position; 0 at padding, no gradient."""
    with torch.inference_mode(False), torch.enable_grad():
        scores = emissions.detach().clone().requires_grad_()
        total = partition(scores, transitions.detach().clone(), mask.clone()).sum()
        return torch.autograd.grad(total, scores)[0]


@torch.no_grad()
def viterbi(emissions: Tensor, transitions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best labels (B, S), 0 at padding, and their score (B,) (Viterbi 1967)."""
    C = emissions.shape[-1]
    inner = transitions[:C, :C]
    totals = [transitions[C, :C] + emissions[:, 0]]  # per position: (B, C), best path to each label
    for t in range(1, emissions.shape[1]):
        grown = (totals[-1][:, :, None] + inner).amax(1) + emissions[:, t]  # (B, C)
        totals.append(torch.where(mask[:, t, None], grown, totals[-1]))

    score, label = (totals[-1] + transitions[:C, C]).max(1)  # (B,)
    labels = [label]
    for t in range(emissions.shape[1] - 1, 0, -1):
        origin = (totals[t - 1] + inner.t()[label]).argmax(1)  # (B,)
        label = torch.where(mask[:, t], origin, label)
        labels.append(label)
    return torch.stack(labels[::-1], 1).masked_fill(~mask, 0), score
