"""Decoding of frames: step by step, or all at once.

B sentences, S source positions, T frames, r frames per step, F numbers per frame.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.padded import Padded
from regard.nn.capture_hooks import recording
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

    def finished() -> dict[int, Any]:
        """Return the frames of each row that has ended."""
        ended = (row for row in range(len(most)) if row not in rows)
        return {
            row: Spectrogram(np.concatenate(found[row])[: most[row]], truncated[row])
            for row in ended
        }

    while rows:
        frames, stop, state = model.step(frame, state)  # (B, r, F), (B,)
        _check_finite(frames)
        written += frames.shape[1]
        kept, steps = [], frames.float().cpu().numpy()
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
        notify_step(on_step, rows, lambda: [], finished)
    return [*finished().values()]


@torch.inference_mode()
def expand(model: Any, source: Padded, limits: Tensor, speed: float) -> list[Spectrogram]:
    """Return the frames of each row, from predicted durations.

    limits: (B,), maximum numbers of frames. speed: divides the durations.
    """
    frames, durations = model.spectrogram(source, speed, limits)
    _check_finite(frames.data[frames.mask])
    sizes, total = frames.mask.sum(1).tolist(), durations.sum(1).tolist()
    data = frames.data.float().cpu().numpy()
    return [
        Spectrogram(data[row, :size], expected > size)
        for row, (size, expected) in enumerate(zip(sizes, total, strict=True))
    ]


def attention(
    model: Any, source: Padded, limits: Tensor, threshold: float
) -> tuple[Spectrogram, np.ndarray | None]:
    """Return the frames of one row, and the attention (T, S) of each frame to the source."""
    with recording() as captured:
        (found,) = unroll(model, source, limits, threshold)
    frames, size = len(found.frames), model.size
    if not captured.cross:
        return found, None
    layers = len(captured.cross) // -(-frames // size)
    last = captured.cross[layers - 1 :: layers]  # (1, H, 1, S) of each step
    weights = torch.cat(last, 2).mean(1)[0].float().cpu().numpy()  # (U, S)
    return found, weights.repeat(size, 0)[:frames]


@torch.inference_mode()
def staircase(
    model: Any, source: Padded, limits: Tensor, speed: float
) -> tuple[Spectrogram, np.ndarray]:
    """Return the frames of one row, and 1 for the token of each frame, otherwise 0: (T, S)."""
    (found,) = expand(model, source, limits, speed)
    _, durations = model.spectrogram(source, speed, limits)
    at = np.repeat(np.arange(durations.shape[1]), durations[0].cpu().numpy())
    weights = np.zeros((len(found.frames), durations.shape[1]), np.float32)
    weights[np.arange(len(weights)), at[: len(weights)]] = 1.0
    return found, weights


def _check_finite(frames: Tensor) -> None:
    """Raise an error if a frame is not finite."""
    if not bool(frames.isfinite().all()):
        raise nan_error()
