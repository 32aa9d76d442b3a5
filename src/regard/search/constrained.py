"""Beam search with required phrases, by dynamic beam allocation (Post and Vilar 2018).

Slots of the beam are divided among hypotheses by how many required tokens they contain.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.core.errors import UserError
from regard.data.tensors.special import EOS
from regard.search.hypothesis import TokenConstraints
from regard.search.selection import Continuations, Selection, Selector

# Number of matched tokens per phrase: the length of the longest prefix of the phrase that the beam
# ends with. If all tokens are matched, the phrase is complete and stays complete.
ConstraintProgress = tuple[int, ...]


class ConstraintsNotMet(UserError):
    """Error: no hypothesis for a source contains all required words. row: index of the source."""

    def __init__(self, row: int, where: str = "") -> None:
        super().__init__(
            f"{where or f'source {row + 1}'}: no hypothesis contains all required words",
            help="drop a required word or a ban, or increase --beam",
        )
        self.args = (row, where)  # for pickle
        self.row = row


class Candidate(NamedTuple):
    """A continuation of a beam.

    at: index among all continuations of the sentence. progress: matches after the token.
    """

    total: float
    at: int
    token: int
    progress: ConstraintProgress


class DynamicBeamAllocation:
    """A selector that uses `base`, except for sentences with required phrases.

    It sorts candidates into banks by the number of required tokens that they contain. Each bank
    contributes its best candidate in turn, starting with the bank of most tokens. EOS is allowed
    only if all phrases are complete. A candidate is dropped if its missing tokens do not fit
    before the length limit.
    """

    joint = False

    def __init__(
        self, base: Selector, constraints: Sequence[TokenConstraints], limits: list[int]
    ) -> None:
        self.base, self.limits = base, limits
        self.num_candidates = max(base.num_candidates, 2)
        self.phrases = {row: one.require for row, one in enumerate(constraints) if one.require}
        self.progress: dict[int, list[ConstraintProgress]] = {
            row: [(0,) * len(phrases)] for row, phrases in self.phrases.items()
        }
        self.length = 0

    def required_tokens(self, rows: list[int], beams: int) -> list[list[list[int]]]:
        """Return the next token of each incomplete phrase, per sentence and beam."""
        return [
            [self._next_tokens(row, progress) for progress in self.progress[row]]
            if row in self.progress
            else [[]] * beams
            for row in rows
        ]

    def _next_tokens(self, row: int, progress: ConstraintProgress) -> list[int]:
        pairs = zip(self.phrases[row], progress, strict=True)
        return [phrase[matched] for phrase, matched in pairs if matched < len(phrase)]

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection:
        self.length += 1
        selection = self.base(found, beam, rows)
        for b, row in enumerate(rows):
            if row in self.phrases:
                self._select_sentence(found, b, row, selection)
        return selection

    def _select_sentence(
        self, found: Continuations, b: int, row: int, selection: Selection
    ) -> None:
        """Overwrite the selection for sentence b of the batch, number `row` of the request."""
        N, candidates = selection.kept.shape[1], self._candidates(found, b, row)
        kept, finished = self._allocate(candidates, N, selection.is_finished.shape[1])
        filler = N - len(kept)
        self.progress[row] = [one.progress for one in kept] + [self.progress[row][0]] * filler
        indices = [one.at for one in kept] + [0] * filler
        selection.kept[b] = torch.tensor(indices, device=found.token.device)
        selection.is_finished[b] = False
        for e, one in enumerate(finished):
            selection.finished[b, e], selection.is_finished[b, e] = one.at, True
        selection.is_empty[b] = torch.arange(N, device=selection.is_empty.device) >= len(kept)

    def _candidates(self, found: Continuations, b: int, row: int) -> list[Candidate]:
        """Return the distinct continuations that can still meet the constraints, best first."""
        left = self.limits[row] - self.length - 1  # tokens that still fit after this one and EOS
        unique: dict[tuple[int, int], Candidate] = {}
        columns = (found.parent[b].tolist(), found.token[b].tolist(), found.total[b].tolist())
        for index, (beam, token, total) in enumerate(zip(*columns, strict=True)):
            progress = self._after(row, self.progress[row][beam], token)
            missing = self._missing(row, progress)
            possible = missing == 0 if token == EOS else missing <= left
            if possible and total > float("-inf"):
                unique.setdefault((beam, token), Candidate(total, index, token, progress))
        return sorted(unique.values(), key=lambda one: -one.total)

    def _missing(self, row: int, progress: ConstraintProgress) -> int:
        """Return a number of tokens that suffices to complete all phrases.

        Only the longest match is assumed to continue. All other incomplete phrases start over,
        because phrases with a common prefix ("ab", "ac" after "a") cannot all continue.
        """
        pairs = zip(self.phrases[row], progress, strict=True)
        open_ones = [(phrase, matched) for phrase, matched in pairs if matched < len(phrase)]
        longest = max((matched for _, matched in open_ones), default=0)
        return sum(len(phrase) for phrase, _ in open_ones) - longest

    def _after(self, row: int, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        """Return the number of matched tokens per phrase after one more token."""
        pairs = zip(self.phrases[row], progress, strict=True)
        return tuple(
            matched if matched == len(phrase) else _match(phrase, matched, token)
            for phrase, matched in pairs
        )

    @staticmethod
    def _allocate(
        candidates: list[Candidate], beam: int, max_finished: int
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return the kept and the finished candidates, taken from the banks in turn."""
        banks: dict[int, list[Candidate]] = defaultdict(list)
        for one in candidates:
            banks[sum(one.progress)].append(one)
        kept: list[Candidate] = []
        finished: list[Candidate] = []
        while banks and len(kept) < beam:
            for bank in sorted(banks, reverse=True):
                one = banks[bank].pop(0)
                if one.token != EOS:
                    kept.append(one)
                elif len(finished) < max_finished:
                    finished.append(one)
                if not banks[bank]:
                    del banks[bank]
        return kept[:beam], finished


def _match(phrase: tuple[int, ...], matched: int, token: int) -> int:
    """Return the length of the longest phrase prefix that the output ends with after `token`.

    For the phrase "aab", another "a" after the match "aa" leaves the match "aa".
    """
    tail = (*phrase[:matched], token)
    return next(n for n in range(len(tail), -1, -1) if tail[len(tail) - n :] == phrase[:n])
