"""Words that must appear: beams are shared out over how much of them is there already.

(Post and Vilar 2018, "dynamic beam allocation".) N beams to go on with.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.core.errors import UserError
from regard.data.tensors.special import EOS
from regard.search.hypothesis import TokenConstraints
from regard.search.selection import Choose, Chosen, Continuations

Met = tuple[int, ...]  # how many tokens of each phrase stand at the end of a beam; all: it is met


class ConstraintsNotMet(UserError):
    """No hypothesis for a source contains all required words. row: index of the source."""

    def __init__(self, row: int, where: str = "") -> None:
        super().__init__(
            f"{where or f'source {row + 1}'}: no hypothesis contains all required words",
            help="drop a required word or a ban, or increase --beam",
        )
        self.args = (row, where)  # for pickle
        self.row = row


class Candidate(NamedTuple):
    """A continuation. place: among those found; met: after its token."""

    total: float
    place: int
    token: int
    met: Met


class Must:
    """Chooses as `usual` does for sentences without wishes; the others come to have all theirs.

    Candidates are sorted into banks by the number of wished tokens that they have. The banks
    are asked in turn, the fullest first, for their best. The end is open only to those who have
    all, and a beam may not go on so long that the rest no longer fits before its limit.
    """

    joint = False

    def __init__(
        self, usual: Choose, wishes: Sequence[TokenConstraints], limits: list[int]
    ) -> None:
        self.usual, self.limits = usual, limits
        self.spare = max(usual.spare, 2)
        self.phrases = {row: wish.require for row, wish in enumerate(wishes) if wish.require}
        self.met: dict[int, list[Met]] = {r: [(0,) * len(p)] for r, p in self.phrases.items()}
        self.length = 0

    def extra(self, rows: list[int], beams: int) -> list[list[list[int]]]:
        """For each beam of each sentence, the tokens that would go on with a phrase."""
        return [
            [self._next(row, met) for met in self.met[row]] if row in self.met else [[]] * beams
            for row in rows
        ]

    def _next(self, row: int, met: Met) -> list[int]:
        pairs = zip(self.phrases[row], met, strict=True)
        return [phrase[have] for phrase, have in pairs if have < len(phrase)]

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen:
        self.length += 1
        chosen = self.usual(found, beam, rows)
        for b, row in enumerate(rows):
            if row in self.phrases:
                self._one(found, b, row, chosen)
        return chosen

    def _one(self, found: Continuations, b: int, row: int, chosen: Chosen) -> None:
        """Overwrites the choice for one sentence."""
        N = chosen.goes.shape[1]
        goes, ended = self._pick(self._candidates(found, b, row), N, chosen.over.shape[1])
        self.met[row] = [one.met for one in goes] + [self.met[row][0]] * (N - len(goes))
        places = [one.place for one in goes] + [0] * (N - len(goes))
        chosen.goes[b] = torch.tensor(places, device=found.token.device)
        chosen.over[b] = False
        for e, one in enumerate(ended):
            chosen.ended[b, e], chosen.over[b, e] = one.place, True
        chosen.dead[b] = torch.arange(N, device=chosen.dead.device) >= len(goes)

    def _candidates(self, found: Continuations, b: int, row: int) -> list[Candidate]:
        """What may come next in a sentence, best first, each once."""
        left = self.limits[row] - self.length - 1  # tokens that still fit, after this and the end
        seen: dict[tuple[int, int], Candidate] = {}
        columns = (found.parent[b].tolist(), found.token[b].tolist(), found.total[b].tolist())
        for place, (beam, token, total) in enumerate(zip(*columns, strict=True)):
            met = self._after(row, self.met[row][beam], token)
            missing = self._missing(row, met)
            possible = missing == 0 if token == EOS else missing <= left
            if possible and total > float("-inf"):
                seen.setdefault((beam, token), Candidate(total, place, token, met))
        return sorted(seen.values(), key=lambda one: -one.total)

    def _missing(self, row: int, met: Met) -> int:
        """The tokens that surely suffice: the phrase that is furthest, then the others whole.

        Phrases that have begun together ("ab", "ac" after "a") cannot all go on.
        """
        unmet = [(p, h) for p, h in zip(self.phrases[row], met, strict=True) if h < len(p)]
        return sum(len(p) for p, _ in unmet) - max((h for _, h in unmet), default=0)

    def _after(self, row: int, met: Met, token: int) -> Met:
        """What is met after one more token."""
        pairs = zip(self.phrases[row], met, strict=True)
        return tuple(have if have == len(p) else _begun(p, have, token) for p, have in pairs)

    @staticmethod
    def _pick(
        candidates: list[Candidate], beam: int, ends: int
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Those that go on and those that end, taken in turns from the banks."""
        banks: dict[int, list[Candidate]] = defaultdict(list)
        for one in candidates:
            banks[sum(one.met)].append(one)
        goes: list[Candidate] = []
        ended: list[Candidate] = []
        while banks and len(goes) < beam:
            for bank in sorted(banks, reverse=True):
                one = banks[bank].pop(0)
                if one.token != EOS:
                    goes.append(one)
                elif len(ended) < ends:
                    ended.append(one)
                if not banks[bank]:
                    del banks[bank]
        return goes[:beam], ended


def _begun(phrase: tuple[int, ...], have: int, token: int) -> int:
    """How much of a phrase stands at the end, when `have` did and a token came.

    After "aa" of "aab" another a leaves "aa", not "a" alone.
    """
    tail = (*phrase[:have], token)
    return next(n for n in range(len(tail), -1, -1) if tail[len(tail) - n :] == phrase[:n])
