"""The outputs of models that write frames: vectors of real numbers, such as log-mel features.

B rows, T frames, U = ceil(T / r) steps of r frames, S source positions, F numbers per frame.
"""

from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from regard.data.tensors.padded import Padded


class FrameOutputs(NamedTuple):
    """The outputs of a model for a batch; outputs that a model does not have are None.

    frames: (B, T, F). encoded: (B, S), which positions of the encoder are not padding.
    stop: (B, U), the logit that a step is the last one, with the mask of the steps.
    alignment: (B, T, S), the log probability of each source position per frame. durations: (B, S),
    frames per source position. log_durations: (B, S), the predicted logarithms of these.
    """

    frames: Tensor
    encoded: Tensor
    stop: Padded | None = None
    alignment: Tensor | None = None
    durations: Tensor | None = None
    log_durations: Tensor | None = None


def grouped(target: Padded, size: int) -> Padded:
    """Return frames (B, T, F) as steps of `size` frames: (B, U, size * F) with mask (B, U)."""
    frames = F.pad(target.data, (0, 0, 0, -target.data.shape[1] % size))
    mask = F.pad(target.mask, (0, -target.mask.shape[1] % size))
    return Padded(frames.unflatten(1, (-1, size)).flatten(2), mask[:, ::size])
