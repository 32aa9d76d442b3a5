"""Connectionist temporal classification (Graves et al. 2006).

Shapes: B batch size, F frames, T target length, V vocabulary.
"""

from dataclasses import replace
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.data.tensors.special import BLANK
from regard.objectives.objective import DONE, Context, Loss, Objective


class CTC(Objective):
    """-log p(target | source), summed over all ways to place its tokens in the frames.

    A frame is a token or a blank. Equal tokens in adjacent frames are one token; a blank separates
    repeated tokens. Targets that do not fit into their frames have no probability. They are
    skipped: training data has none (`unfit` of the decoder options), unless a sound is played
    faster for an update, and counts of dev data are printed.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"frames"})
    kind: Literal["ctc"] = "ctc"
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="weight of a uniform target distribution in each frame"
    )

    def count(self, batch: Batch) -> int:
        """Return the number of target tokens, EOS included, as in other losses of sequences."""
        assert batch.target is not None
        return int(batch.target.mask.sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch. The part `nll`, without smoothing, is for perplexity."""
        assert batch.target is not None
        frames = model(batch).frames
        scores = frames.data.float().log_softmax(-1)  # (B, F, V)
        each = ctc_nll(scores, frames.mask, batch.target)  # (B,)
        fits = each.isfinite()
        count = int((batch.target.mask.sum(1) * fits).sum())
        nll = torch.where(fits, each, 0.0).sum()
        loss = nll
        if self.label_smoothing:
            uniform = -scores.mean(-1).masked_fill(~(frames.mask & fits[:, None]), 0.0).sum()
            loss = (1 - self.label_smoothing) * nll + self.label_smoothing * uniform
        return Loss(loss, count, {"nll": nll.detach()})


def joint_loss(loss: Loss, output: Outputs, batch: Batch, weight: float) -> Loss:
    """Return (1 - weight) * loss + weight * CTC of the frames, with the part `ctc`.

    Targets that do not fit into their frames have no CTC loss.
    """
    assert output.frames is not None and batch.target is not None
    frames = output.frames
    each = ctc_nll(frames.data.float().log_softmax(-1), frames.mask, batch.target)  # (B,)
    nll = torch.where(each.isfinite(), each, 0.0).sum()
    total = (1 - weight) * loss.sum + weight * nll
    return replace(loss, sum=total, parts=loss.parts | {"ctc": nll.detach()})


def ctc_nll(scores: Tensor, mask: Tensor, target: Padded) -> Tensor:
    """Return -log p (B,) of targets (B, T) without EOS; inf if they do not fit.

    scores: log probabilities (B, F, V). mask: (B, F), False for padding.
    """
    lengths = target.mask.sum(1) - 1  # without EOS
    each: Tensor = F.ctc_loss(
        scores.transpose(0, 1),
        target.data,
        mask.sum(1),
        lengths,
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )
    needed = lengths + repeated(target)
    return each.masked_fill(needed > mask.sum(1), float("inf"))


def repeated(target: Padded) -> Tensor:
    """Return how many tokens of each target (B,) equal the token before them."""
    same = (target.data[:, 1:] == target.data[:, :-1]) & target.mask[:, 1:]
    return same.sum(1)
