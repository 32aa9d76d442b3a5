"""Recurrent encoders and decoders, and their settings.

B sentences, k beams, R = k * B rows, S source length, T target length, D width, M memory width.
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
from regard.nn.attention_scores import Additive, RecurrentCross, Score
from regard.nn.capture_hooks import merge_steps
from regard.nn.dropout import Dropout
from regard.nn.fast import claim
from regard.nn.fast_cells import fast_cells
from regard.nn.recurrent import Bidirectional, Cell, Hidden, Recurrence, final_states


class RecurrentEncoder(nn.Module):
    """Recurrent layers; the summary is the final state (of each direction)."""

    def __init__(self, body: Recurrence | Bidirectional, dropout: float) -> None:
        super().__init__()
        self.body = body
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return (B, S, D) for (B, S, inputs)."""
        x = self.dropout(source.data)
        both = isinstance(self.body, Bidirectional)
        states = self.body(x, source.mask) if both else self.body(x)[0]
        found = Padded(self.dropout(states), source.mask)
        return found._replace(summary=final_states(found, both))

    def fast(self, frontend: Frontend) -> Callable[[Padded], Padded] | None:
        """Return a fast path with the lookup of the frontend, if the layers are torch's."""
        embed = claim(frontend, "lookup")
        sides = [fast_cells(side) for side in claim(self.body, "sides") or ()]
        known = [side for side in sides if side is not None]
        if embed is None or not known or len(known) < len(sides):
            return None
        return FastRecurrentEncoder(embed, known)


class RecurrentDecoder(nn.Module):
    """Recurrent layers, then attention to the source: out = tanh(W [h; context]).

    (Luong et al. 2015, eq. 5.) The initial state is tanh of a linear layer of the source summary
    (Bahdanau et al. 2015, A.2.2). With `input_feeding`, the previous output is part of the next
    input (Luong 3.3); training is then sequential and slower.
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
        """Return the state before the first token; the first call computes the initial state."""
        past = {"hidden": None, "last": None, "score": None}
        return State({"encoded": memory, "keys": None}, past)

    def forward(self, x: Tensor, state: State, real: Tensor | None = None) -> tuple[Tensor, State]:
        """Return the output (R, T, D) for x (R, T, D), and the new state."""
        x, state = self.dropout(x), self._initialized(x, state)
        if not self.input_feeding and not self.score.sequential:
            return self._read(x, state)
        steps = []
        with merge_steps():
            for t in range(x.shape[1]):
                out, state = self._read(x[:, t : t + 1], state)
                steps.append(out)
        return torch.cat(steps, 1), state

    def _initialized(self, x: Tensor, state: State) -> State:
        """Return the state with initial hidden vectors, and zeros for the previous output."""
        past = state.past
        if past["hidden"] is None:
            past = past | {"hidden": self.first(state.memory["encoded"], len(x))}
        if self.input_feeding and past["last"] is None:
            past = past | {"last": x.new_zeros(len(x), 1, self.join.out_features)}
        return State(state.memory, past)

    def _read(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the output for tokens x (R, T, D); with input feeding, T is 1."""
        memory, past = state.memory["encoded"], state.past
        fed = torch.cat([x, past["last"]], -1) if self.input_feeding else x
        h, hidden = self.body(fed, past["hidden"])
        context, keys, score = self.score(h, memory, state.memory["keys"], past["score"])
        out = self.dropout(torch.tanh(self.join(torch.cat([h, context], -1))))
        last = out if self.input_feeding else None
        after: Tree = {"hidden": hidden, "last": last, "score": score}
        return out, State({"encoded": memory, "keys": keys}, after)

    def first(self, memory: Padded, rows: int) -> Hidden:
        """Return the initial hidden state (R, L, D) of each part, from the source."""
        first = torch.tanh(self.bridge(memory.pooled()))  # (B, parts * L * D)
        first = first.repeat_interleave(rows // len(first), 0)
        shape = (self.body.parts, len(self.body.layers), -1)
        return first.unflatten(-1, shape).unbind(1)

    def fast(self, embed: nn.Module) -> FastDecoder | None:
        """Return a fast path with the embedding of its tokens, if its parts support it."""
        plain, score = claim(self.body, "sides"), claim(self.score, "fast")
        cells = fast_cells(plain[0]) if plain else None
        if cells is None or score is None or type(self.join) is not nn.Linear:
            return None
        return FastRecurrentDecoder(embed, cells, score, self.join, self.input_feeding, self.first)


class RecurrentOptions(NetworkOptions):
    """Common options of recurrent encoders and decoders; None is set from the data."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    accepts_any_width: ClassVar[bool] = True
    default_layers: ClassVar[int] = 2
    recurrent: ClassVar[bool] = True
    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "lstm"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="width of the vectors")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    @property
    def features(self) -> dict[str, Any]:
        return {"cell": self.cell}

    @property
    def gated(self) -> bool:  # type: ignore[override]
        """Whether its cells are gated."""
        return self.cell != "rnn"

    @property
    def scale(self) -> float:
        """Return the factor of the embeddings, which are initialized with variance 1 / width."""
        return math.sqrt(self.width or 1)


class RecurrentEncoderOptions(RecurrentOptions, EncoderOptions):
    """Options of recurrent layers over the source."""

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
    def positions_without_context(self) -> frozenset[str]:
        return frozenset() if self.bidirectional else frozenset({"first"})

    def build(self, inputs: int | None = None) -> RecurrentEncoder:
        """Return the encoder of vectors of width `inputs`, or of its own; sizes must be set."""
        assert self.width and self.layers and self.dropout is not None
        kind = Bidirectional if self.bidirectional else Recurrence
        body = kind(self.cell, inputs or self.width, self.width, self.layers, self.dropout)
        return RecurrentEncoder(body, self.dropout)


class RecurrentDecoderOptions(RecurrentOptions):
    """Options of recurrent layers with attention to the source."""

    default_layers: ClassVar[int] = 1
    cross: RecurrentCross | None = Field(
        None, description="attention to the source; none: only the summary vector of the encoder"
    )
    input_feeding: bool = Field(False, description="input feeding (Luong et al. 2015); slower")

    @property
    def features(self) -> dict[str, Any]:
        return super().features | {"attention": self.cross and self.cross.kind}

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Return the default sizes; large data gets bilinear attention, which is faster."""
        cross = "bilinear" if stats.is_large else "additive"
        return super().default_sizes(stats, width) | {"cross": cross}

    def build(self, memory_width: int, inputs: int | None = None) -> RecurrentDecoder:
        """Return the decoder over memory of this width; inputs: their width (default: its own)."""
        assert self.width and self.layers and self.dropout is not None
        size = (inputs or self.width) + (self.width if self.input_feeding else 0)
        return RecurrentDecoder(
            Recurrence(self.cell, size, self.width, self.layers, self.dropout),
            (self.cross or Additive()).build(self.width, memory_width),
            (self.width, memory_width),
            self.input_feeding,
            self.dropout,
        )
