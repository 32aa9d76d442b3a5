"""Models that write frames step by step, each from those before it (Shen et al. 2018).

B sentences, R rows, T frames, r frames per step, U = ceil(T / r) steps, D width, F numbers per
frame.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.state import State
from regard.inputs.frontend import Embedding, Frontend
from regard.models.frame_outputs import FrameOutputs, grouped
from regard.models.recurrent import RecurrentDecoder
from regard.models.speech_model import SpeechModel
from regard.models.transformer import TransformerDecoder
from regard.nn.capture_hooks import padding_mask
from regard.nn.dropout import Dropout


class Prenet(nn.Module):
    """Two layers that read the previous frame, with dropout in training (Wang et al. 2017, 3.2).

    Without dropout, the decoder would learn to copy the frame and ignore the source.
    """

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, width), nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(self, frames: Tensor) -> Tensor:
        """Return vectors (R, U, D) for frames (R, U, F)."""
        x = self.dropout(F.relu(self.first(frames)))
        found: Tensor = self.dropout(F.relu(self.second(x)))
        return found


class FrameStepModel(SpeechModel):
    """An encoder and a decoder that writes `size` frames per step, until it stops.

    Each step reads the last frame of the step before it; the first one reads zeros.
    Training calls `forward`. Decoding calls `start` and `step`.
    """

    def __init__(
        self,
        parts: tuple[Frontend, nn.Module, Embedding | None],
        decoder: TransformerDecoder | RecurrentDecoder,
        sizes: tuple[int, int, int],
        dropout: float,
    ) -> None:
        super().__init__(*parts)
        self.bands, width, self.size = sizes
        self.prenet = Prenet(self.bands, width, dropout)
        self.decoder: TransformerDecoder | RecurrentDecoder = decoder
        self.frames = nn.Linear(width, self.size * self.bands)
        self.stop = nn.Linear(width, 1)

    def forward(self, batch: Batch) -> FrameOutputs:
        """Return all frames (B, T, F), each from the true frames before it."""
        assert batch.source is not None and batch.target is not None
        steps = grouped(batch.target, self.size)
        memory = self.encode(batch.source)
        previous = F.pad(steps.data[:, :-1, -self.bands :], (0, 0, 1, 0))  # (B, U, F)
        with padding_mask(steps.mask):
            h, _ = self.decoder(self.prenet(previous), self.decoder.start(memory), steps.mask)
        frames = self.frames(h).unflatten(-1, (self.size, -1)).flatten(1, 2)
        stop = Padded(self.stop(h).squeeze(-1), steps.mask)
        return FrameOutputs(frames[:, : batch.target.mask.shape[1]], memory.mask, stop)

    def start(self, source: Padded) -> tuple[Tensor, State]:
        """Return the frame (B, 1, F) that the first step reads, and the state before it."""
        memory = self.encode(source)
        return memory.data.new_zeros(len(memory.mask), 1, self.bands), self.decoder.start(memory)

    def step(self, frame: Tensor, state: State) -> tuple[Tensor, Tensor, State]:
        """Return the next frames (R, r, F), the probability (R,) to stop, and the new state.

        frame: (R, 1, F), the previous one.
        """
        h, state = self.decoder(self.prenet(frame), state)
        frames = self.frames(h[:, 0]).unflatten(-1, (self.size, -1))
        return frames, torch.sigmoid(self.stop(h[:, 0]).squeeze(-1)), state
