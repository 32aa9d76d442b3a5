"""A language model seen from inside: how probable a text is, and how the model writes on.

n copies, T symbols, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.tensors.padded import shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.inference.predictor import Predictor
from regard.models.ngram import NGram
from regard.search import Sample
from regard.search.hypothesis import NEVER
from regard.search.sample import continued
from regard.tasks.language_model import LanguageModelTask as Task
from regard.tasks.task import device_of
from regard.views.inspection.about import about
from regard.views.inspection.inspected_texts import (
    names_of,
    refuse_longer,
    unknown_in,
    unknown_notes,
)
from regard.views.inspection.internals import Inside, inside
from regard.views.inspection.masked_pass import inspect_gaps
from regard.views.inspection.notes import Note
from regard.views.inspection.question import Scored, log_odds
from regard.views.inspection.steps import renamed, steps_of
from regard.views.inspection.value import Inspection, OutputStep, TokenizedText

COUNTS = Inside(notes=(Note("counts"),))


@dataclass(frozen=True)
class LanguagePass(Scored):
    """A text, each of its symbols predicted from those before it."""

    model: nn.Module
    symbols: tuple[int, ...]
    vocabulary: int  # V

    def logits(self, copies: int) -> Tensor:
        """(n, T, V): of each symbol after those before it."""
        model: Any = self.model
        true = torch.tensor([self.symbols], device=device_of(model))
        inputs = shifted(true).expand(copies, -1)
        return model.step(inputs, model.start(copies))[0].float()

    def scores(self, copies: int) -> Tensor:
        logits = self.logits(copies)
        true = torch.tensor(self.symbols, device=logits.device).expand(copies, -1)
        return logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)

    def each(self, parts: list[int]) -> Tensor:
        logits = self.logits(len(parts))[torch.arange(len(parts)), parts]  # (n, V)
        return log_odds(logits, [self.symbols[part] for part in parts])

    def outputs(self) -> int:
        return self.vocabulary

    def lengths(self) -> tuple[int, int]:
        return len(self.symbols), len(self.symbols)


def inspect_language(
    predictor: Predictor, text: str, target: str | None, search: Sample, most: int
) -> Inspection:
    """A text and what follows it, symbol by symbol, and what is behind that."""
    task, model = predictor.task, predictor.engine.inside().eval()
    assert isinstance(task, Task)
    if task.masked:
        return inspect_gaps(predictor, text, target, most)
    prompt, names = names_of(task.vocabulary, text)
    refuse_longer("text", len(prompt), most, "give a shorter text")
    if target is None:
        written, notes = _written(task, model, prompt, search)
        new, name = _text(task, prompt, written), task.vocabulary.name
        symbols = (*names, *(name(id) for id in written))
    else:
        written, more = _given(task, model, prompt, text, target)
        new, notes, symbols = target, [], (*names, *more)
    whole = (*prompt, *written)
    if not whole:
        raise UserError("text and target are empty: there is nothing to look at")
    refuse_longer("text and what follows", len(whole), most, "give a shorter text or length")
    question = LanguagePass(model, whole, len(task.vocabulary))
    with torch.inference_mode():
        chances = question.logits(1)[0].softmax(-1).cpu()
        score = float(question.scores(1).sum())
    odd = unknown_in(task.vocabulary, text + (target or ""))
    steps = steps_of(chances, whole, task.vocabulary.name, NEVER)
    looked = COUNTS if isinstance(model, NGram) else inside(question, "target")
    return Inspection(
        model=about(predictor),
        source=TokenizedText(text, tuple(names)),
        target=TokenizedText(text + new, symbols),
        steps=tuple(_marked(renamed(steps, symbols), len(prompt))),
        given=target is not None,
        inputs=(SPECIALS[BOS], *symbols[:-1]),
        score=score,
        cut=target is None and EOS not in written,
        unknown=odd,
        **looked.seen(),
        notes=(*notes, *unknown_notes(odd), *looked.notes),
    )


def _written(
    task: Task, model: Any, prompt: list[int], search: Sample
) -> tuple[list[int], list[Note]]:
    """The symbols that the model writes on, EOS where it ended, and how they came about."""
    reach = task.reach(model)
    room = None if reach is None else reach - len(prompt)
    if room is not None and room < 1:
        raise UserError(
            f"text: {len(prompt):,} symbols, but the model looks back on {reach:,} at most, and "
            "one more must have room; give a shorter text"
        )
    how = "drawn" if search.temperature else "best"
    notes = [Note(f"follows.{how}", most=search.longest)]
    if room is not None and search.longest > room:
        notes.append(Note("follows.room", room=room, reach=reach))
        search = search.model_copy(update={"length": room})
    drawn = continued(model, [prompt], [0], search, reach)
    found = [token for one in drawn for token in one.values()]
    return (found if len(found) == search.longest else [*found, EOS]), notes


def _given(
    task: Task, model: Any, prompt: list[int], text: str, target: str
) -> tuple[list[int], list[str]]:
    """The symbols of a given continuation, and their names."""
    found, names = names_of(task.vocabulary, text + target)
    if found[: len(prompt)] == prompt:
        found, names = found[len(prompt) :], names[len(prompt) :]
    else:  # the last symbol of the text would be another one
        found, names = names_of(task.vocabulary, target)
    reach = task.reach(model)
    if reach is not None and len(prompt) + len(found) > reach:
        raise UserError(
            f"text and target: {len(prompt) + len(found):,} symbols, but the model looks back on "
            f"{reach:,} at most; shorten them"
        )
    return found, names


def _text(task: Task, prompt: list[int], written: list[int]) -> str:
    """The text of what follows a prompt."""
    before = task.vocabulary.decode(prompt)
    return task.vocabulary.decode([*prompt, *written])[len(before) :]


def _marked(steps: list[OutputStep], prompt: int) -> list[OutputStep]:
    """The steps, those of the prompt marked as given."""
    return [replace(step, given=place < prompt) for place, step in enumerate(steps)]
