"""The lean twin of a recurrent decoder.

The join of a state and its context is linear before its tanh, so the memory goes through it once,
before the first step, and no step multiplies a context with a matrix.

B sentences, k beams of each, R = k * B rows, S source length, D width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.models.generator import Generator
from regard.models.lean.bare import bare_bias
from regard.models.lean.cells import BareCell, bare_cells, bare_reader, tanh
from regard.models.lean.stepper import LeanStepper
from regard.models.recurrent import RecurrentDecoder
from regard.nn.attention_scores import AdditiveScore, BilinearScore, DotScore, FixedContext

Score = Callable[[Tensor, Tensor], Tensor]  # states (R, D), keys (B, S, any) to (B, k, S)


def recurrent_twin(model: Generator) -> LeanStepper | None:
    """The twin of a generator with a plain recurrent decoder, on a CPU; None for others."""
    decoder = model.decoder
    assert isinstance(decoder, RecurrentDecoder)
    cells = bare_cells(decoder.body.layers)
    known = type(decoder.score) in (FixedContext, AdditiveScore, BilinearScore, DotScore)
    plain = type(decoder.join) is nn.Linear and known and decoder.join.weight.device.type == "cpu"
    return RecurrentStepper(model, decoder, cells) if plain and cells is not None else None


class RecurrentStepper(LeanStepper):
    """A generator with a recurrent decoder."""

    def __init__(self, model: Generator, decoder: RecurrentDecoder, cells: list[BareCell]) -> None:
        super().__init__(model)
        self.decoder, self.cells, width = decoder, cells, cells[0].width
        first, size = cells[0], cells[0].input.shape[0] - decoder.feeding * width
        first.input, self.fed = first.input.split([size, decoder.feeding * width])
        self.read = bare_reader(model.target, first)
        weight = decoder.join.weight.detach()
        self.own, self.context = weight[:, :width].t(), weight[:, width:]
        self.score = _score(decoder.score)
        self.project: Any = getattr(decoder.score, "project", None)

    def begin(self, memory: Padded) -> State:
        """Keys and contexts are computed here; the bridge is crossed on the first call."""
        fixed = self.score is None
        whole = fixed or bool(memory.mask.all())
        seen = memory.pooled().unsqueeze(1) if fixed else memory.data  # (B, 1 or S, M)
        parts = {
            "keys": None if fixed else self.project(memory),
            "values": linear(seen, self.context, self.decoder.join.bias),
            "bias": None if whole else bare_bias(memory.mask, memory.data)[:, 0],  # (B, 1, S)
        }
        return State({"encoded": memory, **parts}, self.decoder.start(memory).past)

    def row(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """One symbol for each row (R, 1) to vectors (R, D), and the new state."""
        hidden, last = state.past["hidden"], state.past["last"]
        if hidden is None:
            hidden = self.decoder.first(state.memory["encoded"], len(symbols))
        gates = self.read(symbols[:, 0])
        if last is not None:
            gates = gates.addmm(last[:, 0], self.fed)
        after = [self.cells[0].advance(gates, tuple(part[:, 0] for part in hidden))]
        x = after[0][0]
        for i, cell in enumerate(self.cells[1:], 1):
            after.append(cell.advance(cell.gates(x), tuple(part[:, i] for part in hidden)))
            x = x + after[i][0]
        out = self._attend(x, state)
        hidden = tuple(torch.stack(part, 1) for part in zip(*after, strict=True))
        fed = out.unsqueeze(1) if self.decoder.feeding else None
        return out, State(state.memory, {"hidden": hidden, "last": fed, "score": None})

    def _attend(self, x: Tensor, state: State) -> Tensor:
        """States (R, D) joined with their contexts: (R, D)."""
        values, bias = state.memory["values"], state.memory["bias"]
        B, k = len(values), len(x) // len(values)
        if self.score is None:
            found = values.expand(B, k, -1)
        else:
            scores = self.score(x, state.memory["keys"])
            weights = (scores if bias is None else scores.add_(bias)).softmax(-1)
            found = torch.bmm(weights, values)
        return tanh(torch.addmm(found.reshape(x.shape), x, self.own))


def _score(score: nn.Module) -> Score | None:
    """How a state scores the places of the source, up to what is the same for all of them."""
    if isinstance(score, FixedContext):
        return None
    if isinstance(score, AdditiveScore):
        weight, bias = 2.0 * score.query.weight.detach().t(), 2.0 * score.query.bias.detach()
        weigh = 2.0 * score.weigh.weight.detach()[0]

        def additive(x: Tensor, keys: Tensor) -> Tensor:
            """The ones of the tanh are the same for all places, so its sigmoid will do."""
            query = torch.addmm(bias, x, weight).view(len(keys), -1, 1, len(weigh))
            return torch.add(query, keys.unsqueeze(1), alpha=2.0).sigmoid_() @ weigh

        return additive
    factor = score.factor if isinstance(score, DotScore) else 1.0

    def product(x: Tensor, keys: Tensor) -> Tensor:
        return torch.bmm(x.view(len(keys), -1, x.shape[1]) * factor, keys.transpose(1, 2))

    return product
