"""A model that fills gaps seen from inside: each symbol hidden in turn, and what it takes it for.

n copies, S symbols, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.corpus.words import WordRows, split_words
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import MASK, UNK
from regard.data.vocabulary.display_names import printable
from regard.data.vocabulary.vocabulary import TableVocabulary
from regard.inference.predictor import Predictor
from regard.models.masked import MaskedModel
from regard.search.callbacks import tell_nothing
from regard.search.hypothesis import NEVER
from regard.tasks.language_model import LanguageModelTask as Task
from regard.tasks.task import device_of
from regard.views.inspection.about import about, parameters
from regard.views.inspection.inspected_texts import names_of, refuse_longer, unknown_notes
from regard.views.inspection.internals import inside
from regard.views.inspection.notes import Note
from regard.views.inspection.question import Question, log_odds
from regard.views.inspection.steps import renamed, steps_of
from regard.views.inspection.value import Inspection, TokenizedText

WORK = 5e10  # weights of the encoder times symbols read, over all copies: some seconds


@dataclass(frozen=True)
class Gaps(Question):
    """A text of which any symbol can be hidden. words: those that are read by letters."""

    model: MaskedModel
    source: Padded  # (1, S) symbols, or places among the forms of the words
    symbols: tuple[int, ...]
    words: WordRows | None

    def logits(self, hidden: list[int]) -> Tensor:
        """(n, V): of each of these symbols, hidden in a copy of its own."""
        source = self.source.copies(len(hidden))
        chosen = torch.zeros(source.data.shape, dtype=torch.bool)
        chosen[torch.arange(len(hidden)), hidden] = True
        mask = MASK if self.words is None else 0  # the first form is no word
        batch = self._batch(source._replace(data=source.data.masked_fill(chosen, mask)))
        device = device_of(self.model)
        return self.model(batch.to(device), chosen.to(device)).logits.float()

    def each(self, parts: list[int]) -> Tensor:
        return log_odds(self.logits(parts), [self.symbols[part] for part in parts])

    def read(self) -> None:
        """Runs the model over the text as it is, nothing hidden."""
        everything = torch.ones(self.source.data.shape, dtype=torch.bool)
        device = device_of(self.model)
        self.model(self._batch(self.source).to(device), everything.to(device))

    def total(self) -> float:
        """The sum of the log probabilities of all symbols, each hidden in turn."""
        found, parts = 0.0, list(range(len(self.symbols)))
        for at in range(0, len(parts), self.at_once()):
            tell_nothing()
            some = parts[at : at + self.at_once()]
            own = torch.tensor([[self.symbols[part]] for part in some])
            logp = self.logits(some).log_softmax(-1).cpu()
            found += float(logp.gather(1, own).double().sum())
        return found

    def dear(self, heads: int) -> bool:
        """Each head takes as many copies as there are symbols."""
        return heads * len(self.symbols) ** 2 * parameters(self.model.encoder) > WORK

    def _batch(self, source: Padded) -> Batch:
        return Batch(source if self.words is None else self.words.spelled(source))

    def lengths(self) -> tuple[int, int]:
        return len(self.symbols), len(self.symbols)


def inspect_gaps(predictor: Predictor, text: str, target: str | None, most: int) -> Inspection:
    """What the model takes each symbol for when it is hidden, and what is behind that."""
    task, model = predictor.task, predictor.engine.inside().eval()
    assert isinstance(task, Task) and isinstance(model, MaskedModel)
    if target is not None:
        raise UserError("target: this model fills gaps in a text and writes nothing; leave it out")
    question, names = _question(task, model, text)
    count, longest = len(names), task.options.context
    if not count:
        raise UserError("text is empty: there is no symbol to hide; give a text")
    refuse_longer("text", count, most, "give a shorter text")
    if count > longest:
        raise UserError(
            f"text: {count:,} symbols, the model reads {longest:,}; give a shorter text"
        )
    parts, chances = list(range(count)), []
    with torch.inference_mode():
        for at in range(0, count, question.at_once()):
            logits = question.logits(parts[at : at + question.at_once()])
            chances.append(logits.softmax(-1).cpu())
    steps = steps_of(torch.cat(chances), question.symbols, task.vocabulary.name, NEVER)
    looked = inside(question, "target")
    odd = [name for name, id in zip(names, question.symbols, strict=True) if id == UNK]
    notes = [Note("gaps.hidden"), *unknown_notes(odd)]
    if looked.attention:
        notes.append(Note("gaps.attention"))
    if any(one.silenced for one in looked.attention):
        notes.append(Note("gaps.silenced"))
    return Inspection(
        model=about(predictor),
        source=TokenizedText(text, tuple(names)),
        target=TokenizedText(text, tuple(names)),
        steps=tuple(renamed(steps, names)),
        unknown=tuple(odd),
        **looked.seen(),
        notes=(*notes, *looked.notes),
    )


def _question(task: Task, model: MaskedModel, text: str) -> tuple[Gaps, list[str]]:
    """The text as the model reads it, and the names of its symbols."""
    if task.letters is None:
        ids, names = names_of(task.vocabulary, text)
        return Gaps(model, pad([ids]), tuple(ids), None), names
    assert isinstance(task.vocabulary, TableVocabulary)
    words = text.split()
    rows = split_words([words], task.vocabulary, task.letters)
    ids = rows.row(0).tolist()
    return Gaps(model, rows.sentences.all(), tuple(ids), rows), [printable(word) for word in words]
