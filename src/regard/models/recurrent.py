"""Recurrent encoders and decoders, and their options.

The memory is the encoder output. A fast path computes the same outputs faster (`nn.fast`).
B sentences, k beams per sentence, R = k * B rows, S source length, T target length, D width,
L layers.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.inputs.frontend import Frontend
from regard.models.contracts import EncoderOptions, NetworkOptions
from regard.models.fast_decoder import FastDecoder
from regard.models.fast_recurrent import FastRecurrentDecoder, FastRecurrentEncoder
from regard.nn.attention_scores import Additive, Score
from regard.nn.capture_hooks import merge_steps
from regard.nn.cross_kinds import RecurrentCross
from regard.nn.dropout import Dropout
from regard.nn.fast import claim
from regard.nn.fast_cells import fast_cells
from regard.nn.recurrent import Bidirectional, Cell, Hidden, Recurrence, final_states

GATES = {"rnn": 1, "gru": 3, "lstm": 4}  # matrices per layer and input


class RecurrentEncoder(nn.Module):
    """An encoder of recurrent layers. The summary of a row is its final state per direction."""

    def __init__(self, body: Recurrence | Bidirectional, dropout: float) -> None:
        super().__init__()
        self.body = body
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the states (B, S, D) for vectors (B, S, inputs)."""
        x = self.dropout(source.data)
        both = isinstance(self.body, Bidirectional)
        states = self.body(x, source.mask) if both else self.body(x)[0]
        found = Padded(self.dropout(states), source.mask)
        return found._replace(summary=final_states(found, both))

    def fast(self, frontend: Frontend) -> Callable[[Padded], Padded] | None:
        """Return the fast path, if the frontend is an embedding and all layers are from torch."""
        embed = claim(frontend, "lookup")
        sides = [fast_cells(side) for side in claim(self.body, "sides") or ()]
        known = [side for side in sides if side is not None]
        if embed is None or not known or len(known) < len(sides):
            return None
        return FastRecurrentEncoder(embed, known)


