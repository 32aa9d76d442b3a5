"""Monotonic alignments of frames to the positions of a source.

An alignment gives each frame one position. The first frame has the first position, the last frame
the last one, and from frame to frame the position stays or becomes the next one. So each position
has at least one frame. B rows, T frames, S positions.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

NEVER = -1e4  # log probability of what no alignment has; finite, for gradients


def forward_sum(scores: Tensor, frames: Tensor, positions: Tensor) -> Tensor:
    """Return -log (B,) of the sum of the probabilities of all alignments; inf if there are none.

    (Badlani et al. 2022, 2.1.) It is CTC without blanks, with the positions as labels.
    scores: (B, T, S), log probabilities of the positions per frame, which sum to one over S.
    frames, positions: numbers (B,) of real frames and positions.
    """
    rows, _, S = scores.shape
    blank = F.pad(scores, (1, 0), value=NEVER).transpose(0, 1)  # (T, B, 1 + S)
    labels = torch.arange(1, S + 1, device=scores.device).expand(rows, -1)
    each: Tensor = F.ctc_loss(
        blank, labels, frames, positions, reduction="none", zero_infinity=True
    )
    return each.masked_fill(positions > frames, float("inf"))


def best_durations(scores: Tensor, frames: Tensor, positions: Tensor) -> Tensor:
    """Return the frames per position (B, S) of the most probable alignment, 0 for padding.

    By dynamic programming (Kim et al. 2020, 3.2). Arguments as for `forward_sum`. Rows with fewer
    frames than positions have no alignment: all their durations are 0.
    """
    p = scores.detach().double().cpu().numpy()
    count, size = frames.cpu().numpy(), positions.cpu().numpy()
    B, T, S = p.shape
    best = np.full((B, S), -np.inf)
    best[:, 0] = p[:, 0, 0]
    moved = np.zeros((B, T, S), bool)  # whether the frame before has the position before
    for t in range(1, T):
        before = np.concatenate([np.full((B, 1), -np.inf), best[:, :-1]], 1)
        moved[:, t] = before > best
        found = np.maximum(best, before) + p[:, t]
        best = np.where((t < count)[:, None], found, best)
    durations, rows, at = np.zeros((B, S), np.int64), np.arange(B), size - 1
    for t in range(T - 1, -1, -1):
        real = t < count
        durations[rows[real], at[real]] += 1
        at = np.maximum(np.where(real & moved[rows, t, at], at - 1, at), 0)
    durations[size > count] = 0
    return torch.from_numpy(durations).to(scores.device)


def expanded(durations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the position (B, T) of each frame, the mask (B, T), and the fraction (B, T) of the
    duration that is over in the middle of the frame. durations: (B, S).
    """
    ends = durations.cumsum(1)  # (B, S)
    total = ends[:, -1:]
    steps = torch.arange(int(total.max()), device=ends.device)
    mask = steps < total
    at = torch.searchsorted(ends, steps.expand(len(ends), -1).contiguous(), right=True)
    at = at.clamp(max=durations.shape[1] - 1)
    long = durations.gather(1, at).clamp(min=1)
    fraction = (steps - (ends.gather(1, at) - long) + 0.5) / long
    return at, mask, fraction
