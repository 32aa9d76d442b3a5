"""Forced passes that compute the logits of all output tokens in one forward pass.

Shapes: R output tokens, n copies of the source, V vocabulary size.
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
from regard.tasks.inspection.forced_pass import NUM_ALTERNATIVES, ForcedPass, OutputStep
from regard.tasks.inspection.notes import Note


@dataclass(frozen=True, kw_only=True)
class BatchedPass(ForcedPass):
    """A forced pass that computes the logits of all output tokens at once.

    tokens: the ids of the output tokens.
    """

    tokens: tuple[int, ...]

    @abstractmethod
    def logits(self, copies: int) -> Tensor:
        """Return the logits (n, R, V)."""

    def probabilities(self) -> Tensor:
        """Return the probability (R, V) of each token at each position."""
        return self.logits(1)[0].softmax(-1)

    def scores(self, copies: int) -> Tensor:
        """Return the log probability (n, R) of each token, or (n, 1) of the complete output."""
        logits = self.logits(copies)
        true = torch.tensor(self.tokens, device=logits.device).expand(copies, -1)
        return logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)

    @torch.inference_mode()
    def score(self) -> float:
        """Return the log probability of the complete output."""
        return float(self.scores(1).sum())

    def output_scores(self, parts: list[int]) -> Tensor:
        logits = self.logits(len(parts))[torch.arange(len(parts)), parts]  # (n, V)
        return log_odds(logits, [self.tokens[part] for part in parts])

    def forward(self) -> None:
        self.scores(1)

    def total_score(self, copies: int) -> Tensor:
        return self.scores(copies).double().sum(1)

    def lengths(self) -> tuple[int, int]:
        return len(self.tokens), len(self.tokens)

    @torch.inference_mode()
    def steps(
        self, name: Callable[[int], str], excluded: Sequence[int] = (), names: Sequence[str] = ()
    ) -> tuple[OutputStep, ...]:
        """Return the probability and alternatives of each token; see `output_steps`."""
        return output_steps(self.probabilities().cpu(), self.tokens, name, excluded, names)


def log_odds(logits: Tensor, tokens: list[int]) -> Tensor:
    """Return the log odds (n,), log p - log(1 - p), of one token per row of logits (n, V).

    The gradient is proportional to the gradient of log p, but does not vanish as p approaches 1.
    """
    own = torch.zeros_like(logits, dtype=torch.bool)
    own[torch.arange(len(tokens)), tokens] = True
    return logits[own] - logits.masked_fill(own, float("-inf")).logsumexp(-1)


def output_steps(
    probabilities: Tensor,
    tokens: Sequence[int],
    name: Callable[[int], str],
    excluded: Sequence[int] = (),
    names: Sequence[str] = (),
) -> tuple[OutputStep, ...]:
    """Return one step per output token, from the probabilities (R, V).

    name: returns the name of a token id. excluded: token ids that are never alternatives. names:
    names of the output tokens, if they differ from the vocabulary (unknown tokens).
    """
    index = torch.tensor(list(tokens))[:, None]
    own = probabilities.gather(1, index).squeeze(1).tolist()
    rest = probabilities.clone()
    rest[:, list(excluded)] = -1.0
    rest.scatter_(1, index, -1.0)
    best = rest.topk(min(NUM_ALTERNATIVES, rest.shape[1]))
    rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple(
        OutputStep(token, p, tuple((name(i), q) for i, q in zip(*row, strict=True) if q >= 0))
        for token, p, row in zip(names or list(map(name, tokens)), own, rows, strict=True)
    )


class EncodedText(NamedTuple):
    """A tokenized text. names: printable tokens; unknown tokens keep their own text."""

    ids: list[int]
    names: list[str]
    unknown_tokens: tuple[str, ...]


def encode_text(tokenizer: Tokenizer, text: str) -> EncodedText:
    """Tokenize a text."""
    ids = tokenizer.encode(text)
    pairs = list(zip(ids, tokenizer.tokenize(text), strict=True))
    names = [printable(token) if id == UNK else tokenizer.name(id) for id, token in pairs]
    return EncodedText(ids, names, tuple(token for id, token in pairs if id == UNK))


def unknown_notes(unknown_tokens: tuple[str, ...]) -> list[Note]:
    """Return a note on the probability of unknown tokens, if there are any."""
    return [Note("unknown.p")] if unknown_tokens else []


def folded_notes(folded: tuple[str, ...]) -> list[Note]:
    """Return a note on characters that were read as similar ones, if there are any."""
    return [Note("folded", changes=", ".join(folded))] if folded else []
