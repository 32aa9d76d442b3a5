"""Questions whose predictions are tokens: what they share.

R tokens, n copies, V vocabulary.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.tensors.special import UNK
from regard.data.tokenizers.display_names import printable
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import OTHERS, OutputStep, Question


@dataclass(frozen=True, kw_only=True)
class TokenQuestion(Question):
    """One whose tokens are all predicted in one pass, each with logits of its own."""

    tokens: tuple[int, ...]

    @abstractmethod
    def logits(self, copies: int) -> Tensor:
        """Return (n, R, V)."""

    def probabilities(self) -> Tensor:
        """Return (R, V): the probability of each token at each position."""
        return self.logits(1)[0].softmax(-1)

    def scores(self, copies: int) -> Tensor:
        """Return (n, R): log probabilities; (n, 1) if only the whole prediction has one."""
        logits = self.logits(copies)
        true = torch.tensor(self.tokens, device=logits.device).expand(copies, -1)
        return logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)

    @torch.inference_mode()
    def score(self) -> float:
        """Return the log probability of the whole prediction."""
        return float(self.scores(1).sum())

    def each(self, parts: list[int]) -> Tensor:
        logits = self.logits(len(parts))[torch.arange(len(parts)), parts]  # (n, V)
        return log_odds(logits, [self.tokens[part] for part in parts])

    def read(self) -> None:
        self.scores(1)

    def totals(self, copies: int) -> Tensor:
        return self.scores(copies).double().sum(1)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), len(self.tokens)

    @torch.inference_mode()
    def steps(
        self, name: Callable[[int], str], never: Sequence[int] = (), names: Sequence[str] = ()
    ) -> tuple[OutputStep, ...]:
        """Return a step for each token; see `steps_of`."""
        return steps_of(self.probabilities().cpu(), self.tokens, name, never, names)


def log_odds(logits: Tensor, chosen: list[int]) -> Tensor:
    """Return (n,): log p - log(1 - p) of one token of each row (n, V).

    Its gradient is that of log p, but for a factor; it does not vanish if p comes close to 1.
    """
    own = torch.zeros_like(logits, dtype=torch.bool)
    own[torch.arange(len(chosen)), chosen] = True
    return logits[own] - logits.masked_fill(own, float("-inf")).logsumexp(-1)


def steps_of(
    probabilities: Tensor,
    tokens: Sequence[int],
    name: Callable[[int], str],
    never: Sequence[int] = (),
    names: Sequence[str] = (),
) -> tuple[OutputStep, ...]:
    """Return a step for each row (R, V). never: what is no runner-up; names: of the tokens, if they
    are not those of the vocabulary, as those of unknown ones."""
    index = torch.tensor(list(tokens))[:, None]
    own = probabilities.gather(1, index).squeeze(1).tolist()
    left = probabilities.clone()
    left[:, list(never)] = -1.0
    left.scatter_(1, index, -1.0)
    best = left.topk(min(OTHERS, left.shape[1]))
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple(
        OutputStep(token, p, tuple((name(i), q) for i, q in zip(*row, strict=True) if q >= 0))
        for token, p, row in zip(names or list(map(name, tokens)), own, rows, strict=True)
    )


class Tokens(NamedTuple):
    """Tokens of a text. names: unknown ones keep theirs; unknown: those training never saw."""

    ids: list[int]
    names: list[str]
    unknown: tuple[str, ...]


def tokens_of(tokenizer: Tokenizer, text: str) -> Tokens:
    """Return the tokens of a text."""
    ids = tokenizer.encode(text)
    both = list(zip(ids, tokenizer.tokenize(text), strict=True))
    names = [printable(token) if id == UNK else tokenizer.name(id) for id, token in both]
    return Tokens(ids, names, tuple(token for id, token in both if id == UNK))


def unknown_notes(unknown: tuple[str, ...]) -> list[Note]:
    """Return what p means of tokens that the model is held to and that training never saw."""
    return [Note("unknown.p")] if unknown else []
