"""Parallel decoders, which compute all positions of an output in one call.

Every position sees all others, so the decoder reads what is known of an output and predicts the
rest. At first nothing is known (all inputs are MASK), later some of its tokens (mask-predict).
`FillModel` needs the length of the output, from a classifier or from EOS. `FramesModel` does not:
it has several frames per source position, and CTC decides which of them are tokens.

Shapes: B sentences, k candidates per sentence, R = k * B rows, S source length, T target length,
D width, V vocabulary, L lengths, u frames per source position, N masked tokens.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, LengthScores, Outputs, Padded
from regard.data.tensors.special import EOS, MASK
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.inputs.frontend import Embedding, Frontend
from regard.models.fast_parallel import FastFillModel, FastFramesModel
from regard.models.fast_transformer import FastParallelDecoder
from regard.models.output_layer import OutputLayer
from regard.models.transformer import Stack
from regard.nn.capture_hooks import padding_mask
from regard.nn.dropout import Dropout
from regard.nn.kernels.kernel import AttentionMask

SHARPNESS = 2.0  # of copies: weights fall by exp(-SHARPNESS) per source position


class ParallelDecoder(Stack):
    """Transformer layers in which every position sees all others, and the source."""

    def memory_keys(self, memory: Padded) -> list[Tree]:
        """Return the source as the cross-attention of each layer keeps it."""
        return [layer.cross.project_memory(memory) for layer in self.layers]  # type: ignore[union-attr, operator]

    def forward(self, x: Tensor, memory: Padded, keys: list[Tree], real: Tensor) -> Tensor:
        """Return the output (R, T, D) for x (R, T, D). real: mask (R, T), False for padding."""
        rows = len(x)
        prepared, _ = self.kernel.prepare(None, rows, rows, x.shape[1], x)
        mask = AttentionMask(self.positions, rows, real, prepared=prepared)
        with padding_mask(real):
            for number, (layer, key) in enumerate(zip(self.layers, keys, strict=True)):
                x, _, _ = layer(self.embed(x, 0, number), memory, mask, key, None, real)
        out: Tensor = self.norm(x, real)
        return out

    def fast(self) -> FastParallelDecoder | None:
        """Return the fused decoder, if all modules support it."""
        parts = self.fused()
        return None if parts is None else FastParallelDecoder(*parts)


class Split(nn.Module):
    """Several frames per source vector, by a linear layer (Libovický and Helcl 2018, 3)."""

    def __init__(self, inputs: int, width: int, frames: int, dropout: float) -> None:
        super().__init__()
        self.frames = frames
        self.linear = nn.Linear(inputs, frames * width)
        self.dropout = Dropout(dropout)

    def forward(self, memory: Padded) -> Padded:
        """Return the frames (B, u*S, D) of source vectors (B, S, M), with their mask."""
        x = self.dropout(self.linear(memory.data))
        frames = x.unflatten(-1, (self.frames, -1)).flatten(1, 2)
        return Padded(frames, memory.mask.repeat_interleave(self.frames, 1))


class LengthClassifier(nn.Module):
    """Scores of output lengths around the source length, from the mean of the source vectors.

    most: largest difference from the source length. joint: whether its gradient reaches the
    encoder. Otherwise the classifier learns from an encoder that other losses train.
    """

    def __init__(self, inputs: int, most: int, joint: bool) -> None:
        super().__init__()
        self.most, self.joint = most, joint
        self.linear = nn.Linear(inputs, 2 * most + 1)

    def forward(self, memory: Padded) -> LengthScores:
        """Return the scores (B, L) of the lengths from `shortest` on."""
        pooled = Padded(memory.data, memory.mask).pooled()
        logits = self.linear(pooled if self.joint else pooled.detach()).float()
        shortest = memory.mask.sum(1) - self.most
        lengths = shortest[:, None] + torch.arange(logits.shape[1], device=logits.device)
        return LengthScores(logits.masked_fill(lengths < 1, float("-inf")), shortest)


class SoftCopy(nn.Module):
    """A copy of the source for each target position, scaled to the target length.

    A mean of the source vectors, with weights that fall with the distance from the position
    i * S / T (Wei et al. 2019, 3.2; Gu et al. 2018, 3.1 copy one vector).
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)

    def forward(self, memory: Padded, real: Tensor) -> Tensor:
        """Return the vectors (R, T, D) for target positions real (R, T), False for padding."""
        rows, T = real.shape
        copies = rows // len(memory.mask)
        mask = memory.mask.repeat_interleave(copies, 0)  # (R, S)
        sizes = (mask.sum(1, keepdim=True) - 1).clamp(min=0), (real.sum(1, keepdim=True) - 1)
        steps = torch.arange(T, device=real.device) * sizes[0] / sizes[1].clamp(min=1)  # (R, T)
        far = (steps[..., None] - torch.arange(mask.shape[1], device=real.device)).abs()
        weights = (-SHARPNESS * far).masked_fill(~mask[:, None], float("-inf")).softmax(-1)
        vectors = memory.data.repeat_interleave(copies, 0)
        copied: Tensor = self.linear(weights.to(vectors.dtype) @ vectors)
        return copied


