"""regard.inspect on trained models: what is answered, what it rests on, and what is an error."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import regard
from regard.data.tensors.padded import Padded
from regard.inference.engine import Engine
from regard.inference.torch_engine import TorchEngine
from regard.models.ensemble import Ensemble
from regard.search import Hypothesis
from regard.tasks.inspection.forced_pass import ForcedPass
from regard.views.inspection import internals
from regard.views.inspection.inspection_page import pack_arrays


@pytest.fixture(scope="module")
def reverser(trained: Any) -> Any:
    return regard.load(trained.run)


@pytest.fixture(scope="module")
def loaded(models: Any) -> Callable[[str], Any]:
    return lambda task: regard.load(models(task).run)


def test_the_output_is_that_of_predict(reverser: Any) -> None:
    found = regard.inspect(reverser, "abcd")
    (answer,) = reverser.predict_detailed(["abcd"])
    assert found.source.tokens == ("a", "b", "c", "d", "<eos>")
    assert found.target.text == answer.text and found.inputs == ("<bos>", *answer.tokens)
    scores = [math.log(step.probability) for step in found.steps if step.probability]
    assert scores == pytest.approx(answer.token_logprobs, abs=1e-4)
    assert found.model["name"] == "run" and found.model["parameters"] > 1000
    assert "recurrent (gru, bidirectional" in found.model["description"]


def test_attention_is_the_alignment_of_predict(reverser: Any) -> None:
    (score,) = regard.inspect(reverser, "abcd").attention
    (answer,) = reverser.predict_detailed(["abcd"], return_alignment=True)
    assert (score.name, score.part) == ("decoder.score", "cross")
    torch.testing.assert_close(score.heads[0], torch.tensor(answer.alignment), atol=1e-5, rtol=0)


def test_saliency_is_the_gradient_of_each_token_by_itself(reverser: Any) -> None:
    """One backward pass for all rows gives what a pass for each gives."""
    found = regard.inspect(reverser, "abc", target="cb")
    model, source = (
        reverser.model_,
        torch.tensor([[*reverser.task_.source.tokenizer.encode("abc"), 3]]),
    )
    true = [*reverser.task_.target.encode("cb"), 3]
    for row, token in enumerate(true):
        with regard.capture(model) as captured:
            state = model.start(Padded(source, torch.ones_like(source, dtype=torch.bool)))
            logits, _ = model.step(torch.tensor([[2, *true[:-1]]]), state)
        p = logits[0, row].softmax(-1)[token]
        one = captured.saliency(p.log() - (1 - p).log())
        assert found.saliency is not None and found.saliency.decoder_inputs is not None
        torch.testing.assert_close(found.saliency.values[row], one["frontend.tokens"][0])
        torch.testing.assert_close(found.saliency.decoder_inputs.values[row], one["target"][0])


def test_parts_of_a_question_give_what_the_whole_gives(
    reverser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long answers are request in pieces."""
    whole = regard.inspect(reverser, "abcdef").as_dict()
    monkeypatch.setattr(ForcedPass, "max_copies", lambda self: 2)
    pieces = regard.inspect(reverser, "abcdef").as_dict()
    assert pieces["steps"] == whole["steps"] and pieces["tree"] == whole["tree"]
    for part in (
        lambda found: found["saliency"],
        lambda found: found["saliency"]["decoder_inputs"],
    ):
        one, other = (torch.tensor(part(found)["values"]) for found in (whole, pieces))
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
    deltas = [found["attention"][0]["ablation_delta"] for found in (whole, pieces)]
    assert deltas[0] == pytest.approx(deltas[1], abs=1e-4)


