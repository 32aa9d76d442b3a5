"""A transducer seen from inside: how its search found an answer, and what the answer rests on.

n copies, T target symbols with EOS, S source symbols with EOS, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.padded import Padded, shifted
from regard.data.tensors.special import BOS, EOS, SPECIALS
from regard.inference.engine import Engine
from regard.inference.predictor import Predictor
from regard.models.generator import Generator
from regard.models.max_length import refuse_longer as refuse_no_place
from regard.search import Hypothesis, Search, SearchRequest
from regard.search.force import force
from regard.search.hypothesis import NEVER
from regard.search.scoring import Scoring
from regard.tasks.transduce import Transduce
from regard.views.inspection.about import about
from regard.views.inspection.inspected_texts import (
    names_of,
    refuse_longer,
    unknown_in,
    unknown_notes,
)
from regard.views.inspection.internals import inside
from regard.views.inspection.notes import Note
from regard.views.inspection.question import Scored, log_odds
from regard.views.inspection.search_tree import tree_of
from regard.views.inspection.steps import renamed, steps_of
from regard.views.inspection.value import Inspection, TokenizedText


@dataclass(frozen=True)
class TransducerPass(Scored):
    """A source and the answer that the model is held to, EOS among both."""

    model: Generator
    source: Padded  # (1, S)
    target: tuple[int, ...]
    vocabulary: int  # V

    def logits(self, copies: int) -> Tensor:
        """(n, T, V): of each symbol after those before it."""
        true = torch.tensor([self.target], device=self.source.data.device)
        inputs = shifted(true)
        state = self.model.start(self.source.copies(copies))
        return self.model.step(inputs.expand(copies, -1), state)[0].float()

    def scores(self, copies: int) -> Tensor:
        logits = self.logits(copies)
        true = torch.tensor(self.target, device=logits.device).expand(copies, -1)
        return logits.log_softmax(-1).gather(-1, true[..., None]).squeeze(-1)

    def each(self, parts: list[int]) -> Tensor:
        logits = self.logits(len(parts))[torch.arange(len(parts)), parts]  # (n, V)
        return log_odds(logits, [self.target[part] for part in parts])

    def outputs(self) -> int:
        return self.vocabulary

    def lengths(self) -> tuple[int, int]:
        return len(self.target), max(len(self.target), self.source.data.shape[1])


@dataclass(frozen=True)
class ForcedOutput:
    """What the model is held to. names: of its symbols; tree: of the search, where it has one."""

    hypothesis: Hypothesis
    text: str
    names: tuple[str, ...]
    tree: dict[str, Any] | None
    notes: tuple[Note, ...]
    unknown: tuple[str, ...] = ()


def inspect_transducer(
    predictor: Predictor, text: str, target: str | None, search: Search, most: int
) -> Inspection:
    """The answer of a transducer's search, or a given one, and what is behind it."""
    task, model, engine = predictor.task, predictor.engine.inside(), predictor.engine
    assert isinstance(task, Transduce) and isinstance(model, Generator)
    names = task.source.names(text)
    refuse_longer("text", len(names), most, "give a shorter text")
    engine.check(len(names))
    source = task.source.batch([text]).to(engine.device)
    answer = _searched(task, engine, source, search)
    if target is not None:
        refuse_no_place(model, "decoder", len(task.target.encode(target)) + 1)
        answer = _held(task, engine, source, target, search, answer)
    what, how = "the answer", "give a smaller max_length"
    if target is not None:
        what, how = "target", "give a shorter one"
    refuse_longer(what, len(answer.names) + 1, most, how)
    question = TransducerPass(model, source, (*answer.hypothesis.symbols, EOS), len(task.target))
    with torch.inference_mode():
        chances = question.logits(1)[0].softmax(-1).cpu()
    steps = steps_of(chances, question.target, task.target.name, NEVER)
    symbols = (*answer.names, SPECIALS[EOS])
    looked = inside(question, "target")
    return Inspection(
        model=about(predictor),
        source=TokenizedText(text, tuple(names)),
        target=TokenizedText(answer.text, symbols),
        steps=tuple(renamed(steps, symbols)),
        given=target is not None,
        inputs=(SPECIALS[BOS], *symbols[:-1]),
        score=answer.hypothesis.score,
        cut=answer.hypothesis.cut,
        unknown=(*task.source.unknown(text), *answer.unknown),
        tree=answer.tree,
        notes=(*answer.notes, *looked.notes),
        **looked.seen(),
    )


def _searched(task: Transduce, engine: Engine, source: Padded, search: Search) -> ForcedOutput:
    """The best output of the search, with its tree where it has one."""
    limits = torch.tensor([task.limit(source.data.shape[1], search)])
    request = engine.own(SearchRequest(source, limits))
    best, found = search.explain(engine.stepper(), request)
    tree = None if found is None else tree_of(found, task.target)
    notes = [Note("drawn.tree")] if found is None else []
    names = tuple(task.target.name(id) for id in best.symbols)
    return ForcedOutput(best, task.target.decode(best.symbols), names, tree, tuple(notes))


def _held(
    task: Transduce,
    engine: Engine,
    source: Padded,
    target: str,
    search: Search,
    own: ForcedOutput,
) -> ForcedOutput:
    """A given target as if the search had found it, beside the tree of the model's own answer."""
    ids, names = names_of(task.target, target)
    scoring: Scoring = getattr(search, "scoring", Scoring("none"))
    (forced,) = force(engine.stepper(), source, [ids], scoring)
    notes = [Note("target.given")]
    if own.tree is not None:
        notes.append(Note("target.tree"))
    if scoring.coverage:
        notes.append(Note("target.coverage"))
    unknown = unknown_in(task.target, target)
    notes += unknown_notes(unknown)
    return ForcedOutput(forced, target, tuple(names), own.tree, tuple(notes), unknown)
