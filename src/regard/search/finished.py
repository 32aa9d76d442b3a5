"""Finished hypotheses of a beam search, and the criteria that end the search for a sentence.

B sentences in the batch, W beams per sentence, E continuations that may finish at a step.
"""

import torch
from torch import Tensor

from regard.search.hypothesis import Hypothesis
from regard.search.live_beams import LiveBeams
from regard.search.scoring import Scoring
from regard.search.selection import Continuations, Selection

IMPOSSIBLE = float("-inf")


class Finished:
    """The finished hypotheses of each sentence.

    A sentence is done when no live beam can still enter its `nbest` best hypotheses (optimal).
    The other values of `stopping` may end the search earlier:
    beam_full: when `beam` hypotheses are finished.
    no_gain:   as beam_full, or when no live beam would enter the `nbest` at its current length.
    first:     when `nbest` hypotheses are finished, among them the best of the last step.
    """

    def __init__(
        self, sentences: int, beam: int, nbest: int, stopping: str, scoring: Scoring
    ) -> None:
        self.beam, self.nbest, self.stopping, self.scoring = beam, nbest, stopping, scoring
        self.by_row: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.count = torch.zeros(sentences, dtype=torch.long)  # (B,)
        self.best = torch.full((sentences, nbest), IMPOSSIBLE, dtype=torch.double)  # (B, nbest)
        self.best_finished = torch.zeros(sentences, dtype=torch.bool)  # (B,) at the last step

    def add(self, live: LiveBeams, found: Continuations, selection: Selection) -> None:
        """Add the hypotheses that finish at this step. live: the beams before the step."""
        is_finished = selection.is_finished.cpu().clone()
        self.best_finished = is_finished[:, 0].clone()
        positions = is_finished.nonzero().tolist()
        if not positions:
            return
        finished = selection.finished.cpu()
        length = live.tokens.shape[-1] + 1
        total, logprob, parent = (
            x.cpu().gather(1, finished) for x in (found.total, found.logprob, found.parent)
        )  # (B, E) each
        cover = live.cover
        if cover is not None:
            cover = cover.cpu().gather(1, parent[..., None].expand(-1, -1, cover.shape[-1]))
        score = self.scoring.score(total, length, cover)
        columns = (parent.tolist(), logprob.tolist(), score.tolist())
        for b, e in positions:
            if not self._add_one(live, b, *(column[b][e] for column in columns)):
                is_finished[b, e] = False
        self.count = self.count + is_finished.sum(1)
        scores = torch.cat([self.best, score.masked_fill(~is_finished, IMPOSSIBLE)], 1)
        self.best = scores.topk(self.nbest).values

    def _add_one(self, live: LiveBeams, b: int, beam: int, logprob: float, score: float) -> bool:
        """Add a hypothesis. Return False if another beam group has already found it."""
        tokens = tuple(live.tokens[b, beam].tolist())
        hypotheses = self.by_row[live.rows[b]]
        if any(one.tokens == tokens for one in hypotheses):
            return False
        logprobs = (*live.token_logprobs[b, beam].tolist(), logprob)
        truncated = len(tokens) + 1 >= int(live.limits[b])
        hypotheses.append(Hypothesis(tokens, score, logprobs, truncated))
        return True

    def unfinished(self, live: LiveBeams) -> Tensor | None:
        """Return which sentences (B,) are not done, or None if none is done.

        live: the beams after the step.
        """
        upper_bound = self.scoring.upper_bound(live.total, live.limits).amax(1).cpu()
        worst = self.best[:, -1]
        done = worst >= upper_bound
        if self.stopping in ("beam_full", "no_gain"):
            done |= self.count >= self.beam
        if self.stopping == "no_gain":
            length = live.tokens.shape[-1]
            done |= worst >= self.scoring.score(live.total.amax(1).cpu(), length, None)
        if self.stopping == "first":
            done |= self.best_finished & (self.count >= self.nbest)
        return ~done.to(live.total.device) if bool(done.any()) else None

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences of the batch."""
        at = sentences.cpu()
        self.count, self.best = self.count[at], self.best[at]
        self.best_finished = self.best_finished[at]

    def finished_rows(self, unfinished: list[int]) -> dict[int, list[Hypothesis]]:
        """Return the best hypotheses of each sentence that is not in `unfinished`."""
        skipped = set(unfinished)
        return {row: one for row, one in enumerate(self.hypotheses()) if row not in skipped}

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the best hypotheses per sentence, best first."""
        return [sorted(one, key=lambda h: -h.score)[: self.nbest] for one in self.by_row]