class RecurrentDecoder(nn.Module):
    """A decoder of recurrent layers with attention to the source: out = tanh(W [h; context]).

    (Luong et al. 2015, eq. 5.) The initial hidden state is tanh(V summary), where the summary is
    one vector per source (Bahdanau et al. 2015, A.2.2). With `input_feeding`, the previous output
    is part of the next input (Luong et al. 2015, 3.3), which makes training sequential and slower.
    """

    def __init__(
        self,
        body: Recurrence,
        score: Score,
        sizes: tuple[int, int],
        input_feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        width, memory_width = sizes
        self.body = body
        self.score = score
        self.input_feeding = input_feeding
        count = len(body.layers) * body.parts
        self.bridge = nn.Linear(memory_width, count * width)
        self.join = nn.Linear(width + memory_width, width)
        self.dropout = Dropout(dropout)

    def start(self, memory: Padded) -> State:
        """Return the state before the first token. `forward` computes the initial hidden state."""
        past = {"hidden": None, "last": None, "score": None}
        return State({"encoded": memory, "keys": None}, past)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the output (R, T, D) for x (R, T, D), and the new state."""
        x, state = self.dropout(x), self._initialized(x, state)
        if not self.input_feeding:
            return self._read(x, state)
        steps = []
        with merge_steps():
            for t in range(x.shape[1]):
                out, state = self._read(x[:, t : t + 1], state)
                steps.append(out)
        return torch.cat(steps, 1), state

    def _initialized(self, x: Tensor, state: State) -> State:
        """Return the state with missing entries filled in.

        Hidden vectors come from the source. The previous output is zero.
        """
        past = state.past
        if past["hidden"] is None:
            past = past | {"hidden": self.first(state.memory["encoded"], len(x))}
        if self.input_feeding and past["last"] is None:
            past = past | {"last": x.new_zeros(len(x), 1, self.join.out_features)}
        return State(state.memory, past)

    def _read(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output for x (R, T, D), and the new state. With input feeding, T is 1."""
        memory, past = state.memory["encoded"], state.past
        fed = torch.cat([x, past["last"]], -1) if self.input_feeding else x
        h, hidden = self.body(fed, past["hidden"])
        context, keys, score = self.score(h, memory, state.memory["keys"], past["score"])
        out = self.dropout(torch.tanh(self.join(torch.cat([h, context], -1))))
        last = out if self.input_feeding else None
        after: Tree = {"hidden": hidden, "last": last, "score": score}
        return out, State({"encoded": memory, "keys": keys}, after)

    def first(self, memory: Padded, rows: int) -> Hidden:
        """Return the initial hidden state, with `parts` tensors (R, L, D), from the source.

        An LSTM has two parts: the hidden and the cell state.
        """
        first = torch.tanh(self.bridge(memory.pooled()))  # (B, parts * L * D)
        first = first.repeat_interleave(rows // len(first), 0)
        shape = (self.body.parts, len(self.body.layers), -1)
        return first.unflatten(-1, shape).unbind(1)

    def fast(self, embed: nn.Module) -> FastDecoder | None:
        """Return the fast path, if all modules support it. embed: embedding of the tokens."""
        plain, score = claim(self.body, "sides"), claim(self.score, "fast")
        cells = fast_cells(plain[0]) if plain else None
        if cells is None or score is None or type(self.join) is not nn.Linear:
            return None
        return FastRecurrentDecoder(embed, cells, score, self.join, self.input_feeding, self.first)


class RecurrentOptions(NetworkOptions):
    """Common options of recurrent encoders and decoders. None is replaced by a default."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    accepts_any_width: ClassVar[bool] = True
    default_layers: ClassVar[int] = 2
    recurrent: ClassVar[bool] = True
    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "lstm"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="hidden size")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    @property
    def features(self) -> dict[str, Any]:
        return {"cell": self.cell}

    @property
    def gated(self) -> bool:  # type: ignore[override]
        """Return whether the cells are gated."""
        return self.cell != "rnn"

    @property
    def weights(self) -> int:
        assert self.width and self.layers
        return 2 * GATES[self.cell] * self.layers * self.width**2

    @property
    def scale(self) -> float:
        """Return the factor of the embeddings, which are initialized with variance 1 / width."""
        return math.sqrt(self.width or 1)


class RecurrentEncoderOptions(RecurrentOptions, EncoderOptions):
    """Options of a recurrent encoder."""

    bidirectional: bool = Field(True, description="read in both directions, half the width each")

    @property
    def features(self) -> dict[str, Any]:
        return super().features | {"bidirectional": self.bidirectional}

    @model_validator(mode="after")
    def _even(self) -> "RecurrentEncoderOptions":
        if self.bidirectional and self.width and self.width % 2:
            raise ValueError(
                f"width {self.width} is odd, but two directions divide it; use {self.width + 1}"
            )
        return self

    @property
    def weights(self) -> int:
        """Return the approximate number of weights. Each direction has half the width."""
        return super().weights * 3 // 4 if self.bidirectional else super().weights

    @property
    def positions_without_context(self) -> frozenset[str]:
        return frozenset() if self.bidirectional else frozenset({"first"})

    def build(self, inputs: int | None = None) -> RecurrentEncoder:
        """Return the encoder. inputs: width of the input vectors, by default `width`."""
        assert self.width and self.layers and self.dropout is not None
        kind = Bidirectional if self.bidirectional else Recurrence
        body = kind(self.cell, inputs or self.width, self.width, self.layers, self.dropout)
        return RecurrentEncoder(body, self.dropout)


class RecurrentDecoderOptions(RecurrentOptions):
    """Options of a recurrent decoder with attention to the source."""

    default_layers: ClassVar[int] = 1
    cross: RecurrentCross | None = Field(
        None, description="attention to the source; none: only the summary vector of the encoder"
    )
    input_feeding: bool | None = Field(
        None, description="input feeding (Luong et al. 2015), slower; None: yes for images"
    )

    @property
    def features(self) -> dict[str, Any]:
        return super().features | {"attention": self.cross and self.cross.kind}

    @property
    def aligns(self) -> bool:  # type: ignore[override]
        return (self.cross or Additive()).aligns

    @property
    def weights(self) -> int:
        assert self.width
        return super().weights + 3 * self.width**2  # attention and the layer that joins it

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Return the default sizes. Bilinear attention learns faster than additive attention.

        With images, the decoder must know where it has looked to say where something else is.
        """
        kinds = {"cross": "bilinear", "input_feeding": any(stats.grid)}
        return super().default_sizes(stats, width) | kinds

    def build(self, memory_width: int, inputs: int | None = None) -> RecurrentDecoder:
        """Return the decoder. inputs: width of the input vectors, by default `width`."""
        assert self.width and self.layers and self.dropout is not None
        fed = bool(self.input_feeding)
        size = (inputs or self.width) + fed * self.width
        return RecurrentDecoder(
            Recurrence(self.cell, size, self.width, self.layers, self.dropout),
            (self.cross or Additive()).build(self.width, memory_width),
            (self.width, memory_width),
            fed,
            self.dropout,
        )
