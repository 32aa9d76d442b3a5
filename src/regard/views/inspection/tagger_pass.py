"""A tagger seen from inside: the tags of a sentence, and what each rests on.

n copies, S words, C tags.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.suggest import nearest
from regard.data.tensors.padded import Batch
from regard.data.vocabulary.display_names import printable
from regard.inference.predictor import Predictor
from regard.models.labeller import Labeller
from regard.nn import crf
from regard.tasks.tag import Tag
from regard.views.inspection.about import about
from regard.views.inspection.inspected_texts import refuse_longer
from regard.views.inspection.internals import inside
from regard.views.inspection.notes import Note
from regard.views.inspection.question import Scored, log_odds
from regard.views.inspection.steps import steps_of
from regard.views.inspection.value import Inspection, TokenizedText


@dataclass(frozen=True)
class TaggerPass(Scored):
    """A sentence and the tag that each of its words is held to have."""

    model: Labeller
    batch: Batch  # of one row
    tags: tuple[int, ...]

    def chances(self, copies: int) -> Tensor:
        """(n, S, C): the probability of each tag of each word."""
        scores, transitions, mask = self._run(copies)
        if transitions is None:
            return scores.softmax(-1)
        return crf.marginals(scores, transitions, mask)

    def scores(self, copies: int) -> Tensor:
        """(n, S) of each tag; with a CRF, whose tags hang together, (n, 1) of all of them."""
        tags = torch.tensor(self.tags, device=_device(self.batch)).expand(copies, -1)
        scores, transitions, mask = self._run(copies)
        if transitions is not None:
            return -crf.nll(scores, transitions, tags, mask)[:, None]
        return scores.log_softmax(-1).gather(-1, tags[..., None]).squeeze(-1)

    def each(self, parts: list[int]) -> Tensor:
        """(n,): with a CRF, all ways through the tag against all ways past it."""
        scores, transitions, mask = self._run(len(parts))
        places, own = torch.arange(len(parts)), [self.tags[part] for part in parts]
        if transitions is None:
            return log_odds(scores[places, parts], own)
        past = torch.zeros_like(scores, dtype=torch.bool)  # (n, S, C) what is struck out
        past[places, parts, own] = True
        through = torch.zeros_like(past)
        through[places, parts] = ~past[places, parts]
        ways = [scores.masked_fill(out, float("-inf")) for out in (through, past)]
        one, other = (crf.partition_in_logs(way, transitions, mask) for way in ways)
        return one - other

    def _run(self, copies: int) -> tuple[Tensor, Tensor | None, Tensor]:
        assert self.batch.source is not None
        source = self.batch.source.copies(copies)
        found = self.model(self.batch._replace(source=source))
        return found.logits.float(), found.transitions, source.mask

    def lengths(self) -> tuple[int, int]:
        return len(self.tags), len(self.tags)


def inspect_tagger(
    predictor: Predictor, words: tuple[str, ...], target: str | None, search: Any, most: int
) -> Inspection:
    """The tags of a sentence, or given ones, and what is behind them."""
    task, model = predictor.task, predictor.engine.inside().eval()
    assert isinstance(task, Tag) and isinstance(model, Labeller)
    if not words:
        raise UserError("text: a sentence without words; give the words with spaces between them")
    refuse_longer("text", len(words), most, "give a shorter sentence")
    (found,) = predictor.predict([words])
    batch = Batch(task.source.batch([words])).to(next(model.parameters()).device)
    if target is None:
        labels = tuple(task.numbers[tag] for tag in found.value)
    else:
        labels = _given(task, words, target)
    question = TaggerPass(model, batch, labels)
    with torch.inference_mode():
        chances = question.chances(1)[0].cpu()
        score = float(question.scores(1).sum())
    looked = inside(question, "target")
    joint = getattr(predictor.config.model, "head", "") == "crf"
    tags = tuple(task.tags[label] for label in labels)
    return Inspection(
        model=about(predictor),
        source=TokenizedText(" ".join(words), tuple(map(printable, words))),
        target=TokenizedText(" ".join(tags), tags),
        steps=tuple(steps_of(chances, labels, lambda label: task.tags[label])),
        given=target is not None,
        score=score,
        unknown=found.unknown,
        **looked.seen(),
        notes=(*([Note("crf")] if joint else []), *looked.notes),
    )


def _given(task: Tag, words: tuple[str, ...], target: str) -> tuple[int, ...]:
    """The tags of a target, one for each word."""
    tags = target.split()
    if len(tags) != len(words):
        raise UserError(f"target: {len(words)} tags expected, one for each word, {len(tags)} found")
    for tag in tags:
        if tag not in task.numbers:
            raise UserError(f"target: no tag {tag!r}{nearest(tag, task.tags)}")
    return tuple(task.numbers[tag] for tag in tags)


def _device(batch: Batch) -> torch.device:
    assert batch.source is not None
    return batch.source.data.device
