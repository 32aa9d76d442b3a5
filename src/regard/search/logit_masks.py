"""Masks of logits that forbid tokens: minimum length, repeated n-grams, constraints.

B sentences, W beams per sentence, R = B * W rows, V vocabulary, t tokens so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, PAD
from regard.search.hypothesis import NON_OUTPUT_IDS, TokenConstraints

MASKED = float("-inf")


@dataclass(frozen=True)
class LogitMasks:
    """Minimum length, size of n-grams that must not repeat, and constraints per sentence."""

    min_length: int = 0
    no_repeat_ngram: int = 0
    constraints: Sequence[TokenConstraints] | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether every token is allowed at every position."""
        return not (self.min_length or self.no_repeat_ngram or self.constraints)

    @property
    def needs_tokens(self) -> bool:
        """Return whether the masks depend on the previous tokens, not only on their number."""
        return bool(self.no_repeat_ngram or self.constraints)

    def apply(self, logits: Tensor, tokens: Tensor, rows: list[int]) -> None:
        """Mask the logits (B, W, V) of tokens that must not follow `tokens` (B, W, t).

        rows: index of each sentence in the request. If all tokens are masked, EOS is allowed.
        """
        t, eos = tokens.shape[-1], logits[..., EOS].clone()
        forced = self._forced_tokens(logits, t, rows)
        if t < self.min_length:
            logits[..., EOS] = MASKED
        if self.no_repeat_ngram and t >= self.no_repeat_ngram:
            _mask_repeats(logits, tokens, self.no_repeat_ngram)
        for b, row in enumerate(rows if self.constraints else []):
            constraint = self.constraints[row]  # type: ignore[index]
            for phrase in constraint.banned:
                _mask_phrase(logits[b], tokens[b], phrase)
            for phrase in constraint.banned_after_boundary:
                _mask_phrase(logits[b], tokens[b], phrase, constraint.boundary_tokens)
        stuck = logits.amax(-1) == MASKED
        logits[..., EOS] = torch.where(stuck, eos, logits[..., EOS])
        for b, token, values in forced:
            logits[b] = MASKED
            logits[b, :, token] = values

    def _forced_tokens(
        self, logits: Tensor, t: int, rows: list[int]
    ) -> list[tuple[int, int, Tensor]]:
        """Return (b, next token, its logits (W,)) for each sentence b still in its prefix."""
        if not self.constraints:
            return []
        prefixes = [self.constraints[row].prefix for row in rows]
        return [
            (b, prefix[t], logits[b, :, prefix[t]].clone())
            for b, prefix in enumerate(prefixes)
            if t < len(prefix)
        ]


def raise_limits(
    limits: Tensor, min_length: int, constraints: Sequence[TokenConstraints] | None
) -> Tensor:
    """Return the length limits (B,), raised to fit the minimum length and the constraints."""
    limits = limits.clamp(min=min_length + 1)
    for row, constraint in enumerate(constraints or []):
        needed = len(constraint.prefix) + sum(map(len, constraint.require)) + 1
        limits[row] = max(int(limits[row]), needed)
    return limits


def mask_specials(logits: Tensor) -> None:
    """Mask the logits (R, V) of special tokens that are never generated."""
    logits[:, NON_OUTPUT_IDS] = MASKED


def force_eos(logits: Tensor, at_limit: Tensor) -> None:
    """Mask the logits (B, W, V) of all tokens except EOS for sentences `at_limit` (B,)."""
    eos = logits[..., EOS].clone()
    logits.masked_fill_(at_limit[:, None, None], MASKED)
    logits[..., EOS] = torch.where(at_limit[:, None], eos, logits[..., EOS])


def _mask_repeats(logits: Tensor, tokens: Tensor, n: int) -> None:
    """Mask the logits (B, W, V) of tokens that would repeat an n-gram."""
    grams = tokens.unfold(-1, n, 1)  # (B, W, t - n + 1, n)
    tail = tokens[..., tokens.shape[-1] - n + 1 :]  # (B, W, n - 1)
    repeats = (grams[..., :-1] == tail[..., None, :]).all(-1)
    logits.scatter_(-1, torch.where(repeats, grams[..., -1], PAD), MASKED)  # PAD is masked anyway


def _mask_phrase(
    logits: Tensor,
    tokens: Tensor,
    phrase: tuple[int, ...],
    boundary_tokens: frozenset[int] | None = None,
) -> None:
    """Mask the last token of a phrase in the logits (W, V) of beams that end with the rest of it.

    boundary_tokens: mask only phrases at the start of the output or after one of these tokens.
    """
    *head, last = phrase
    start = tokens.shape[-1] - len(head)
    if start < 0:
        return
    tail = tokens[:, start:]
    matches = (tail == torch.tensor(head, dtype=tail.dtype, device=tail.device)).all(-1)
    if boundary_tokens is not None and start > 0:
        follows = [token in boundary_tokens for token in tokens[:, start - 1].tolist()]
        matches &= torch.tensor(follows, device=matches.device)
    logits[:, last] = torch.where(matches, MASKED, logits[:, last])
