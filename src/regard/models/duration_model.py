"""Models that write all frames at once, from the durations of the source positions.

Training finds the durations itself: an aligner learns which position each frame belongs to
(Badlani et al. 2022), and a predictor learns the durations (Ren et al. 2019). B rows, T frames, S
source positions, D width, A width of the aligner, F numbers per frame.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.inputs.frontend import Embedding, Frontend
from regard.models.frame_outputs import FrameOutputs
from regard.models.speech_model import SpeechModel
from regard.models.transformer import TransformerEncoder
from regard.nn.alignment import NEVER, best_durations, expanded
from regard.nn.dropout import Dropout

DIAGONAL = 0.2  # standard deviation of the prior of alignments, as a fraction of the length
MAX_LOG = 6.0  # of a predicted duration: 400 frames


class Convolve(nn.Module):
    """A convolution over time with three taps. Padding is zero before it."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, width, 3, padding=1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return vectors (B, T, width) for x (B, T, inputs)."""
        masked = x.masked_fill(~mask.unsqueeze(-1), 0.0)
        found: Tensor = self.conv(masked.transpose(1, 2)).transpose(1, 2)
        return found


class Aligner(nn.Module):
    """Log probabilities of source positions per frame, from distances of vectors.

    -|W k - V f|^2 / sqrt(A), with a prior that prefers the diagonal, where k is the vector of a
    position and f that of a frame and its neighbors (Badlani et al. 2022, 2).
    """

    def __init__(self, memory: int, bands: int, width: int) -> None:
        super().__init__()
        self.key = Convolve(memory, width)
        self.first, self.second = Convolve(bands, width), nn.Linear(width, width)

    def forward(self, memory: Padded, target: Padded) -> Tensor:
        """Return log probabilities (B, T, S). Padding of the source has probability 0."""
        keys = self.key(memory.data, memory.mask)
        frames = self.second(F.relu(self.first(target.data, target.mask)))
        apart = frames.square().sum(-1)[:, :, None] + keys.square().sum(-1)[:, None]
        apart = apart - 2 * frames @ keys.transpose(1, 2)  # (B, T, S)
        scores = -apart * keys.shape[-1] ** -0.5 + diagonal_prior(target.mask, memory.mask)
        return scores.masked_fill(~memory.mask[:, None], NEVER).log_softmax(-1)


def diagonal_prior(frames: Tensor, positions: Tensor) -> Tensor:
    """Return -(s / S - t / T)^2 / (2 DIAGONAL^2), (B, T, S). frames, positions: masks."""
    t, s = (
        torch.arange(mask.shape[1], device=mask.device) / mask.sum(1, keepdim=True)
        for mask in (frames, positions)
    )
    return -((s[:, None] - t[:, :, None]) ** 2) / (2 * DIAGONAL**2)


class DurationPredictor(nn.Module):
    """Log durations of the source positions: two convolutions and a linear layer."""

    def __init__(self, memory: int, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = Convolve(memory, width), Convolve(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.dropout = Dropout(dropout)
        self.out = nn.Linear(width, 1)

    def forward(self, memory: Padded) -> Tensor:
        """Return the logarithms (B, S) of the durations."""
        x = memory.data
        for layer, norm in zip((self.first, self.second), self.norms, strict=True):
            x = self.dropout(norm(F.relu(layer(x, memory.mask))))
        found: Tensor = self.out(x).squeeze(-1)
        return found


class DurationParts(NamedTuple):
    """The parts of the model after its encoder."""

    aligner: Aligner
    durations: DurationPredictor
    decoder: TransformerEncoder


class DurationModel(SpeechModel):
    """An encoder, durations, and a decoder in which every frame sees all others.

    Training calls `forward`. Prediction calls `spectrogram`.
    """

    def __init__(
        self,
        parts: tuple[Frontend, nn.Module, Embedding | None],
        after: DurationParts,
        sizes: tuple[int, int, int],
    ) -> None:
        super().__init__(*parts)
        memory, width, bands = sizes
        self.aligner, self.durations = after.aligner, after.durations
        self.join = nn.Linear(memory + 2, width)
        self.decoder = after.decoder
        self.frames = nn.Linear(width, bands)

    def forward(self, batch: Batch) -> FrameOutputs:
        """Return all frames (B, T, F), with the durations of the most probable alignment."""
        assert batch.source is not None and batch.target is not None
        memory, target = self.encode(batch.source), batch.target
        alignment = self.aligner(memory, target)
        sizes = target.mask.sum(1), memory.mask.sum(1)
        durations = best_durations(alignment, *sizes)
        frames = self.decode(memory, durations, target.mask).data
        log_durations = self.durations(memory._replace(data=memory.data.detach()))
        return FrameOutputs(
            frames,
            memory.mask,
            alignment=alignment,
            durations=durations,
            log_durations=log_durations,
        )

    def spectrogram(self, source: Padded, speed: float, limits: Tensor) -> tuple[Padded, Tensor]:
        """Return the frames (B, T, F), and the durations (B, S) before they were limited.

        speed: divides the durations. limits: (B,), maximum numbers of frames.
        """
        memory = self.encode(source)
        expected = self.durations(memory).clamp(max=MAX_LOG).exp() / speed
        durations = expected.round().long().clamp(min=1).masked_fill(~memory.mask, 0)
        ends = durations.cumsum(1).clamp(max=limits[:, None])
        return self.decode(
            memory, ends.diff(dim=1, prepend=torch.zeros_like(ends[:, :1]))
        ), durations

    def decode(self, memory: Padded, durations: Tensor, mask: Tensor | None = None) -> Padded:
        """Return the frames (B, T, F). mask: (B, T), the real ones, if they are known."""
        at, real, fraction = expanded(durations)
        vectors = memory.data.gather(1, at.unsqueeze(-1).expand(-1, -1, memory.data.shape[-1]))
        long = durations.gather(1, at).clamp(min=1).log()
        x = self.join(torch.cat([vectors, fraction.unsqueeze(-1), long.unsqueeze(-1)], -1))
        if mask is not None:  # rows without an alignment have no durations
            x, real = F.pad(x, (0, 0, 0, mask.shape[1] - x.shape[1])), mask
        found = self.decoder(Padded(x, real))
        return Padded(self.frames(found.data), real)
