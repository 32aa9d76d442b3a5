"""Decoding of frames: step by step, or all at once.

B sentences, S source positions, T frames, r frames per step, F numbers per frame.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.search.callbacks import StepCallback, notify_step
from regard.search.spectrogram import Spectrogram
from regard.search.top import nan_error


@torch.inference_mode()
def unroll(
    model: Any,
    source: Padded,
    limits: Tensor,
    threshold: float,
    on_step: StepCallback | None = None,
) -> list[Spectrogram]:
    """Return the frames of each row, until the probability to stop reaches the threshold.

    limits: (B,), maximum numbers of frames. A row does not depend on the others.
    """
    frame, state = model.start(source)
    rows, most = list(range(len(limits))), limits.tolist()
    found: list[list[np.ndarray]] = [[] for _ in rows]
    truncated = [False] * len(rows)
    written = 0
    while rows:
        frames, stop, state = model.step(frame, state)  # (B, r, F), (B,)
        _check_finite(frames)
        written += frames.shape[1]
        kept = []
        steps = frames.float().cpu().numpy()
        for at, (row, p) in enumerate(zip(rows, stop.tolist(), strict=True)):
            found[row].append(steps[at])
            truncated[row] = p < threshold and written >= most[row]
            if p < threshold and not truncated[row]:
                kept.append(at)
        frame = frames[:, -1:]
        if len(kept) < len(rows):
            rows = [rows[at] for at in kept]
            chosen = torch.tensor(kept, device=frame.device, dtype=torch.long)
            if rows:
                state, frame = state.select(chosen, chosen), frame.index_select(0, chosen)
        notify_step(on_step, rows, lambda: [])
    every = zip(found, most, truncated, strict=True)
    return [Spectrogram(np.concatenate(parts)[: int(n)], cut) for parts, n, cut in every]


@torch.inference_mode()
def expand(model: Any, source: Padded, limits: Tensor, speed: float) -> list[Spectrogram]:
    """Return the frames of each row, from predicted durations.

    limits: (B,), maximum numbers of frames. speed: divides the durations.
    """
    frames, _ = model.spectrogram(source, speed)
    _check_finite(frames.data[frames.mask])
    sizes, most = frames.mask.sum(1).tolist(), limits.tolist()
    data = frames.data.float().cpu().numpy()
    return [
        Spectrogram(data[row, : int(min(size, limit))], size > limit)
        for row, (size, limit) in enumerate(zip(sizes, most, strict=True))
    ]


def _check_finite(frames: Tensor) -> None:
    """Raise an error if a frame is not finite."""
    if not bool(frames.isfinite().all()):
        raise nan_error()
