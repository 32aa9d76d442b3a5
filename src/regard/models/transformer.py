"""Transformer encoders and decoders: stacks of attention layers.

`forward` of a decoder serves training (all tokens at once), prompts and decoding (one token).
Fused encoders and decoders run all layers in one call (`nn.fused_step`).
B sentences, k beams per sentence, R = k * B rows, S source length, T target length, D width.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.inputs.frontend import Frontend
from regard.models.fast_decoder import FastDecoder
from regard.models.fast_transformer import FastTransformerDecoder, FastTransformerEncoder
from regard.nn.capture_hooks import padding_mask
from regard.nn.dropout import Dropout
from regard.nn.fast import claim, fast
from regard.nn.fused import FusedLayer, fused_stack
from regard.nn.kernels.kernel import AttentionMask, Kernel
from regard.nn.norms import FusedNorm, Norm
from regard.nn.positions import Position


class Stack(nn.Module):
    """Position embeddings, layers and a final norm."""

    def __init__(
        self, layers: Sequence[nn.Module], positions: Position, norm: Norm, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.norm = norm
        self.dropout = Dropout(dropout)

    @property
    def kernel(self) -> Kernel:
        """Return the attention kernel of the first layer, which prepares a call for all layers."""
        kernel: Kernel = self.layers[0].attention.kernel  # type: ignore[union-attr, assignment]
        return kernel

    @property
    def length(self) -> int | None:
        """Return the maximum sequence length, or None."""
        limits = [self.positions.length, self.kernel.length]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def limited_by(self) -> str:
        """Return the section of the settings that limits the length."""
        by_kernel = self.length is not None and self.length == self.kernel.length
        return "attention" if by_kernel else "positions"

    def fused(self) -> tuple[list[FusedLayer], Position, FusedNorm] | None:
        """Return layers, positions and final norm, if the fused functions support all of them."""
        layers, norm = fused_stack(list(self.layers)), claim(self.norm, "fused")
        if layers is None or norm is None or not claim(self.positions, "adds"):
            return None
        return layers, self.positions, norm

    def embed(self, x: Tensor, at: int, layer: int) -> Tensor:
        """Return the input (R, T, D) of a layer, with positions added if this layer needs them.

        at: position of the first token.
        """
        if layer == 0:
            return self.dropout(self.positions.embed(x, at))
        return self.positions.embed(x, at, layer) if self.positions.every_layer else x


class TransformerEncoder(Stack):
    """A Transformer encoder (Vaswani et al. 2017, 3.1)."""

    def forward(self, source: Padded) -> Padded:
        """Return the encoder output (B, S, D) for vectors (B, S, D)."""
        x, rows = source.data, len(source.data)
        prepared, _ = self.kernel.prepare(None, rows, rows, x.shape[1], x)
        structure = self.kernel.structure(source.edges, source.mask)
        mask = AttentionMask(
            self.positions, rows, source.mask, source.bias, source.edges, 0, prepared, structure
        )
        with padding_mask(source.mask):
            for number, layer in enumerate(self.layers):
                x, _, _ = layer(self.embed(x, 0, number), None, mask, None, None, source.mask)
        return Padded(self.norm(x, source.mask), source.mask)

    def fast(self, frontend: Frontend) -> Callable[[Padded], Padded] | None:
        """Return the fused encoder with this frontend, if all modules support it."""
        parts, read = self.fused(), fast(frontend)
        if parts is None:
            return None
        run = FastTransformerEncoder(*parts)

        def encode(source: Padded) -> Padded:
            found = read(source)
            return (run if found.bias is None and found.edges is None else self)(found)

        return encode


class TransformerDecoder(Stack):
    """A Transformer decoder, with or without attention to a source (Vaswani et al. 2017, 3.1)."""

    @property
    def source_length(self) -> int | None:
        """Return the maximum length of the source that the layers can attend to, or None."""
        cross: Any = self.layers[0].cross
        limit: int | None = None if cross is None else cross.kernel.length
        return limit

    def start(self, memory: Padded | None) -> State:
        """Return the state before the first token. `forward` computes the keys of the source."""
        empty = [None] * len(self.layers)
        past = {"at": 0, "shared": None, "layers": empty}
        return State({"encoded": memory, "keys": empty}, past)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the output (R, T, D) for x (R, T, D), and the new state.

        real: mask (R, T), False for padding; None without padding.
        """
        memory, past = state.memory["encoded"], state.past
        rows, new = x.shape[:2]
        sentences = rows if memory is None else len(memory.mask)
        prepared, shared = self.kernel.prepare(past["shared"], rows, sentences, new, x)
        at = past["at"]
        mask = AttentionMask(self.positions, sentences, at=at, prepared=prepared)
        keys, layers = [], []
        olds = zip(self.layers, state.memory["keys"], past["layers"], strict=True)
        for number, (layer, key, old) in enumerate(olds):
            x, key, old = layer(self.embed(x, at, number), memory, mask, key, old, real)
            keys.append(key)
            layers.append(old)
        after = {"at": at + new, "shared": shared, "layers": layers}
        return self.norm(x, real), State({"encoded": memory, "keys": keys}, after)

    def fast(self, embed: nn.Module) -> FastDecoder | None:
        """Return the fused decoder, if all modules support it. embed: embedding of the tokens."""
        parts, table = self.fused(), claim(embed, "fused")
        if parts is None or table is None:
            return None
        return FastTransformerDecoder(*parts, table, self.kernel)