def test_of_many_gates_only_the_means_are_kept_and_that_is_reported(
    reverser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(internals, "MAX_GATE_VALUES", 100)
    found = regard.inspect(reverser, "abc")
    assert found.gates and all(gate.units is None for gate in found.gates)
    assert any("Only the means" in note for note in found.notes)
    assert all(gate["units"] == [] for gate in pack_arrays(found.as_dict())["gates"])


def test_a_forced_target_is_shown_with_the_search_tree(reverser: Any) -> None:
    found = regard.inspect(reverser, "abc", target="fafa")
    assert found.forced and found.target.tokens == ("f", "a", "f", "a", "<eos>")
    assert found.tree is not None and found.tree["best"] == reverser.predict(["abc"])[0]
    (row,) = reverser.log_likelihoods([("abc", "fafa")])
    assert sum(math.log(step.probability or 0) for step in found.steps) == pytest.approx(
        row["log_probability"], abs=1e-4
    )


def test_unknown_tokens_are_named_on_both_sides(reverser: Any) -> None:
    found = regard.inspect(reverser, "aжb", target="bя")
    assert found.unknown_tokens == ("ж", "я")
    assert found.source.tokens[1] == "ж"
    assert found.target.tokens[1] == found.steps[1].token == found.inputs[2] == "я"


def test_a_sampled_output_has_no_tree(reverser: Any) -> None:
    settings = {"kind": "sample", "temperature": 2.0, "seed": 4}
    found = regard.inspect(reverser, "abc", **settings)
    assert found.target.text == reverser.predict(["abc"], **settings)[0]
    assert found.tree is None and any("Sampled output" in note for note in found.notes)


def test_empty_texts(reverser: Any, loaded: Any) -> None:
    assert regard.inspect(reverser, "").source.tokens == ("<eos>",)
    assert regard.inspect(loaded("classify"), "").source.tokens == ("<bos>", "<eos>")
    assert regard.inspect(loaded("language-model"), "").target.tokens
    with pytest.raises(regard.UserError, match="the sentence has no words"):
        regard.inspect(loaded("tag"), " ")
    with pytest.raises(regard.UserError, match="expected 2 finite numbers"):
        regard.inspect(loaded("regress"), "")


def test_tags_and_their_probabilities(loaded: Any) -> None:
    model, words = loaded("tag"), ["Anna", "sees", "Rome"]
    found = regard.inspect(model, words)
    (answer,) = model.predict_detailed([words])
    assert found.target.tokens == answer.value and found.source.tokens == tuple(words)
    assert [step.probability for step in found.steps] == pytest.approx(
        answer.token_logprobs, abs=1e-5
    )
    assert regard.inspect(model, " ".join(words)).target == found.target
    held = regard.inspect(model, words, target="O O O")
    assert held.forced and held.target.tokens == ("O", "O", "O")
    for step, other in zip(held.steps, found.steps, strict=True):
        chances = dict([(other.token, other.probability), *other.alternatives])
        assert step.probability == pytest.approx(chances["O"], abs=1e-6)


def test_a_label_and_its_probability(loaded: Any) -> None:
    model = loaded("classify")
    found = regard.inspect(model, "the lovely house")
    (answer,) = model.predict_detailed(["the lovely house"])
    (step,) = found.steps
    assert {step.token: step.probability, **dict(step.alternatives)} == pytest.approx(
        answer.probabilities
    )
    assert found.target.text == answer.text == step.token
    held = regard.inspect(model, "the lovely house", target="bad")
    assert held.steps[0].probability == pytest.approx(answer.probabilities["bad"], abs=1e-6)


def test_gradients_of_a_confident_prediction_do_not_vanish(loaded: Any) -> None:
    model = loaded("classify")
    with torch.no_grad():
        model.model_.head.linear.weight.mul_(300)
    found = regard.inspect(model, "the lovely house")
    assert (
        found.steps[0].probability == 1
        and found.saliency
        and float(found.saliency.values.max()) > 1
    )


def test_a_number_and_what_it_depends_on(loaded: Any) -> None:
    """The data is 3 a - b + 5: of numbers of deviation 1, a weighs about 3 times its deviation."""
    model = loaded("regress")
    found = regard.inspect(model, [0.5, 4.0])
    (value,) = model.predict([[0.5, 4.0]])
    (step,) = found.as_dict()["steps"]
    assert step == {"token": f"{value:.6g}", "value": round(value, 6), "alternatives": []}
    assert found.source.tokens == ("x1=0.5", "x2=4") and found.saliency is not None
    inputs, near = model.task_.source, 1e-3
    for place in range(2):
        moved = [0.5, 4.0]
        moved[place] += near * inputs.std[place]
        slope = (model.predict([moved])[0] - value) / near
        assert float(found.saliency.values[0, place]) == pytest.approx(abs(slope), rel=2e-2)


def test_a_text_and_how_it_resumes(loaded: Any) -> None:
    model = loaded("language-model")
    found = regard.inspect(model, "Anna", max_length=5)
    assert found.target.text == model.predict(["Anna"], temperature=0, max_length=5)[0]
    assert [step.given for step in found.steps[:4]] == [True] * 4 and not found.steps[4].given
    nats = model.task_.token_nll(model.model_, ["Anna"], 1)[0]
    chances = [-math.log(step.probability or 0) for step in found.steps[:4]]
    assert chances == pytest.approx(nats[:4].tolist(), abs=1e-4)
    held = regard.inspect(model, "Anna", target=" xy")
    assert held.forced and held.target.text == "Anna xy" and held.unknown_tokens == ("x", "y")
    assert held.target.tokens == ("A", "n", "n", "a", "␣", "x", "y")
    drawn = regard.inspect(model, "Anna", temperature=1.0, seed=7, max_length=8)
    assert drawn.target.text == model.predict(["Anna"], temperature=1.0, seed=7, max_length=8)[0]


class Closed(Engine):
    """An engine of another kind."""

    name = "ctranslate2"

    def run(self, *given: Any) -> list[list[Hypothesis]]:
        return []


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (lambda model: Closed(), "ctranslate2 does not support inspection; inspect the run folder"),
        (lambda model: TorchEngine(Ensemble([model, model])), "inspect each model separately"),
    ],
)
def test_what_cannot_be_inspected(trained: Any, inner: Any, message: str) -> None:
    model = regard.load(trained.run)
    model.predictor_.engine = inner(model.model_)
    with pytest.raises(regard.UserError, match=message):
        regard.inspect(model, "abc")