class Parts(NamedTuple):
    """The parts of a parallel decoder model besides encoder, embedding and output layer.

    positions: number of positions if the output ends at EOS; 0 if there is a length classifier.
    """

    decoder: ParallelDecoder | None = None
    split: Split | None = None
    copy: SoftCopy | None = None
    lengths: LengthClassifier | None = None
    positions: int = 0


class FillModel(nn.Module):
    """An encoder and a parallel decoder that fills in masked tokens.

    Training calls `forward`. Decoding calls `start`, `lengths` and, once or several times, `fill`.
    """

    scores_targets: ClassVar[bool] = False  # only those that are masked

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Embedding,
        parts: Parts,
        head: OutputLayer,
    ) -> None:
        super().__init__()
        assert parts.decoder is not None
        self.frontend, self.encoder, self.target = frontend, encoder, target
        self.decoder, self.copy, self.length_classifier = parts.decoder, parts.copy, parts.lengths
        self.positions = parts.positions
        self.head = head

    def forward(self, batch: Batch, inputs: Tensor | None = None) -> Outputs:
        """Return the logits (N, V) of the target tokens whose input is MASK, and of the lengths.

        inputs: decoder inputs (B, T), by default all MASK (see `unknown`).
        """
        assert batch.source is not None and batch.target is not None
        target = batch.target
        inputs = self.unknown(target.data) if inputs is None else inputs
        state = self.start(batch.source)
        chosen = (inputs == MASK) & target.mask  # (B, T)
        real, shown = target.mask, inputs
        if self.positions:
            room = max(self.positions, inputs.shape[1])
            shown = nn.functional.pad(inputs, (0, room - inputs.shape[1]), value=MASK)
            steps = torch.arange(room, device=real.device)
            real = steps < target.mask.sum(1, keepdim=True).clamp(min=self.positions)
            shown = torch.where(steps < target.mask.sum(1, keepdim=True), shown, MASK)
        h = self.vectors(shown, real, state)[:, : inputs.shape[1]]
        return Outputs(self.head(h[chosen]), lengths=self.lengths(state))

    def unknown(self, target: Tensor) -> Tensor:
        """Return the inputs (B, T) if no token is known but EOS, which the length implies."""
        hidden = torch.full_like(target, MASK)
        return hidden if self.positions else torch.where(target == EOS, target, hidden)

    def start(self, source: Padded) -> State:
        """Return the encoded source, for `lengths` and `fill`."""
        memory = self.encoder(self.frontend(source))
        return State({"encoded": memory, "keys": self.decoder.memory_keys(memory)}, {})

    def lengths(self, state: State) -> LengthScores | None:
        """Return the scores of output lengths; None if the output ends at EOS."""
        if self.length_classifier is None:
            return None
        scores: LengthScores = self.length_classifier(state.memory["encoded"])
        return scores

    def fast(self) -> FastFillModel:
        """Return the fast path of this model, for decoding."""
        return FastFillModel(self)

    def fill(self, tokens: Tensor, real: Tensor, state: State) -> Tensor:
        """Return the logits (R, T, V) at all positions of tokens (R, T), MASK where unknown.

        real: mask (R, T), False for padding. k consecutive rows are candidates of one sentence.
        """
        logits: Tensor = self.head(self.vectors(tokens, real, state))
        return logits

    def vectors(self, tokens: Tensor, real: Tensor, state: State) -> Tensor:
        """Return the vectors (R, T, D) before the output layer."""
        memory, x = state.memory["encoded"], self.target(tokens)
        if self.copy is not None:
            x = x + self.copy(memory, real)
        found: Tensor = self.decoder(x, memory, state.memory["keys"], real)
        return found


class FramesModel(nn.Module):
    """An encoder with an output layer on frames, for CTC.

    Between them is a parallel decoder, or nothing.
    """

    scores_targets: ClassVar[bool] = False  # but frames, which may be blank

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Embedding,
        parts: Parts,
        head: OutputLayer,
    ) -> None:
        super().__init__()
        assert parts.split is not None
        self.frontend, self.encoder, self.split = frontend, encoder, parts.split
        self.decoder, self.head = parts.decoder, head

    def forward(self, batch: Batch) -> Outputs:
        """Return the logits (B, u*S, V) of all frames."""
        assert batch.source is not None
        frames = self.frames(batch.source)
        return Outputs(frames.data, frames=frames)

    def fast(self) -> FastFramesModel:
        """Return the fast path of this model, for decoding."""
        return FastFramesModel(self)

    def frames(self, source: Padded) -> Padded:
        """Return the logits (B, u*S, V) of all frames, with their mask."""
        memory = self.encoder(self.frontend(source))
        x, real = self.split(memory)[:2]
        if self.decoder is not None:
            x = self.decoder(x, memory, self.decoder.memory_keys(memory), real)
        return Padded(self.head(x), real)
