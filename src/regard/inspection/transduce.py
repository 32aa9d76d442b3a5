"""A transducer seen from inside: how its search found an answer, and what the answer rests on.

n copies, T target symbols with EOS, S source symbols with EOS, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.batch import Padded, pad
from regard.data.vocabulary import BOS, EOS, SPECIALS
from regard.engines import Engine
from regard.estimators.transducer import Transducer
from regard.inspection.about import about
from regard.inspection.inside import inside
from regard.inspection.question import Question, copied
from regard.inspection.steps import steps_of
from regard.inspection.texts import names_of, refuse_longer, unknown_in
from regard.inspection.tree import tree_of
from regard.inspection.value import Inspection, Side
from regard.models.generator import Generator
from regard.models.places import refuse_longer as refuse_no_place
from regard.search import Beam, Hypothesis, Sample
from regard.search.explore import explore
from regard.search.force import force
from regard.search.hypothesis import NEVER
from regard.search.scoring import Scoring
from regard.tasks.answering import on_device
from regard.tasks.transduce import Transduce


@dataclass(frozen=True)
class Pair(Question):
    """A source and the answer that the model is held to, EOS among both."""

    model: Generator
    source: Padded  # (1, S)
    target: tuple[int, ...]

    def logits(self, copies: int) -> Tensor:
        """(n, T, V): of each symbol after those before it."""
        true = torch.tensor([self.target], device=self.source.data.device)
        inputs = F.pad(true[:, :-1], (1, 0), value=BOS)
        state = self.model.start(copied(self.source, copies))
        return self.model.step(inputs.expand(copies, -1), state)[0].float()

    def scores(self, copies: int) -> Tensor:
        logits = self.logits(copies)
        true = torch.tensor(self.target, device=logits.device).expand(copies, -1)
        return logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)

    def lengths(self) -> tuple[int, int]:
        return len(self.target), max(len(self.target), self.source.data.shape[1])


@dataclass(frozen=True)
class Answer:
    """What the model is held to, and how its search came to it."""

    hypothesis: Hypothesis
    tree: dict[str, Any] | None
    notes: list[str]


def inspect_transducer(
    estimator: Transducer, text: str, target: str | None, search: Beam | Sample, most: int
) -> Inspection:
    """The answer of a transducer's search, or a given one, and what is behind it."""
    task, model, engine = estimator.task_, estimator.model_, estimator._engine()
    assert isinstance(task, Transduce) and isinstance(model, Generator)
    ids, names = names_of(task.source, text)
    row = [*ids, EOS]
    refuse_longer("TEXT", len(row), most, "give a shorter text")
    engine.check(len(row))
    source = on_device(pad([row]), engine.device)
    found = _answer(task, engine, source, search)
    notes, unknown = list(found.notes), unknown_in(task.source, text)
    hypothesis = found.hypothesis
    if target is not None:
        hypothesis = _given(task, engine, model, source, target, search)
        strange = unknown_in(task.target, target)
        unknown += tuple(symbol for symbol in strange if symbol not in unknown)
        notes.append("The target was given; the tree is that of the model's own search.")
        if getattr(search, "coverage", 0):
            notes.append("The score of a given target leaves coverage out.")
    answer = (*hypothesis.symbols, EOS)
    how = "give a shorter target" if target is not None else "give a smaller --max-length"
    refuse_longer("the answer", len(answer), most, how)
    question = Pair(model, source, answer)
    with torch.inference_mode():
        chances = question.logits(1)[0].softmax(-1).cpu()
    looked = inside(question, "target")
    written = task.target.decode(hypothesis.symbols)
    symbols = tuple(task.target.name(id) for id in answer)
    return Inspection(
        model=about(estimator),
        source=Side(text, (*names, SPECIALS[EOS])),
        target=Side(written if target is None else target, symbols),
        steps=tuple(steps_of(chances, answer, task.target.name, NEVER)),
        given=target is not None,
        inputs=(SPECIALS[BOS], *symbols[:-1]),
        score=hypothesis.score,
        cut=hypothesis.cut,
        unknown=unknown,
        attention=looked.attention,
        saliency=looked.saliency,
        gates=looked.gates,
        tree=found.tree,
        notes=(*notes, *looked.notes),
    )


def _answer(task: Transduce, engine: Engine, source: Padded, search: Beam | Sample) -> Answer:
    """The best output of the search, with its tree where it has one."""
    limits = task.limits([source.data.shape[1]], search, engine)
    if isinstance(search, Sample):
        ((drawn,),) = engine.search(search, source, limits)
        note = "The answer was drawn, so there is no tree of a search; a beam search has one."
        return Answer(drawn, None, [note])
    found = explore(engine.stepper(), source, limits, search)
    notes = []
    if found.answer.cut:
        notes.append("The answer came to its limit of length and was ended there.")
    return Answer(found.answer, tree_of(found, search.beam, task.target), notes)


def _given(
    task: Transduce,
    engine: Engine,
    model: Generator,
    source: Padded,
    target: str,
    search: Beam | Sample,
) -> Hypothesis:
    """A given target as if the search had found it."""
    ids = task.target.encode(target)
    refuse_no_place(model, "decoder", len(ids) + 1)
    scoring = search.scoring if isinstance(search, Beam) else Scoring("none")
    return force(engine.stepper(), source, [ids], scoring)[0]
