"""Laws of inspection where parts of an answer hang together: tags with a CRF, gaps in a text."""

import itertools
import math

import pytest
import torch

import regard
from regard.data.tensors.padded import Batch
from regard.models.labeller import Labeller
from regard.tasks.tag import Tag
from regard.views.inspection.question import Question
from regard.views.inspection.tagger_pass import TaggerPass

from .test_inspection import EACH, attends, estimator_of, fills_gaps, look, values
from .toys import Case, built

tagged = pytest.mark.parametrize(
    "case", [case for case in EACH if case.toy == "tag"], ids=lambda case: case.name
)


@tagged
def test_odds_of_tags_are_those_of_their_probabilities(case: Case) -> None:
    """Of which gradients are taken: by other sums than the probabilities, where there is a CRF."""
    task, model = built(case).task, built(case).model
    assert isinstance(task, Tag) and isinstance(model, Labeller)
    question = TaggerPass(model, Batch(task.source.batch([("Ann", "saw", "Bo")])), (1, 0, 2))
    with torch.inference_mode():
        p = question.chances(1)[0].double()[torch.arange(3), list(question.tags)]
        torch.testing.assert_close(
            question.each([0, 1, 2]).double(), p.logit(), atol=1e-3, rtol=1e-3
        )


@tagged
def test_scores_of_all_ways_to_tag_a_sentence_are_probabilities(case: Case) -> None:
    """Also with a CRF, whose tags hang together: the product of what each has is none there."""
    task, model = built(case).task, built(case).model
    assert isinstance(task, Tag) and isinstance(model, Labeller)
    batch, ways = (
        Batch(task.source.batch([("Ann", "saw")])),
        itertools.product(range(len(task.tags)), repeat=2),
    )
    with torch.inference_mode():
        logs = [float(TaggerPass(model, batch, way).scores(1).sum()) for way in ways]
    assert sum(map(math.exp, logs)) == pytest.approx(1, abs=1e-4)
    notes = look(case)[1].notes
    assert ("crf" in values(case, "head")) == any("CRF" in note for note in notes)


def test_heads_of_long_texts_with_gaps_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would take as many passes as there are symbols: that is said, and nothing is guessed."""
    case = next(case for case in EACH if fills_gaps(case) and attends(case))
    monkeypatch.setattr("regard.views.inspection.masked_pass.WORK", 0)
    found = look(case)[1]
    assert found.attention and not any(one.silenced for one in found.attention)
    keys = [note.key for note in found.notes]
    assert "heads.dear" in keys and "gaps.silenced" not in keys


@pytest.mark.parametrize(
    "case", [case for case in EACH if case.toy == "words"], ids=lambda case: case.name
)
def test_words_that_are_hidden_one_at_a_time(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the longest, without which all that are left have fewer letters."""
    estimator, text = estimator_of(case), "Ann saw Unbelievably"
    whole = regard.inspect(estimator, text).saliency
    monkeypatch.setattr(Question, "at_once", lambda self: 1)
    each = regard.inspect(estimator, text).saliency
    assert whole is not None and each is not None
    torch.testing.assert_close(each.values, whole.values, atol=1e-5, rtol=1e-3)
