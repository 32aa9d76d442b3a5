"""Guided attention: a penalty of attention to the source that is far from the diagonal.

Shapes: B batch size, T target length, S positions of the encoder.
"""

from dataclasses import replace

import torch
from torch import Tensor

from regard.data.tensors.padded import Batch, Outputs
from regard.objectives.objective import Loss


def guided_loss(
    loss: Loss, weights: Tensor, output: Outputs, batch: Batch, weight: float, width: float
) -> Loss:
    """Return loss + weight * penalty, with the part `guided_attention`, the penalty.

    weights: attention (B, T, S) of the real target tokens, each a distribution over S.
    """
    assert output.encoded is not None and batch.target is not None
    apart = off_diagonal(batch.target.mask, output.encoded, width)
    each = (weights.float() * apart).sum(-1)  # (B, T)
    penalty = each.masked_fill(~batch.target.mask, 0.0).sum()
    parts = loss.parts | {"guided_attention": penalty.detach()}
    return replace(loss, sum=loss.sum + weight * penalty, parts=parts)


def off_diagonal(target: Tensor, source: Tensor, width: float) -> Tensor:
    """Return the penalties (B, T, S) 1 - exp(-(s / S - t / T)^2 / (2 width^2)).

    (Tachibana et al. 2018, 4.1.) target, source: masks (B, T) and (B, S). The lengths of a row are
    without padding.
    """
    t, s = (_fractions(mask) for mask in (target, source))
    return 1 - torch.exp(-((s[:, None] - t[:, :, None]) ** 2) / (2 * width**2))


def _fractions(mask: Tensor) -> Tensor:
    """Return each position (B, T) divided by the length of its row."""
    steps = torch.arange(mask.shape[1], device=mask.device)
    return steps / mask.sum(1, keepdim=True)
