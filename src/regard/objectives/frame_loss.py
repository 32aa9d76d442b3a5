"""The loss of frames: distances of features, and what decides the length of the sound.

Shapes: B rows, T frames, U steps, S source positions, F numbers per frame.
"""

import contextlib
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.models.frame_outputs import FrameOutputs
from regard.nn.alignment import forward_sum
from regard.nn.capture_hooks import recording
from regard.objectives.guided_attention import off_diagonal
from regard.objectives.objective import DONE, Context, Loss, Objective

GUIDED_WIDTH = 0.2  # distance from the diagonal, in fractions of the lengths


class FrameLoss(Objective):
    """|e| + e^2 of standardized features, averaged over their bands, and losses of the length.

    A decoder that writes step by step also learns to stop, and to attend near the diagonal
    (Tachibana et al. 2018). One with durations also learns the alignment (Badlani et al. 2022) and
    to predict the logarithms of the durations (Ren et al. 2019).
    """

    takes: ClassVar[frozenset[str]] = frozenset({"frame_steps", "spectrogram"})
    kind: Literal["frames"] = "frames"
    stop_weight: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="weight of the loss of stopping"
    )
    stop_positive_weight: float = Field(
        5.0,
        gt=0,
        allow_inf_nan=False,
        description="weight of the last step of each sound, of which there is only one",
    )
    guided_attention: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="weight of the penalty of attention that is far from the diagonal",
    )
    alignment_weight: float = Field(
        0.3,
        ge=0,
        allow_inf_nan=False,
        description="weight of the loss of the alignment, from which durations are read",
    )
    duration_weight: float = Field(
        0.3, ge=0, allow_inf_nan=False, description="weight of the loss of the predicted durations"
    )

    def count(self, batch: Batch) -> int:
        """Return the number of frames."""
        assert batch.target is not None
        return int(batch.target.mask.sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch, with its parts by name."""
        assert batch.target is not None
        guided = bool(self.guided_attention)
        with recording() if guided else contextlib.nullcontext() as captured:
            output: FrameOutputs = model(batch)
        terms = {"frames": (1.0, frame_distance(output.frames, batch.target))}
        if output.stop is not None:
            terms["stop"] = self.stop_weight, self.stop_loss(output.stop)
            if captured is not None and captured.cross:
                found = guided_penalty(captured.alignment(), output.stop.mask, output.encoded)
                terms["guided_attention"] = self.guided_attention, found
        if output.alignment is not None:
            terms["alignment"] = self.alignment_weight, alignment_loss(output, batch.target)
            terms["durations"] = self.duration_weight, duration_loss(output)
        total = torch.stack([weight * value for weight, value in terms.values()]).sum()
        parts = {name: value.detach() for name, (_, value) in terms.items()}
        return Loss(total, self.count(batch), parts)

    def stop_loss(self, stop: Padded) -> Tensor:
        """Return the binary cross entropy of stopping at the last of the real steps (B, U)."""
        last = stop.mask & ~F.pad(stop.mask[:, 1:], (0, 1))
        each = F.binary_cross_entropy_with_logits(
            stop.data.float(),
            last.float(),
            pos_weight=stop.data.new_tensor(self.stop_positive_weight).float(),
            reduction="none",
        )
        return each.masked_fill(~stop.mask, 0.0).sum()


def frame_distance(frames: Tensor, target: Padded) -> Tensor:
    """Return the sum over real frames of the mean of |e| + e^2 over the bands."""
    error = frames.float() - target.data
    each = (error.abs() + error.square()).mean(-1)  # (B, T)
    return each.masked_fill(~target.mask, 0.0).sum()


def guided_penalty(weights: Tensor, steps: Tensor, source: Tensor) -> Tensor:
    """Return the sum of the penalties of attention (B, U, S). steps, source: masks."""
    apart = off_diagonal(steps, source, GUIDED_WIDTH)
    each = (weights.float() * apart).sum(-1)  # (B, U)
    return each.masked_fill(~steps, 0.0).sum()


def alignment_loss(output: FrameOutputs, target: Padded) -> Tensor:
    """Return -log of the probability of all alignments, summed over the rows that have any."""
    assert output.alignment is not None and output.durations is not None
    sizes = target.mask.sum(1), output.encoded.sum(1)
    each = forward_sum(output.alignment.float(), *sizes)
    return torch.where(each.isfinite(), each, 0.0).sum()


def duration_loss(output: FrameOutputs) -> Tensor:
    """Return the sum over source positions of the squared errors of log durations."""
    assert output.durations is not None and output.log_durations is not None
    real = output.durations > 0  # rows without an alignment have no durations
    error = output.log_durations.float() - output.durations.clamp(min=1).log()
    return error.square().masked_fill(~real, 0.0).sum()
