"""The lean twin of a Transformer decoder: keys of the source are projected before its first step.

B sentences, k beams of each, R = k * B rows, S source length, H heads, K head width, D width.
"""

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.models.generator import Generator
from regard.models.lean.bare import (
    bare_bias,
    bare_embedding,
    bare_feed,
    bare_linear,
    bare_norm,
    bare_residual,
)
from regard.models.lean.script import script_of
from regard.models.lean.stepper import LeanStepper
from regard.models.transformer import TransformerDecoder
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.kernels.cache import Cache
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.layers import DecoderLayer


def transformer_twin(model: Generator) -> LeanStepper | None:
    """The twin of a generator with a plain Transformer decoder; None for others."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)
    kernels = [m.kernel for m in model.modules() if isinstance(m, SelfAttention | CrossAttention)]
    plain = all(isinstance(kernel, SoftmaxAttention) for kernel in kernels)
    layers = [layer for layer in decoder.layers if isinstance(layer, DecoderLayer)]
    known = plain and len(layers) == len(decoder.layers)
    return TransformerStepper(model, decoder, layers) if known else None


class TransformerStepper(LeanStepper):
    """A generator with a Transformer decoder."""

    def __init__(
        self, model: Generator, decoder: TransformerDecoder, layers: list[DecoderLayer]
    ) -> None:
        super().__init__(model)
        self.decoder = decoder
        self.layers = [_decoder_layer(layer) for layer in layers]
        self.script = script_of(decoder, model.target)
        self.norm, self.positions = bare_norm(decoder.norm), decoder.positions
        self.embed = bare_embedding(model.target)
        self.keys = [_keys(layer.cross) for layer in layers]

    def begin(self, memory: Padded) -> State:
        """Keys are projected here."""
        keys = [project(memory.data) for project in self.keys]
        bias = None if bool(memory.mask.all()) else bare_bias(memory.mask, memory.data)
        parts = {"encoded": memory, "keys": keys, "bias": bias}
        return State(parts, self.decoder.start(memory).past)

    def row(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """One symbol for each row (R, 1) to vectors (R, D), and the new state."""
        memory, past = state.memory, state.past
        B = len(memory["encoded"].mask)
        like, layers = memory["encoded"].data, past["layers"]
        prepared, shared = self.decoder.kernel.prepare(past["shared"], len(symbols), B, 1, like)
        if prepared.take is not None:
            layers = [cache.take(prepared.take) for cache in layers]
        rest = (prepared.mask, memory["keys"], memory["bias"], layers, B)
        if self.script is not None:
            x, layers = self.script(symbols[:, 0], past["at"], *rest)
        else:
            x, layers = self._layered(self.embed(symbols[:, 0]), past["at"], *rest)
        after = {"at": past["at"] + 1, "shared": shared, "layers": layers}
        return self.norm(x), State(memory, after)

    def _layered(
        self,
        x: Tensor,
        at: int,
        mask: Tensor | None,
        keys: list[tuple[Tensor, Tensor]],
        bias: Tensor | None,
        past: list[Cache | None],
        B: int,
    ) -> tuple[Tensor, list[Cache]]:
        """Vectors (R, D) through the layers, and the caches after it."""
        x = self.positions.embed(x.unsqueeze(1), at).squeeze(1)
        caches = []
        for run, key, old in zip(self.layers, keys, past, strict=True):
            x, cache = run(x, mask, key, bias, old, B)
            caches.append(cache)
        return x, caches


def _decoder_layer(layer: DecoderLayer) -> Callable[..., tuple[Tensor, Cache]]:
    """A decoder layer as one function of a symbol for each row (R, D)."""
    heads = layer.attention.heads
    project, join = bare_linear(layer.attention.project), bare_linear(layer.attention.join)
    query, found = bare_linear(layer.cross.query), bare_linear(layer.cross.join)
    feed = bare_feed(layer.feedforward)
    (enter1, leave1), (enter2, leave2), (enter3, leave3) = map(
        bare_residual, (layer.attend, layer.look, layer.feed)
    )

    def run(
        x: Tensor,
        mask: Tensor | None,
        keys: tuple[Tensor, Tensor],
        bias: Tensor | None,
        cache: Cache | None,
        B: int,
    ) -> tuple[Tensor, Cache]:
        R, D = x.shape
        K = D // heads
        qkv = project(enter1(x)).view(B, R // B, 3, heads, K).permute(2, 0, 3, 1, 4)
        if cache is None:
            cache = Cache.of(qkv[1], qkv[2])
        else:
            cache = cache.extend(qkv[1:])
        own, values = cache.keys, cache.values
        out = scaled_dot_product_attention(qkv[0], own, values, mask)
        x = leave1(x, join(out.transpose(1, 2).reshape(R, D)))
        q = query(enter2(x)).view(B, R // B, heads, K).transpose(1, 2)
        out = scaled_dot_product_attention(q, keys[0], keys[1], bias)
        x = leave2(x, found(out.transpose(1, 2).reshape(R, D)))
        return leave3(x, feed(enter3(x))), cache

    return run


def _keys(cross: CrossAttention) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """Memory (B, S, M) to the keys and values (B, H, S, K) of a layer."""
    project, heads = bare_linear(cross.project), cross.heads

    def run(memory: Tensor) -> tuple[Tensor, ...]:
        B, S, M = memory.shape
        both = project(memory.reshape(B * S, M)).view(B, S, 2, heads, -1)
        return both.permute(2, 0, 3, 1, 4).contiguous().unbind(0)

    return run
