"""The question to a language model: how probable a text is, and how it continues.

n copies, T tokens, V vocabulary.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.search.sample import continue_prompts
from regard.tasks.questions.notes import Note
from regard.tasks.questions.question import Asked, QuestionFacts, TokenizedText
from regard.tasks.questions.token_question import TokenQuestion, tokens_of, unknown_notes

CONTINUED = {"temperature": 0.0, "max_length": 30}  # how a text continues if nothing is said
DRAWS = ("temperature", "top_k", "top_p", "min_p")


def continued_by(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a search: without any, a text continues a little, and greedily."""
    drawn = any(name in given for name in DRAWS)
    usual = {name: value for name, value in CONTINUED.items() if name == "max_length" or not drawn}
    return usual | given


class LanguageQuestion(TokenQuestion):
    """A text, each of its tokens predicted from those before it."""

    @property
    def shows(self) -> frozenset[str]:
        return frozenset() if self.asked.model.only_counts else super().shows

    def logits(self, copies: int) -> Tensor:
        """Return (n, T, V): of each token after those before it."""
        model = self.asked.model
        inputs = shifted(torch.tensor([self.tokens], device=self.asked.device))
        return model.step(inputs.expand(copies, -1), model.start(copies))[0].float()

    def outputs(self) -> int:
        return len(self.asked.task.tokenizer)


def language_question(asked: Asked) -> LanguageQuestion:
    """Return the question that a text answers, and what follows it."""
    tokenizer, text = asked.task.tokenizer, asked.source
    prompt, names, unknown = tokens_of(tokenizer, text)
    asked.refuse_longer("text", len(prompt), "give a shorter text")
    if asked.target is None:
        new, notes = _continued(asked, prompt)
        names += map(tokenizer.name, new)
        following = tokenizer.decode([*prompt, *new])[len(tokenizer.decode(prompt)) :]
    else:
        new, more = _given(asked, prompt, asked.target)
        names, notes, following = [*names, *more], [], asked.target
        unknown = tokens_of(tokenizer, text + following).unknown
    if not (tokens := (*prompt, *new)):
        raise UserError("text and target are empty: there is nothing to look at")
    what = "text and what follows"
    asked.refuse_longer(what, len(tokens), "give a shorter text or length")
    question = LanguageQuestion(asked=asked, tokens=tokens)
    steps = question.steps(tokenizer.name, NON_OUTPUT_IDS, names)
    counts = [Note("counts")] if asked.model.only_counts else []
    facts = QuestionFacts(
        source=TokenizedText(text, tuple(names[: len(prompt)])),
        target=TokenizedText(text + following, tuple(names)),
        steps=tuple(replace(step, given=n < len(prompt)) for n, step in enumerate(steps)),
        forced=asked.forced,
        inputs=(SPECIALS[BOS], *names[:-1]),
        score=question.score(),
        truncated=not asked.forced and EOS not in new,
        unknown_tokens=unknown,
        notes=(*notes, *unknown_notes(unknown), *counts),
    )
    return replace(question, facts=facts)


def _continued(asked: Asked, prompt: list[int]) -> tuple[list[int], list[Note]]:
    """Return the tokens that follow a prompt, EOS if it ended, and how they came about."""
    search, reach = asked.search, asked.task.max_context(asked.model)
    room = None if reach is None else reach - len(prompt)
    if room is not None and room < 1:
        raise UserError(
            f"text: {len(prompt):,} tokens, but the model looks back on {reach:,} at most, and "
            "one more must have room; give a shorter text"
        )
    how = "drawn" if search.temperature else "best"
    notes = [Note(f"follows.{how}", most=search.max_new_tokens)]
    if room is not None and search.max_new_tokens > room:
        notes.append(Note("follows.room", room=room, reach=reach))
        search = search.model_copy(update={"max_length": room})
    found = list[int]()
    for tokens in continue_prompts(asked.model, [prompt], [0], search, reach):
        found += tokens.values()
        asked.on_step()
    return (found if len(found) == search.max_new_tokens else [*found, EOS]), notes


def _given(asked: Asked, prompt: list[int], target: str) -> tuple[list[int], list[str]]:
    """Return the tokens of a given continuation, and their names."""
    tokenizer, reach = asked.task.tokenizer, asked.task.max_context(asked.model)
    ids, names, _ = tokens_of(tokenizer, asked.source + target)
    if ids[: len(prompt)] == prompt:
        ids, names = ids[len(prompt) :], names[len(prompt) :]
    else:  # the last token of the text would be another one
        ids, names, _ = tokens_of(tokenizer, target)
    if reach is not None and len(prompt) + len(ids) > reach:
        raise UserError(
            f"text and target: {len(prompt) + len(ids):,} tokens, but the model looks back on "
            f"{reach:,} at most; shorten them"
        )
    return ids, names
