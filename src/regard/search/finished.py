"""Outputs that have ended, and whether a sentence has enough of them.

B sentences in the batch, W beams of each.
"""

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.live_beams import LiveBeams
from regard.search.scoring import Scoring
from regard.search.selection import Chosen, Continuations

NO = float("-inf")


class Finished:
    """The outputs of each sentence that have ended.

    A sentence is done when no live beam can still enter its `nbest` (optimal), or earlier:
    beam_full: when `beam` hypotheses are finished;
    no_gain:   then, or when no live beam would enter the `nbest` at its current length;
    first:     when `nbest` are finished and the best hypothesis of the last step is one of them.
    """

    def __init__(
        self, sentences: int, beam: int, nbest: int, stopping: str, scoring: Scoring
    ) -> None:
        self.beam, self.nbest, self.stopping, self.scoring = beam, nbest, stopping, scoring
        self.found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.count = torch.zeros(sentences, dtype=torch.long)  # (B,)
        self.best = torch.full((sentences, nbest), NO, dtype=torch.double)  # (B, nbest)
        self.leading = torch.zeros(sentences, dtype=torch.bool)  # (B,) the best one ended

    def add(self, live: LiveBeams, found: Continuations, chosen: Chosen) -> None:
        """Takes in what ended at this step; `live` is as it was before it."""
        over = chosen.over.cpu().clone()
        self.leading = over[:, 0].clone()
        places = over.nonzero().tolist()
        if not places:
            return
        ended = chosen.ended.cpu()
        length = live.tokens.shape[-1] + 1
        total, gained, parent = (
            x.cpu().gather(1, ended) for x in (found.total, found.gained, found.parent)
        )  # (B, E) each
        cover = live.cover
        if cover is not None:
            cover = cover.cpu().gather(1, parent[..., None].expand(-1, -1, cover.shape[-1]))
        score = self.scoring.score(total, length, cover)
        columns = (parent.tolist(), gained.tolist(), score.tolist())
        for b, e in places:
            if not self._note(live, b, *(column[b][e] for column in columns)):
                over[b, e] = False
        self.count = self.count + over.sum(1)
        self.best = torch.cat([self.best, score.masked_fill(~over, NO)], 1).topk(self.nbest).values

    def _note(self, live: LiveBeams, b: int, beam: int, gained: float, score: float) -> bool:
        """Keeps an output; False where it is there already: groups may find the same one."""
        tokens = tuple(live.tokens[b, beam].tolist())
        found = self.found[live.rows[b]]
        if any(one.tokens == tokens for one in found):
            return False
        scores = (*live.token_logprobs[b, beam].tolist(), gained)
        cut = len(tokens) + 1 >= int(live.limits[b])
        found.append(Hypothesis(tokens, score, scores, cut))
        return True

    def going(self, live: LiveBeams) -> Tensor | None:
        """(B,) True where a sentence goes on; None where all do. `live`: as it is now."""
        upper_bound = self.scoring.upper_bound(live.total, live.limits).amax(1).cpu()
        least = self.best[:, -1]
        settled = least >= upper_bound
        if self.stopping in ("beam_full", "no_gain"):
            settled |= self.count >= self.beam
        if self.stopping == "no_gain":
            now = live.tokens.shape[-1]
            settled |= least >= self.scoring.score(live.total.amax(1).cpu(), now, None)
        if self.stopping == "first":
            settled |= self.leading & (self.count >= self.nbest)
        return ~settled.to(live.total.device) if bool(settled.any()) else None

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences of the batch go on."""
        at = sentences.cpu()
        self.count, self.best, self.leading = self.count[at], self.best[at], self.leading[at]

    def without(self, rows: list[int]) -> dict[int, list[Hypothesis]]:
        """The best of each sentence that is settled; rows: those that are not."""
        going = set(rows)
        return {row: one for row, one in enumerate(self.hypotheses()) if row not in going}

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The best of each sentence, best first."""
        return [sorted(one, key=lambda h: -h.score)[: self.nbest] for one in self.found]
