"""Decoders: `start(memory)` gives a State; `forward(x, State)` takes any number of symbols.

The same forward trains (all symbols at once), reads a prompt, and decodes (one symbol).
B rows of memory, k beams a row, S source length, T target length, D width, M memory width.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree, tree_map
from regard.models.encoders import Auto, TransformerOptions
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.attention_scores import ScoreKind, build_score
from regard.nn.capture_hooks import merge_steps, record_hidden
from regard.nn.dropout import Dropout
from regard.nn.feedforward import FeedForward
from regard.nn.kernels.cache import Cache, alive, sight
from regard.nn.norms import Residual
from regard.nn.positions import Position
from regard.nn.recurrent import Cell, Hidden, Recurrence

PRUNE = 16  # entries of a cache beyond twice those in use, from which it is pruned


class TransformerDecoder(nn.Module):
    """Masked self-attention and attention to the source (Vaswani et al. 2017, 3.1)."""

    def __init__(
        self, layers: Sequence[nn.Module], positions: Position, norm: nn.Module, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.norm = norm
        self.dropout = Dropout(dropout)

    def start(self, memory: Padded) -> State:
        """The state before the first symbol; each layer projects its keys on its first call."""
        nothing = [None] * len(self.layers)
        past = {"at": 0, "entries": 0, "room": PRUNE, "seen": None, "layers": nothing}
        return State({"encoded": memory, "keys": nothing}, past)

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """x (k*B, T, D) to (k*B, T, D) and the state after it."""
        memory, past = state.memory["encoded"], state.past
        beams = len(x) // (len(x) if memory is None else len(memory.mask))
        if past["seen"] is not None and past["entries"] > past["room"]:
            past = prune(past, beams)
        at, seen, mask = past["at"], past["seen"], None
        if beams > 1 or seen is not None:
            mask, seen = sight(seen, past["entries"], beams, x, *x.shape[:2])
        h = self.dropout(self.positions.embed(x, at))
        keys, layers = [], []
        for layer, key, old in zip(self.layers, state.memory["keys"], past["layers"], strict=True):
            h, key, old = layer(h, memory, mask, key, old)
            keys.append(key)
            layers.append(old)
        new = x.shape[1]
        entries = past["entries"] + beams * new
        after = {"at": at + new, "entries": entries, "seen": seen, "layers": layers}
        return self.norm(h), State(
            {"encoded": memory, "keys": keys}, {**after, "room": past["room"]}
        )


def prune(past: dict[str, Tree], beams: int) -> dict[str, Tree]:
    """The past without the entries that no beam sees any more."""
    entries = alive(past["seen"], beams)  # (B, m)
    m = entries.shape[1]

    def left(leaf: Tensor | Cache) -> Tensor | Cache:
        return leaf.take(entries) if isinstance(leaf, Cache) else leaf

    seen = past["seen"].gather(1, entries.repeat_interleave(beams, 0))
    layers = tree_map(left, past["layers"])
    return past | {"entries": m, "room": 2 * m + PRUNE, "seen": seen, "layers": layers}


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network, each residual."""

    def __init__(
        self,
        attention: SelfAttention,
        cross: CrossAttention,
        feedforward: FeedForward,
        residuals: list[Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.attend, self.look, self.feed = residuals

    def forward(
        self, x: Tensor, memory: Padded, mask: Tensor | None, keys: Tree, past: Tree
    ) -> tuple[Tensor, Tree, Tree]:
        """(k*B, T, D) to the same, with the keys of the memory and the past of this layer.

        mask: what each symbol sees of the past, where beams share it; None: all before it.
        """
        mixed, past = self.attention(self.attend.enter(x), mask, past, mask is None)
        x = self.attend.leave(x, mixed)
        found, keys = self.cross(self.look.enter(x), memory, keys)
        x = self.look.leave(x, found)
        x = self.feed.leave(x, self.feedforward(self.feed.enter(x)))
        record_hidden(self, x)
        return x, keys, past


class RecurrentDecoder(nn.Module):
    """Recurrent layers, then attention to the source: out = tanh(W [h; context]).

    (Luong et al. 2015, eq. 5.) The first state is tanh of a linear map of the source's summary
    (Bahdanau et al. 2015, A.2.2). With `feeding`, the last output joins the next input (Luong
    3.3), so symbols go one by one in training too: slower.
    """

    def __init__(
        self,
        body: Recurrence,
        score: nn.Module,
        sizes: tuple[int, int],
        feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        width, memory_width = sizes
        self.body = body
        self.score = score
        self.feeding = feeding
        count = len(body.layers) * body.parts
        self.bridge = nn.Linear(memory_width, count * width)
        self.join = nn.Linear(width + memory_width, width)
        self.dropout = Dropout(dropout)

    def start(self, memory: Padded) -> State:
        """The state before the first symbol; the bridge is crossed on the first call."""
        return State({"encoded": memory, "keys": None}, {"hidden": None, "last": None})

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """x (k*B, T, D) to (k*B, T, D) and the state after it."""
        memory, keys = state.memory["encoded"], state.memory["keys"]
        hidden, last = state.past["hidden"], state.past["last"]
        if hidden is None:
            hidden = self.first(memory, len(x))
        x = self.dropout(x)
        if not self.feeding:
            h, hidden = self.body(x, hidden)
            out, keys = self._attend(h, memory, keys)
        else:
            last = x.new_zeros(len(x), 1, self.join.out_features) if last is None else last
            steps = []
            with merge_steps():
                for t in range(x.shape[1]):
                    h, hidden = self.body(torch.cat([x[:, t : t + 1], last], -1), hidden)
                    last, keys = self._attend(h, memory, keys)
                    steps.append(last)
            out = torch.cat(steps, 1)
        return out, State({"encoded": memory, "keys": keys}, {"hidden": hidden, "last": last})

    def first(self, memory: Padded, rows: int) -> Hidden:
        """The first hidden state (k*B, L, D) of each part, from the source."""
        first = torch.tanh(self.bridge(memory.pooled()))  # (B, parts * L * D)
        first = first.repeat_interleave(rows // len(first), 0)
        shape = (self.body.parts, len(self.body.layers), -1)
        return first.unflatten(-1, shape).unbind(1)

    def _attend(self, h: Tensor, memory: Padded, keys: Tensor) -> tuple[Tensor, Tensor]:
        """States (k*B, T, D) joined with their contexts: (k*B, T, D), and the keys."""
        context, keys = self.score(h, memory, keys)
        return self.dropout(torch.tanh(self.join(torch.cat([h, context], -1)))), keys


class TransformerDecoderOptions(TransformerOptions):
    """Masked self-attention and attention to the source."""

    def build(self, memory_width: int, inputs: int | None = None) -> TransformerDecoder:
        """The decoder over memory of this width; sizes must be filled."""
        assert self.width and self.heads and self.layers and self.dropout is not None
        layers = [
            DecoderLayer(
                SelfAttention(self.width, self.heads, self.attention.build()),
                CrossAttention(self.width, memory_width, self.heads, self.attention.build()),
                self.feed(),
                [self.residual() for _ in range(3)],
            )
            for _ in range(self.layers)
        ]
        return TransformerDecoder(layers, self.places(), self.final_norm(), self.dropout)


class RecurrentDecoderOptions(Options):
    """Recurrent layers with attention to the source; None is chosen from the data."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "lstm"
    layers: int | None = Field(None, gt=0, description="layers")
    width: int | None = Field(None, gt=0, description="size of the vectors")
    score: ScoreKind | None = Field(None, description="attention score; none: a fixed vector")
    feeding: bool = Field(False, description="the last output joins the next input; slower")
    dropout: float | None = Field(None, ge=0, lt=1, description="share of activations zeroed")

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by: they begin with variance 1 / width."""
        return math.sqrt(self.width or 1)

    def build(self, memory_width: int, inputs: int | None = None) -> RecurrentDecoder:
        """The decoder over memory of this width, of vectors of size `inputs` or of its width."""
        assert self.width and self.layers and self.dropout is not None
        size = (inputs or self.width) + (self.width if self.feeding else 0)
        return RecurrentDecoder(
            Recurrence(self.cell, size, self.width, self.layers, self.dropout),
            build_score(self.score or "additive", self.width, memory_width),
            (self.width, memory_width),
            self.feeding,
            self.dropout,
        )


Decoder = Annotated[
    Auto | TransformerDecoderOptions | RecurrentDecoderOptions, Field(discriminator="kind")
]
