"""Hypotheses, which are the outputs of a search, and constraints on them."""

from dataclasses import dataclass
from typing import Literal

from regard.data.tensors.special import BOS, MASK, PAD, UNK

LengthNorm = Literal["average", "gnmt", "none"]  # how scores depend on length
Stopping = Literal["no_gain", "beam_full", "optimal", "first"]  # when a sentence is done
NON_OUTPUT_IDS = [PAD, UNK, BOS, MASK]  # tokens that are never generated


@dataclass(frozen=True)
class Hypothesis:
    """One output. score: the search ranks by it. score and token_logprobs include EOS."""

    tokens: tuple[int, ...]
    score: float
    token_logprobs: tuple[float, ...]  # empty if the engine returns none
    truncated: bool = False  # whether the output reached its maximum length

    @property
    def log_probability(self) -> float:
        """Return the log probability of the output, EOS included."""
        return sum(self.token_logprobs)


@dataclass(frozen=True)
class TokenConstraints:
    """Constraints on one output: its prefix, required phrases and banned phrases.

    banned_after_boundary: phrases banned at the start of the output and right after one of
    `boundary_tokens`.
    """

    prefix: tuple[int, ...] = ()
    require: tuple[tuple[int, ...], ...] = ()
    banned: tuple[tuple[int, ...], ...] = ()
    banned_after_boundary: tuple[tuple[int, ...], ...] = ()
    boundary_tokens: frozenset[int] = frozenset()


NO_CONSTRAINTS = TokenConstraints()
