"""The question to a tagger: the tags of a sentence.

n copies, S words, C tags.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.data.tensors.padded import Batch, Outputs, Padded
from regard.nn import crf
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import Asked, QuestionFacts, TokenizedText
from regard.tasks.questions.token_question import TokenQuestion


@dataclass(frozen=True, kw_only=True)
class TagQuestion(TokenQuestion):
    """A sentence and the tag that each of its words is held to have."""

    source: Padded  # (1, S)

    def run(self, copies: int) -> Outputs:
        """Return what the model gives for the sentence."""
        return self.asked.model(Batch(self.source.copies(copies)))

    def logits(self, copies: int) -> Tensor:
        """Return (n, S, C): of each tag of each word."""
        return self.run(copies).logits.float()


@dataclass(frozen=True, kw_only=True)
class JointTagQuestion(TagQuestion):
    """One to a CRF, whose tags depend on each other."""

    def probabilities(self) -> Tensor:
        """Return (S, C): the sum over all ways to tag the other words."""
        return crf.marginals(*self._scored(1))[0]

    def scores(self, copies: int) -> Tensor:
        """Return (n, 1): of all tags together."""
        scores, transitions, mask = self._scored(copies)
        tags = torch.tensor(self.tokens, device=scores.device).expand(copies, -1)
        return -crf.nll(scores, transitions, tags, mask)[:, None]

    def each(self, parts: list[int]) -> Tensor:
        """Return (n,): all ways through the tag against all ways past it."""
        scores, transitions, mask = self._scored(len(parts))
        rows, own = torch.arange(len(parts)), [self.tokens[part] for part in parts]
        past = torch.zeros_like(scores, dtype=torch.bool)  # (n, S, C) what is masked
        past[rows, parts, own] = True
        through = torch.zeros_like(past)
        through[rows, parts] = ~past[rows, parts]
        ways = [scores.masked_fill(out, float("-inf")) for out in (through, past)]
        one, other = (crf.partition_in_logs(way, transitions, mask) for way in ways)
        return one - other

    def _scored(self, copies: int) -> tuple[Tensor, Tensor, Tensor]:
        found = self.run(copies)
        assert found.transitions is not None
        return found.logits.float(), found.transitions, self.source.copies(copies).mask


def tag_question(asked: Asked) -> TagQuestion:
    """Return the question that the tags of a sentence answer, or given ones."""
    task, words = asked.task, asked.source
    if not words:
        raise UserError("text: a sentence without words; give the words with spaces between them")
    asked.refuse_longer("text", len(words), "give a shorter sentence")
    (found,) = asked.predictor.predict([words])
    tags = found.value if asked.target is None else _given(task, words, asked.target)
    joint = getattr(asked.model.head, "transitions", None) is not None
    question = (JointTagQuestion if joint else TagQuestion)(
        asked=asked,
        source=task.source.batch([words]).to(asked.device),
        tokens=tuple(task.numbers[tag] for tag in tags),
    )
    facts = QuestionFacts(
        source=TokenizedText(" ".join(words), tuple(task.source.names(words))),
        target=TokenizedText(" ".join(tags), tuple(tags)),
        steps=question.steps(task.tags.__getitem__),
        forced=asked.forced,
        score=question.score(),
        unknown_tokens=found.unknown_tokens,
        notes=(Note("crf"),) if joint else (),
    )
    return replace(question, facts=facts)


def _given(task: Any, words: tuple[str, ...], target: str) -> list[str]:
    """Return the tags of a target, one for each word."""
    tags = target.split()
    if len(tags) != len(words):
        raise UserError(f"target: {len(words)} tags expected, one for each word, {len(tags)} found")
    for tag in tags:
        if tag not in task.numbers:
            raise UserError(f"target: no tag {tag!r}{suggest_names(tag, task.tags)}")
    return tags
