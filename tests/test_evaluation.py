"""Evaluation: one number for validation, `regard evaluate` and Python, whatever the batches."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard import Transducer
from regard.data.reading.read import Example, Pair, group, read_pairs
from regard.data.tensors.special import BOS, EOS
from regard.metrics import HIGHER_IS_BETTER
from regard.tasks.values import Evaluation

Command = Callable[..., Any]
RANGES = ("exact_match", "bleu", "chrf", "short_bleu")


@pytest.fixture(scope="module")
def model(trained: Any) -> Transducer:
    return regard.load(trained.run)


@pytest.fixture(scope="module")
def dev(trained: Any) -> list[Example]:
    return group(read_pairs(str(trained.dev)).pairs)


def measure(model: Transducer, examples: list[Example], size: int = 64) -> Evaluation:
    return model.predictor_.evaluate(examples, rows=size)


def test_one_number_everywhere(
    command: Command, trained: Any, model: Transducer, dev: list[Example]
) -> None:
    """The end of training, `regard evaluate --json` and the estimator: equal to the last bit."""
    final = json.loads((trained.run / "scores.json").read_text())
    said = json.loads(command("evaluate", trained.run, trained.dev, "--json").out)
    assert said == {
        "metrics": final["scores"],
        "examples": final["examples"],
        "baselines": final["baselines"],
        "details": final["details"],
    }
    assert measure(model, dev).scores == final["scores"]
    assert model.evaluate([(e.source, e.references[0]) for e in dev]) == final["scores"]


def test_validation_while_training_is_the_same_number(trained: Any) -> None:
    """The dev set is small here, so each validation uses all of it."""
    lines = (trained.run / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    (final,) = [record for record in records if record["kind"] == "final"]
    at_best = [r for r in records if r["kind"] == "dev" and r["step"] == final["step"]]
    assert [record["scores"] for record in at_best] == [final["scores"]]
    best = max(record["scores"]["exact_match"] for record in records if record["kind"] == "dev")
    assert final["scores"]["exact_match"] == best


@pytest.mark.parametrize("size", [1, 7])
def test_batches_change_nothing(model: Transducer, dev: list[Example], size: int) -> None:
    complete, parts = measure(model, dev), measure(model, dev, size)
    assert [p.text for p in parts.predictions] == [p.text for p in complete.predictions]
    assert parts.scores == pytest.approx(complete.scores, rel=1e-5)
    assert parts.loss == pytest.approx(complete.loss, rel=1e-5)


def test_order_changes_nothing(model: Transducer, dev: list[Example]) -> None:
    there, back = measure(model, dev), measure(model, dev[::-1])
    assert [p.text for p in back.predictions] == [p.text for p in there.predictions][::-1]
    assert back.scores == pytest.approx(there.scores, rel=1e-5)


def test_perplexity_is_that_of_the_decoder_step_by_step(
    model: Transducer, dev: list[Example]
) -> None:
    """exp of the mean negative log probability of each token, EOS included."""
    total, count = 0.0, 0
    for example in dev[:6]:
        corpus = model.task_.corpus([Pair(example.source, example.references[0], 0)])
        source = corpus.batch(np.array([0])).source
        target = [*model.task_.target.encode_all([example.references[0]])[0], EOS]
        with torch.inference_mode():
            state = model.model_.start(source)
            for before, token in zip([BOS, *target], target, strict=False):
                logits, state = model.model_.step(torch.tensor([[before]]), state)
                total -= float(logits[0, -1].log_softmax(-1)[token])
                count += 1
    expected = math.exp(total / count)
    assert measure(model, dev[:6]).scores["perplexity"] == pytest.approx(expected, rel=1e-4)


def test_perplexity_counts_every_reference(model: Transducer) -> None:
    one, other = Example("abc", ("cba",)), Example("abc", ("ff",))
    both = Example("abc", ("cba", "ff"))
    nll = [math.log(measure(model, [example]).scores["perplexity"]) for example in (one, other)]
    expected = math.exp((4 * nll[0] + 3 * nll[1]) / 7)  # tokens with the end: 4 and 3
    assert measure(model, [both]).scores["perplexity"] == pytest.approx(expected, rel=1e-4)


def test_the_closest_reference_counts(model: Transducer) -> None:
    (prediction,) = model.predict(["abcdef"])
    wrong, right = Example("abcdef", ("x",)), Example("abcdef", ("x", prediction))
    assert measure(model, [right]).scores["exact_match"] == 100
    assert measure(model, [right]).scores["ser"] == 0
    assert measure(model, [wrong]).scores["exact_match"] == 0


def test_names_and_ranges(model: Transducer, dev: list[Example]) -> None:
    scores = measure(model, dev).scores
    assert list(scores) == [name for name in HIGHER_IS_BETTER if name in scores]
    assert set(scores) == {*RANGES, "ser", "cer", "wer", "perplexity"}
    assert scores["perplexity"] >= 1
    assert all(0 <= scores[name] <= 100 for name in RANGES)


def test_evaluating_does_not_touch_the_model(model: Transducer, dev: list[Example]) -> None:
    before = [parameter.clone() for parameter in model.model_.parameters()]
    random = torch.get_rng_state()
    measure(model, dev[:5])
    assert all(map(torch.equal, before, model.model_.parameters()))
    assert torch.equal(torch.get_rng_state(), random)  # so validating changes no training


def test_unknown_tokens(command: Command, trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "odd.tsv"
    path.write_text("a!b\tba\n?\tx\n\u00e4\t\u00e4\n")
    said = command("evaluate", trained.run, path, "--json")
    assert said.code == 0 and json.loads(said.out)["examples"] == 3
    assert "warning: 2 unknown tokens" in said.err and "read as: \u00e4 → a\n" in said.err


def test_an_empty_side_is_evaluated_too(command: Command, trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "gap.tsv"
    path.write_text("ab\tba\ncd\t\n\tba\n")
    said = command("evaluate", trained.run, path, "--json")
    assert said.code == 0 and json.loads(said.out)["examples"] == 3
