"""What an output may not contain: rules that strike out tokens before the search chooses.

B sentences, W beams, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, PAD
from regard.search.hypothesis import NEVER, TokenConstraints

NO = float("-inf")


@dataclass(frozen=True)
class Rules:
    """Minimum length, size of n-grams that may not repeat, and constraints per row."""

    shortest: int = 0
    no_repeat_ngram: int = 0
    wishes: Sequence[TokenConstraints] | None = None

    @property
    def none(self) -> bool:
        """Whether every token is allowed everywhere."""
        return not (self.shortest or self.no_repeat_ngram or self.wishes)

    @property
    def look_back(self) -> bool:
        """Whether it matters which tokens came before, and not only how many."""
        return bool(self.no_repeat_ngram or self.wishes)

    def apply(self, logits: Tensor, tokens: Tensor, rows: list[int]) -> None:
        """Strikes out of logits (B, W, V) what may not follow tokens (B, W, t).

        rows: the number of each sentence. Where nothing would be left, the end is.
        """
        t, end = tokens.shape[-1], logits[..., EOS].clone()
        forced = self._forced(logits, t, rows)
        if t < self.shortest:
            logits[..., EOS] = NO
        if self.no_repeat_ngram and t >= self.no_repeat_ngram:
            _strike_repeats(logits, tokens, self.no_repeat_ngram)
        for b, row in enumerate(rows if self.wishes else []):
            wish = self.wishes[row]  # type: ignore[index]
            for phrase in wish.banned:
                _strike_phrase(logits[b], tokens[b], phrase)
            for phrase in wish.glued:
                _strike_phrase(logits[b], tokens[b], phrase, wish.ends)
        stuck = logits.amax(-1) == NO
        logits[..., EOS] = torch.where(stuck, end, logits[..., EOS])
        for b, token, values in forced:
            logits[b] = NO
            logits[b, :, token] = values

    def _forced(self, logits: Tensor, t: int, rows: list[int]) -> list[tuple[int, int, Tensor]]:
        """Sentences still within their prefix: place, token, and its logits (W,)."""
        if not self.wishes:
            return []
        prefixes = [self.wishes[row].prefix for row in rows]
        return [
            (b, prefix[t], logits[b, :, prefix[t]].clone())
            for b, prefix in enumerate(prefixes)
            if t < len(prefix)
        ]


def with_room(limits: Tensor, shortest: int, wishes: Sequence[TokenConstraints] | None) -> Tensor:
    """The limits (B,), raised where they are below what is asked for and the end."""
    limits = limits.clamp(min=shortest + 1)
    for row, wish in enumerate(wishes or []):
        needed = len(wish.prefix) + sum(map(len, wish.must)) + 1
        limits[row] = max(int(limits[row]), needed)
    return limits


def strike_specials(logits: Tensor) -> None:
    """Strikes the tokens that are no output out of logits (R, V)."""
    logits[:, NEVER] = NO


def only_the_end(logits: Tensor, full: Tensor) -> None:
    """Leaves only EOS to the sentences of logits (B, W, V) that are at their limit, full (B,)."""
    end = logits[..., EOS].clone()
    logits.masked_fill_(full[:, None, None], NO)
    logits[..., EOS] = torch.where(full[:, None], end, logits[..., EOS])


def _strike_repeats(logits: Tensor, tokens: Tensor, n: int) -> None:
    """Strikes out what would make an n-gram come twice."""
    grams = tokens.unfold(-1, n, 1)  # (B, W, t - n + 1, n)
    tail = tokens[..., tokens.shape[-1] - n + 1 :]  # (B, W, n - 1)
    again = (grams[..., :-1] == tail[..., None, :]).all(-1)
    logits.scatter_(-1, torch.where(again, grams[..., -1], PAD), NO)  # PAD is struck out anyway


def _strike_phrase(
    logits: Tensor, tokens: Tensor, phrase: tuple[int, ...], behind: frozenset[int] | None = None
) -> None:
    """Strikes the last token of a phrase out of logits (W, V) where the others stand before.

    behind: only where the phrase begins the output or follows one of these tokens.
    """
    *before, last = phrase
    begin = tokens.shape[-1] - len(before)
    if begin < 0:
        return
    tail = tokens[:, begin:]
    there = (tail == torch.tensor(before, dtype=tail.dtype, device=tail.device)).all(-1)
    if behind is not None and begin > 0:
        fits = [token in behind for token in tokens[:, begin - 1].tolist()]
        there &= torch.tensor(fits, device=there.device)
    logits[:, last] = torch.where(there, NO, logits[:, last])
