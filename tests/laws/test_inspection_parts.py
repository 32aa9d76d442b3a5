"""Laws of inspection where parts of an answer hang together: tags with a CRF, gaps in a text."""

import itertools
import math

import pytest
import torch

import regard
from regard.tasks.inspection.forced_pass import ForcedPass, InspectionRequest
from regard.tasks.inspection.tagger_pass import TaggerPass
from regard.tasks.tag import TagTask

from .test_inspection import EACH, attends, estimator_of, fills_gaps, look, values
from .toys import Case, built, one_of_each_kind

TAGGERS = [case for case in EACH if case.toy == "tag"]
tagged = pytest.mark.parametrize("case", TAGGERS, ids=lambda case: case.name)
tagged_by_each_kind = pytest.mark.parametrize(
    "case", one_of_each_kind(TAGGERS), ids=lambda case: case.name
)


def tagged_as(case: Case, words: tuple[str, ...], tags: tuple[int, ...]) -> TaggerPass:
    """A sentence whose words are held to have these tags."""
    predictor = estimator_of(case).predictor_
    task = predictor.task
    assert isinstance(task, TagTask)
    return task.forced_pass(
        InspectionRequest(predictor, words, " ".join(task.tags[tag] for tag in tags))
    )


@tagged
def test_odds_of_tags_are_those_of_their_probabilities(case: Case) -> None:
    """Of which gradients are taken: by other sums than the probabilities, where there is a CRF."""
    question = tagged_as(case, ("Ann", "saw", "Bo"), (1, 0, 2))
    with torch.inference_mode():
        p = question.probabilities().double()[torch.arange(3), list(question.tokens)]
        torch.testing.assert_close(
            question.output_scores([0, 1, 2]).double(), p.logit(), atol=1e-3, rtol=1e-3
        )


@tagged_by_each_kind
def test_scores_of_all_ways_to_tag_a_sentence_are_probabilities(case: Case) -> None:
    """Also with a CRF, whose tags hang together: the product of what each has is none there."""
    task = built(case).task
    assert isinstance(task, TagTask)
    ways = itertools.product(range(len(task.tags)), repeat=2)
    with torch.inference_mode():
        logs = [float(tagged_as(case, ("Ann", "saw"), way).scores(1).sum()) for way in ways]
    assert sum(map(math.exp, logs)) == pytest.approx(1, abs=1e-4)
    notes = look(case)[1].notes
    assert ("crf" in values(case, "head")) == any("CRF" in note for note in notes)


def test_head_ablation_is_skipped_for_long_masked_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would take one pass per token: that is reported, and nothing is guessed."""
    case = next(case for case in EACH if fills_gaps(case) and attends(case))
    monkeypatch.setattr("regard.tasks.inspection.masked_pass.MAX_ABLATION_COST", 0)
    found = look(case)[1]
    assert found.attention and not any(one.ablation_delta for one in found.attention)
    keys = [note.key for note in found.notes]
    assert "heads.skipped" in keys and "masked.ablation" not in keys


@pytest.mark.parametrize(
    "case", [case for case in EACH if case.toy == "words"], ids=lambda case: case.name
)
def test_words_that_are_hidden_one_at_a_time(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the longest, without which all that are left have fewer letters."""
    estimator, text = estimator_of(case), "Ann saw Unbelievably"
    whole = regard.inspect(estimator, text).saliency
    monkeypatch.setattr(ForcedPass, "max_copies", lambda self: 1)
    each = regard.inspect(estimator, text).saliency
    assert whole is not None and each is not None
    torch.testing.assert_close(each.values, whole.values, atol=1e-5, rtol=1e-3)
