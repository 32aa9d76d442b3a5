"""The trace of a beam search: every continuation that it considered, and its status."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from regard.search.selection import Continuations, Selection

BranchStatus = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True)
class Branch:
    """A continuation of a beam by one token. prefix: tokens of the beam."""

    prefix: tuple[int, ...]
    token: int
    logprob: float
    total: float
    status: BranchStatus


@dataclass
class Trace:
    """The branches of each sentence and step: `steps[sentence][step]`."""

    steps: dict[int, list[list[Branch]]] = field(default_factory=dict)

    def add(
        self, rows: list[int], tokens: Tensor, found: Continuations, selection: Selection
    ) -> None:
        """Record one step. tokens: the beams (B, W, t) before the step."""
        for b, row in enumerate(rows):
            columns = (column[b].tolist() for column in selection)
            kept_indices, finished_indices, is_finished, is_empty = columns
            finished = {i for i, flag in zip(finished_indices, is_finished, strict=True) if flag}
            kept = {i for i, flag in zip(kept_indices, is_empty, strict=True) if not flag}
            prefixes = [tuple(beam) for beam in tokens[b].tolist()]
            branches = []
            for i, (parent, token, logprob, total) in enumerate(
                zip(*(x[b].tolist() for x in found), strict=True)
            ):
                status: BranchStatus = (
                    "finished" if i in finished else "kept" if i in kept else "pruned"
                )
                if total > float("-inf"):
                    branches.append(Branch(prefixes[parent], token, logprob, total, status))
            self.steps.setdefault(row, []).append(branches)