ERRORS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("transduce", "a" * 20, {"max_tokens": 20}, "(?s)text: 21 tokens.*max_tokens=21"),
    (
        "transduce",
        "abc",
        {"target": "a" * 20, "max_tokens": 20},
        "(?s)target: 21 .*shorten the target, or raise the limit: max_tokens=21",
    ),
    (
        "transduce",
        "abc",
        {"min_length": 30, "max_tokens": 20},
        "(?s)output: 31 .*smaller max_length",
    ),
    ("transduce", "abc", {"top_k": 3}, "top_k: unknown search setting of a transduce model"),
    ("transduce", ["a", "b"], {}, "expected a string"),
    ("transduce", "a\udcff", {}, "text: expected UTF-8"),
    ("transduce", "a", {"target": "\ud800"}, "target: expected UTF-8"),
    ("tag", ["a", "\ud800"], {}, "text: expected UTF-8"),
    ("tag", 5, {}, "expected a string, found 5"),
    ("tag", "Anna sees", {"target": "O"}, "expected 2 tags, one per word, found 1"),
    ("tag", "Anna sees", {"target": "O B-PAR"}, "unknown tag 'B-PAR'; did you mean B-PER"),
    ("tag", "a b c", {"max_tokens": 2}, "text: 3 tokens"),
    ("tag", "Anna", {"beam": 3}, "beam: unknown search setting of a tag model"),
    ("classify", "the", {"target": "godo"}, "unknown label 'godo'; did you mean good"),
    ("classify", [1.0, 2.0], {}, "expected a string"),
    ("regress", "1, 2", {"target": "3"}, "a number has no probability"),
    ("regress", [1.0, 2.0, 3.0], {}, "expected 2 numbers, found 3"),
    ("language-model", "Anna " * 9, {"max_tokens": 20}, "text: 45 tokens"),
    ("language-model", "Anna", {"max_length": 20, "max_tokens": 20}, "text and continuation: 2"),
    ("language-model", ["Anna"], {}, "expected a string"),
]


@pytest.mark.parametrize(("task", "text", "given", "message"), ERRORS)
def test_what_is_an_error(
    reverser: Any, loaded: Any, task: str, text: Any, given: dict[str, Any], message: str
) -> None:
    model = reverser if task == "transduce" else loaded(task)
    with pytest.raises(regard.UserError, match=message):
        regard.inspect(model, text, **given)


def test_an_estimator_without_a_model() -> None:
    with pytest.raises(regard.UserError, match="not fitted"):
        regard.inspect(regard.Transducer(), "abc")


def test_own_output_next_to_a_given_target(reverser: Any) -> None:
    """Up to the first difference the true token is as probable as when it is forced."""
    own = regard.inspect(reverser, "abc")
    assert own.own == ()
    written = [step.token for step in own.steps]
    target = f"{own.target.text[0]}{own.target.text[0] * 3}"
    found = regard.inspect(reverser, "abc", target=target)
    assert [one.token for one in found.own][: len(written)] == written[: len(found.own)]
    differs = [o.token != step.token for o, step in zip(found.own, found.steps, strict=True)]
    first = differs.index(True)
    assert first > 0
    for one, step in list(zip(found.own, found.steps, strict=True))[: first + 1]:
        assert one.probability == pytest.approx(step.probability, abs=1e-4)
    assert found.as_dict()["own"][0].keys() == {"token", "probability"}
    ended = found.own[len(written) :]
    assert all(one.token == "" and one.probability is None for one in ended)
