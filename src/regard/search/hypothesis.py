"""What a search finds, and what may be wished of it."""

from dataclasses import dataclass
from typing import Literal

from regard.data.tensors.special import BOS, MASK, PAD, UNK

LengthNorm = Literal["average", "gnmt", "none"]  # how scores depend on length
Stopping = Literal["no_gain", "beam_full", "optimal", "first"]  # when a sentence is done
NEVER = [PAD, UNK, BOS, MASK]  # tokens that are no output


@dataclass(frozen=True)
class Hypothesis:
    """One output. score: as the search ranks; the closing EOS counts in all three."""

    tokens: tuple[int, ...]
    score: float
    token_logprobs: tuple[float, ...]  # log probabilities; empty where an engine gives none
    cut: bool = False  # ended because it came to its limit

    @property
    def log_probability(self) -> float:
        """The sum over the tokens, EOS among them."""
        return sum(self.token_logprobs)


@dataclass(frozen=True)
class TokenConstraints:
    """What one output must be like: how it begins, what is in it, what is not.

    glued: not in it at the beginning or right behind one of the tokens `ends`.
    """

    prefix: tuple[int, ...] = ()
    must: tuple[tuple[int, ...], ...] = ()
    banned: tuple[tuple[int, ...], ...] = ()
    glued: tuple[tuple[int, ...], ...] = ()
    ends: frozenset[int] = frozenset()


NOTHING = TokenConstraints()
