"""The record of a search: every continuation that was looked at, and what became of it."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.search.selection import Chosen, Continuations

BranchStatus = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True)
class Branch:
    """A continuation. prefix: the tokens before it; status: what the search did with it."""

    prefix: tuple[int, ...]
    token: int
    gained: float
    total: float
    status: BranchStatus


@dataclass
class Trace:
    """The branches of each sentence, step by step: `steps[sentence][step]`."""

    steps: dict[int, list[list[Branch]]] = field(default_factory=dict)

    def add(self, rows: list[int], tokens: Tensor, found: Continuations, chosen: Chosen) -> None:
        """Notes one step. tokens: (B, W, t), as they were before it."""
        for b, row in enumerate(rows):
            over = chosen.over[b].tolist()
            ended = {p for p, o in zip(chosen.ended[b].tolist(), over, strict=True) if o}
            dead = chosen.dead[b].tolist()
            goes = {p for p, d in zip(chosen.goes[b].tolist(), dead, strict=True) if not d}
            prefixes = [tuple(beam) for beam in tokens[b].tolist()]
            branches = []
            for place, (parent, token, gained, total) in enumerate(
                zip(*(x[b].tolist() for x in found), strict=True)
            ):
                status: BranchStatus = (
                    "finished" if place in ended else "kept" if place in goes else "pruned"
                )
                if total > float("-inf"):
                    branches.append(Branch(prefixes[parent], token, gained, total, status))
            self.steps.setdefault(row, []).append(branches)
