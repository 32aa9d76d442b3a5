"""The lean twin of a Transformer's `start` and `step`: the same numbers with less ado.

A step of a small model on a CPU is dozens of tiny operations, and what Python and torch do
around each of them takes longer than the arithmetic. Here the weights are taken out of the
modules once, vectors stay (rows, D), and each layer is one function.

B sentences, k beams of each, R = k * B rows, S source length, H heads, K head width, D width.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard.data.batch import Batch, Padded
from regard.models.bare import (
    bare_bias,
    bare_embedding,
    bare_feed,
    bare_head,
    bare_linear,
    bare_norm,
    bare_residual,
)
from regard.models.decoder import DecoderLayer, TransformerDecoder, prune
from regard.models.encoder import EncoderLayer, TransformerEncoder
from regard.models.frontend import SymbolFrontend
from regard.models.generator import Generator
from regard.models.script import script_of
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.cache import Cache, sight
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.silence import silenced
from regard.nn.state import State
from regard.nn.watch import captured, watched


def lean(model: nn.Module) -> Any:
    """The lean stepper of a model, or the model itself where it has none."""
    if not isinstance(model, Generator) or not isinstance(model.decoder, TransformerDecoder):
        return model
    kernels = [m.kernel for m in model.modules() if isinstance(m, SelfAttention | CrossAttention)]
    plain = all(isinstance(kernel, SoftmaxAttention) for kernel in kernels)
    layered = all(isinstance(layer, DecoderLayer) for layer in model.decoder.layers)
    return LeanStepper(model) if plain and layered else model


class LeanStepper:
    """A generator with a Transformer decoder, in eval mode; its weights must not change."""

    def __init__(self, model: Generator) -> None:
        self.model = model.eval()
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.layers = [_decoder_layer(layer) for layer in decoder.layers]  # type: ignore[arg-type]
        self.script = script_of(decoder, model.target)
        self.norm, self.positions = bare_norm(decoder.norm), decoder.positions
        self.embed = bare_embedding(model.target)
        self.keys = [_keys(layer.cross) for layer in decoder.layers]  # type: ignore[arg-type]
        self.encode = _encoder(model)
        self.head = bare_head(model.head)

    def start(self, source: Padded) -> State:
        """The decoder's state before its first symbol, keys projected; seen, it is the model's."""
        if captured() or silenced():
            return self.model.start(source)
        memory = self.encode(source)
        state = self.model.decoder.start(memory)
        whole = bool(memory.mask.all())
        keys = [project(memory.data) for project in self.keys]
        bias = None if whole else bare_bias(memory.mask, memory.data)
        return State({"encoded": memory, "keys": keys, "bias": bias}, state.past)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Symbols (R, T) to the logits (R, T, V) of what follows each, and the new state."""
        if not _plain(symbols, state):
            return self.model.step(symbols, state)
        x, state = self._row(symbols, state)
        return self.head(x).unsqueeze(1), state

    def vectors(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """A step without the output layer: symbols (R, T) to (R, T, D), and the new state."""
        if not _plain(symbols, state):
            return self.model.vectors(symbols, state)
        x, state = self._row(symbols, state)
        return x.unsqueeze(1), state

    def _row(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """One symbol for each row (R, 1) to vectors (R, D), and the new state."""
        memory, past = state.memory, state.past
        B = len(memory["encoded"].mask)
        k = len(symbols) // B
        if past["seen"] is not None and past["entries"] > past["room"]:
            past = prune(past, k)
        mask, seen = None, past["seen"]
        if k > 1 or seen is not None:
            mask, seen = sight(seen, past["entries"], k, memory["encoded"].data, len(symbols))
        rest = (mask, memory["keys"], memory["bias"], past["layers"], B)
        if self.script is not None:
            x, layers = self.script(symbols[:, 0], past["at"], *rest)
        else:
            x, layers = self._layered(self.embed(symbols[:, 0]), past["at"], *rest)
        counts = {"at": past["at"] + 1, "entries": past["entries"] + k, "room": past["room"]}
        after = {**counts, "seen": seen, "layers": layers}
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


def _plain(symbols: Tensor, state: State) -> bool:
    """Whether a step is one symbol for each row, from a state of our own, and nobody watches."""
    undisturbed = watched() is None and not silenced()
    return symbols.shape[1] == 1 and "bias" in state.memory and undisturbed


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
        own, values = cache.both
        out = scaled_dot_product_attention(qkv[0], own, values, mask)
        x = leave1(x, join(out.transpose(1, 2).reshape(R, D)))
        q = query(enter2(x)).view(B, R // B, heads, K).transpose(1, 2)
        out = scaled_dot_product_attention(q, keys[0], keys[1], bias)
        x = leave2(x, found(out.transpose(1, 2).reshape(R, D)))
        return leave3(x, feed(enter3(x))), cache

    return run


def _encoder(model: Generator) -> Callable[[Padded], Padded]:
    """The encoder as one function of symbols; as it is where it is no Transformer."""
    encoder, frontend = model.encoder, model.frontend
    if not (isinstance(encoder, TransformerEncoder) and type(frontend) is SymbolFrontend):
        return lambda source: encoder(frontend(Batch(source)))
    layers = [_encoder_layer(layer) for layer in encoder.layers]  # type: ignore[arg-type]
    embed, norm = bare_embedding(frontend.symbols), bare_norm(encoder.norm)

    def run(source: Padded) -> Padded:
        B, S = source.data.shape
        x = encoder.positions.embed(embed(source.data), 0).flatten(0, 1)  # (B*S, D)
        bias = None if bool(source.mask.all()) else bare_bias(source.mask, x)
        for layer in layers:
            x = layer(x, bias, B)
        return Padded(norm(x).view(B, S, -1), source.mask)

    return run


def _encoder_layer(layer: EncoderLayer) -> Callable[[Tensor, Tensor | None, int], Tensor]:
    """An encoder layer as one function of all symbols (B*S, D)."""
    heads = layer.attention.heads
    project, join = bare_linear(layer.attention.project), bare_linear(layer.attention.join)
    feed = bare_feed(layer.feedforward)
    (enter1, leave1), (enter2, leave2) = map(bare_residual, (layer.attend, layer.feed))

    def run(x: Tensor, bias: Tensor | None, B: int) -> Tensor:
        R, D = x.shape
        qkv = project(enter1(x)).view(B, R // B, 3, heads, D // heads).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], bias)
        x = leave1(x, join(out.transpose(1, 2).reshape(R, D)))
        return leave2(x, feed(enter2(x)))

    return run


def _keys(cross: CrossAttention) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """Memory (B, S, M) to the keys and values (B, H, S, K) of a layer."""
    project, heads = bare_linear(cross.project), cross.heads

    def run(memory: Tensor) -> tuple[Tensor, ...]:
        B, S, M = memory.shape
        both = project(memory.reshape(B * S, M)).view(B, S, 2, heads, -1)
        return both.permute(2, 0, 3, 1, 4).contiguous().unbind(0)

    return run
