"""POST /predict and /alternatives: the same results as the estimators."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from starlette.testclient import TestClient

from regard.estimators import Constraints, Estimator

TEXTS = {
    "transduce": ["fade", "bed", ""],
    "tag": ["Anna sees Rome", "Ben Long likes the dog"],
    "classify": ["the house is fine", "awful tree"],
    "regress": ["0.5, 2", "-1;3"],
    "language-model": ["Anna ", ""],
}
Ask = Callable[..., Any]


@pytest.fixture
def ask(client: TestClient) -> Ask:
    def post(**body: Any) -> Any:
        response = client.post("/predict", json=body)
        assert response.status_code == 200, response.text
        return response.json()["predictions"]

    return post


@pytest.mark.parametrize("task", TEXTS)
def test_predictions_equal_those_of_the_estimator(
    ask: Ask, estimators: dict[str, Estimator], task: str
) -> None:
    model = estimators[task]
    sources = [model.task_.parse(text) for text in TEXTS[task]]
    expected = model.predictor_.predict(sources)
    found = ask(model=task, texts=TEXTS[task])
    assert [one["text"] for one in found] == [one.text for one in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.get("score") == (other.score and pytest.approx(other.score, abs=2e-6))
        value = other.json_value()
        assert one["value"] == (list(value) if isinstance(value, tuple) else value)


def test_fields_that_do_not_apply_are_omitted(ask: Ask) -> None:
    (plain,) = ask(texts=["bed"])
    assert set(plain) == {"text", "value", "score", "tokens", "token_logprobs"}
    assert len(plain["token_logprobs"]) == len(plain["tokens"]) + 1
    (label,) = ask(model="classify", texts=["a fine tree"])
    assert label["value"] in ("good", "bad", "even")
    assert sum(label["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    (number,) = ask(model="regress", texts=["1 2"])
    assert isinstance(number["value"], float) and "score" not in number
    (tags,) = ask(model="tag", texts=["Anna sees Rome"])
    assert len(tags["value"]) == 3


def test_nbest_search_and_alignment(ask: Ask, estimators: dict[str, Estimator]) -> None:
    model: Any = estimators["transduce"]
    (found,) = ask(
        texts=["fade"], nbest=3, search={"beam": 4, "length_penalty": 0}, return_alignment=True
    )
    (expected,) = model.predict_detailed(
        ["fade"], nbest=3, beam=4, length_penalty=0, return_alignment=True
    )
    assert [one["text"] for one in found["nbest"]] == [one.text for one in expected.nbest]
    assert found["nbest"][0]["text"] == found["text"]
    assert [sum(row) for row in found["alignment"]] == pytest.approx(
        [1] * (len(found["tokens"]) + 1), abs=1e-4
    )


def test_constraints(ask: Ask, estimators: dict[str, Estimator]) -> None:
    model: Any = estimators["transduce"]
    constraints = [{"prefix": "ca"}, {"require": ["b"], "ban": ["e"]}, {}]
    found = ask(texts=["fade"] * 3, constraints=constraints)
    expected = model.predict(
        ["fade"] * 3,
        constraints=[Constraints("ca"), Constraints("", ("b",), ("e",)), Constraints()],
    )
    assert [one["text"] for one in found] == expected
    assert found[0]["text"].startswith("ca")
    assert "b" in found[1]["text"] and "e" not in found[1]["text"]


def test_unknown_tokens_and_truncation(ask: Ask) -> None:
    (found,) = ask(texts=["bжed"], search={"max_length": 1})
    assert found["unknown_tokens"] == ["ж"] and found["truncated"] is True


def test_integral_floats_are_integers(ask: Ask) -> None:
    (found,) = ask(texts=["bed"], nbest=2.0, search={"beam": 3.0})
    assert len(found["nbest"]) == 2


def test_the_first_model_is_the_default(client: TestClient) -> None:
    assert client.post("/predict", json={"texts": ["bed"]}).json()["model"] == "transduce"


def test_alternatives(client: TestClient, estimators: dict[str, Estimator]) -> None:
    model: Any = estimators["transduce"]
    body = {"text": "fade", "constraints": {"prefix": "e", "ban": ["d", "d"]}, "top": 3}
    found = client.post("/alternatives", json=body).json()["alternatives"]
    expected = model.predictor_.alternatives("fade", Constraints("e", (), ("d",)), 3)
    assert [one["token"] for one in found] == [token for token, _, _ in expected]
    assert [one["prediction"]["text"] for one in found] == [one.text for _, _, one in expected]
    assert found[0]["probability"] >= found[1]["probability"] >= found[2]["probability"] > 0
    assert client.post("/alternatives", json={"text": "fade"}).status_code == 200
    rejected = client.post("/alternatives", json={"model": "tag", "text": "Anna"})
    assert rejected.status_code == 400 and "alternatives" in rejected.json()["error"]


def test_alternatives_are_searched_in_chunks(
    estimators: dict[str, Estimator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of a hundred copies of a long text would exhaust the memory."""
    from regard.inference.torch_engine import TorchEngine
    from regard.tasks import batches, sequence_decoding

    predictor: Any = estimators["transduce"].predictor_
    rows: list[int] = []
    original = TorchEngine.run

    def run(engine: Any, search: Any, request: Any) -> Any:
        rows.append(len(request.source.data))
        return original(engine, search, request)

    monkeypatch.setattr(TorchEngine, "run", run)
    query = ("fade", Constraints("c"), 5)
    expected = predictor.alternatives(*query)
    two_rows = partial(batches.plan, max_tokens=10)  # of "fade"
    monkeypatch.setattr(sequence_decoding, "plan", two_rows)
    parts = predictor.alternatives(*query)
    assert rows == [5, 2, 2, 1]
    assert [(one[0], one[2].text) for one in parts] == [(one[0], one[2].text) for one in expected]
