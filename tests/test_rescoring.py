"""Rescoring: hypotheses in the order of a weighted mean of two models' log probabilities."""

import math
from pathlib import Path

import pytest
import torch

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.inference.predictor import Predictor
from regard.inference.rescoring import with_scorer
from regard.training.run import Run
from regard.training.start import start_run

PAIRS = [Pair(word, word[::-1], n) for n, word in enumerate(["abc", "ba", "cab", "b", "acc"], 1)]
TEXTS = [Pair("", pair.target, pair.line) for pair in PAIRS]
TOKENS = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}
SIZES = {"width": 8, "layers": 1}
SOURCES = ["abc", "cb", "a"]


def predictor(tree: dict, pairs: list[Pair], seed: int) -> Predictor:
    run: Run = start_run(Path("nowhere"), check_config(tree, "test"), pairs, pairs)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter += 0.4 * torch.randn(parameter.shape)
    return Predictor.of(run.task, run.config, run.model.eval(), Path(f"run-{seed}"))


def transducer(decoder: dict, seed: int = 1) -> Predictor:
    sides = {"encoder": {"kind": "recurrent", **SIZES}, "decoder": decoder}
    return predictor({"model": sides, "task": TOKENS}, PAIRS, seed)


def language_model() -> Predictor:
    tree = {"task": {"kind": "language-model", "tokenizer": "char"}}
    tree["model"] = {"decoder": {"kind": "recurrent", **SIZES}}
    return predictor(tree, TEXTS * 4, 5)


PARALLEL = {"kind": "parallel", "heads": 2, **SIZES}
FIRST = [
    {"kind": "recurrent", **SIZES},
    PARALLEL,
    PARALLEL | {"length": "ctc"},
    PARALLEL | {"length": "eos"},
    {"kind": "none", "width": 8},
]
FOUND = ["steps", "fill", "ctc", "eos", "none"]


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("decoder", FIRST, ids=FOUND)
@pytest.mark.parametrize("scorer", [None, language_model()], ids=["transducer", "language model"])
def test_ranks_are_by_the_mean_of_both(
    decoder: dict, scorer: Predictor | None, weight: float
) -> None:
    first, other = transducer(decoder), scorer or transducer(FIRST[0], seed=2)
    count = max(3, first.config.search.candidates)
    lists = first.predict(SOURCES, nbest=count)
    found = with_scorer(first, other, weight).predict(SOURCES, nbest=3)
    for source, before, after in zip(SOURCES, lists, found, strict=True):
        expected = []
        for one in before.nbest:
            ((row, _),) = other.score([Pair(source, one.text, 0)])
            theirs = row.get("log_probability", -row.get("nats", 0.0))
            both = (1 - weight) * math.fsum(one.token_logprobs) + weight * theirs
            expected.append((both / (len(one.tokens) + 1), one.text))
        expected.sort(key=lambda pair: -pair[0])
        assert [one.text for one in after.nbest] == [text for _, text in expected[:3]]
        scores = [score for score, _ in expected[:3]]
        assert [one.score for one in after.nbest] == pytest.approx(scores, abs=1e-4)
        assert (after.text, after.score) == (after.nbest[0].text, after.nbest[0].score)


def test_all_candidates_of_the_search_compete() -> None:
    """Although only one prediction is wanted, and whatever the batch."""
    first, other = transducer(PARALLEL), transducer(FIRST[0], seed=2)
    best = with_scorer(first, other).predict(SOURCES)
    full = with_scorer(first, other).predict(SOURCES, nbest=first.config.search.candidates)
    assert [one.text for one in best] == [one.text for one in full]
    assert [len(one.nbest) for one in best] == [1, 1, 1]
    alone = with_scorer(first, other).predict(SOURCES, rows=1)
    assert [one.text for one in alone] == [one.text for one in best]
    assert [one.score for one in alone] == pytest.approx([one.score for one in best], abs=1e-5)


def test_a_language_model_does_not_rank_alone() -> None:
    """Unless the caller asks for it: it does not know the source."""
    first = transducer(FIRST[0])
    assert with_scorer(first, transducer(FIRST[0], seed=2)).weight == 1
    assert with_scorer(first, language_model()).weight == 0.3


def test_what_cannot_score_is_named() -> None:
    first = transducer(PARALLEL)
    with pytest.raises(UserError, match="--rescore run-3: expected a model that scores targets"):
        with_scorer(first, transducer(PARALLEL, seed=3))
    with pytest.raises(UserError, match="--rescore-weight: expected a number from 0 to 1, found 2"):
        with_scorer(first, transducer(FIRST[0]), 2.0)
    with pytest.raises(UserError, match="not supported for task language-model"):
        with_scorer(language_model(), transducer(FIRST[0]))
    with pytest.raises(UserError, match="alignments are not supported"):
        with_scorer(first, transducer(FIRST[0])).predict(SOURCES, return_alignment=True)
