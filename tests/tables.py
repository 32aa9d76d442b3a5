"""Models whose probabilities are written down, so that every search can be worked out by hand.

A table says what follows what: `{"": {"a": 0.6, "b": 0.4}, "a": {".": 1.0}}`. The dot is the end.
What follows is looked up by the whole text so far, else by its last letter; else it is the end.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import EOS, PAD
from regard.data.tensors.state import State
from regard.nn.capture_hooks import active_recorder
from regard.search import Beam, Hypothesis, Sample, SearchRequest, TokenConstraints

Table = dict[str, dict[str, float]]
LETTERS = "abcdefgh"
FIRST = 5  # the number of the letter a
SIZE = FIRST + len(LETTERS)


def ids(text: str) -> tuple[int, ...]:
    """Letters as tokens."""
    return tuple(EOS if letter == "." else FIRST + LETTERS.index(letter) for letter in text)


def text(hypothesis: Hypothesis) -> str:
    """Tokens as letters."""
    return "".join(LETTERS[token - FIRST] for token in hypothesis.tokens)


class Tables:
    """A stepper in which sentence i follows table i; `looks`: its attention after a text."""

    def __init__(self, *tables: Table, looks: dict[str, list[float]] | None = None) -> None:
        self.tables, self.looks = tables, looks

    def source(self, lengths: Sequence[int] | None = None) -> Padded:
        """The sentences, each as its number again and again."""
        lengths = lengths or [2] * len(self.tables)
        return pad([[FIRST + i] * n for i, n in enumerate(lengths)])

    def start(self, source: Padded) -> State:
        memory = (source.data[:, 0] - FIRST, source.mask)
        return State(memory, torch.empty(len(source.data), 0, dtype=torch.long))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        which, mask = state.memory
        k = len(tokens) // len(which)
        before = state.past
        seen = torch.cat([before, tokens], 1)
        start = before.shape[1]
        logits = torch.full((*tokens.shape, SIZE), float("-inf"))
        attention = torch.zeros(len(tokens), 1, tokens.shape[1], mask.shape[1])
        for row, t in product(range(len(tokens)), range(tokens.shape[1])):
            there = [s for s in seen[row, 1 : start + t + 1].tolist() if s not in (PAD, EOS)]
            so_far = "".join(LETTERS[s - FIRST] for s in there)
            table = self.tables[int(which[row // k])]
            for letter, p in _after(table, so_far).items():
                logits[row, t, ids(letter)[0]] = math.log(p)
            if self.looks is not None:
                weights = torch.tensor(self.looks.get(so_far, [1.0]))
                attention[row, 0, t, : len(weights)] = weights
        watching = active_recorder()
        if watching is not None:
            watching.cross.append(attention)
        return logits, State(state.memory, seen)


def _after(table: Table, so_far: str) -> dict[str, float]:
    if so_far in table:
        return table[so_far]
    return table.get(so_far[-1:], {".": 1.0}) if so_far else table[""]


def run(
    search: Beam | Sample,
    *tables: Table,
    limit: int | list[int] = 10,
    nbest: int = 1,
    constraints: list[TokenConstraints] | None = None,
    **more: Any,
) -> list[list[Hypothesis]]:
    """The outputs of sentences that follow these tables."""
    stepper = Tables(*tables, looks=more.get("looks"))
    limits = torch.tensor(limit if isinstance(limit, list) else [limit] * len(tables))
    source = stepper.source(more.get("lengths"))
    return search.run(stepper, SearchRequest(source, limits, nbest, constraints=constraints))


def texts(found: list[Hypothesis]) -> list[str]:
    return [text(one) for one in found]


def probabilities(found: list[Hypothesis]) -> list[float]:
    """The probabilities of outputs."""
    return [math.exp(one.log_probability) for one in found]


def constraint(prefix: str = "", require: str = "", ban: str = "") -> TokenConstraints:
    """A constraint in letters; several words with spaces between."""
    return TokenConstraints(
        ids(prefix), tuple(map(ids, require.split())), tuple(map(ids, ban.split()))
    )


def everything(table: Table, longest: int) -> dict[str, float]:
    """All outputs of at most so many letters, with their probabilities."""
    found: dict[str, float] = {}
    open_ones = {"": 1.0}
    for _ in range(longest + 1):
        going: dict[str, float] = {}
        for so_far, p in open_ones.items():
            for letter, q in _after(table, so_far).items():
                (found if letter == "." else going)[so_far + letter.strip(".")] = p * q
        open_ones = going
    return {output: p for output, p in found.items() if len(output) <= longest}
