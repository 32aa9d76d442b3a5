"""POST /stream: partial predictions token by token; the result equals /predict."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from regard.data.reading.read import Pair
from regard.estimators import Estimator
from regard.search.callbacks import PartialHypothesis
from regard.serve.streaming import LatestPartial

Events = Callable[[str], list[tuple[str, Any]]]
SEARCHES = [{"beam": 1}, {"beam": 5}, {"kind": "sample", "seed": 3}, {"beam": 4, "beam_groups": 2}]


def streamed(client: TestClient, events_of: Events, body: dict[str, Any]) -> Any:
    response = client.post("/stream", json=body)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    return events_of(response.text)


@pytest.mark.parametrize("search", SEARCHES)
def test_transducer(client: TestClient, events_of: Events, search: dict[str, Any]) -> None:
    *partials, (last, result) = streamed(client, events_of, {"text": "fadeb", "search": search})
    assert last == "result" and {kind for kind, _ in partials} <= {"partial"}
    body = {"texts": ["fadeb"], "search": search}
    (expected,) = client.post("/predict", json=body).json()["predictions"]
    assert result["text"] == expected["text"] and result["model"] == "transduce"
    assert result["score"] == pytest.approx(expected["score"], abs=1e-5)
    for _, one in partials:
        assert "".join(one["tokens"]) == one["text"]
    if search.get("beam") == 1:
        assert all(result["text"].startswith(one["text"]) for _, one in partials)


@pytest.mark.parametrize("search", SEARCHES)
def test_logprobs_of_partial_predictions(
    client: TestClient, estimators: dict[str, Estimator], events_of: Events, search: dict[str, Any]
) -> None:
    """They equal those of teacher forcing."""
    model: Any = estimators["transduce"]
    *partials, _ = streamed(client, events_of, {"text": "fadeb", "search": search})
    assert partials
    for _, one in partials:
        pair = Pair("fadeb", one["text"], 0)
        ((_, given),) = model.predictor_.score([pair])
        tokens, scores = one["tokens"], one["token_logprobs"]
        assert given.tokens == tuple(tokens) and len(scores) - len(tokens) in (0, 1)
        assert scores == pytest.approx(given.token_logprobs[: len(scores)], abs=2e-4)


def test_language_model(client: TestClient, events_of: Events) -> None:
    body = {"model": "language-model", "text": "Anna "}
    *partials, (_, result) = streamed(client, events_of, body)
    assert partials and all(result["text"].startswith(one["text"]) for _, one in partials)
    assert all(one["text"].startswith("Anna ") for _, one in partials)
    assert not any("token_logprobs" in one for one in (result, *(one for _, one in partials)))
    (expected,) = client.post(
        "/predict", json={"model": "language-model", "texts": ["Anna "]}
    ).json()["predictions"]
    assert result["text"] == expected["text"]


def test_other_tasks_have_no_partial_predictions(client: TestClient, events_of: Events) -> None:
    ((kind, result),) = streamed(client, events_of, {"model": "tag", "text": "Anna sees Rome"})
    assert kind == "result" and len(result["value"]) == 3


def test_constraints_and_errors(client: TestClient, events_of: Events) -> None:
    body = {"text": "fade", "constraints": {"prefix": "cab"}}
    *_, (_, result) = streamed(client, events_of, body)
    assert result["text"].startswith("cab")
    body = {"text": "fade", "constraints": {"require": ["ж"]}}
    ((kind, message),) = streamed(client, events_of, body)
    assert kind == "error" and "require" in message["error"]
    assert client.post("/stream", json={"text": 5}).status_code == 422
    assert client.post("/stream", json={"text": "a", "search": {"beam": 99}}).status_code == 400
    assert client.post("/stream", json={"text": "a", "model": "b"}).status_code == 404


def test_greedy_search_notifies_every_step(estimators: dict[str, Estimator]) -> None:
    """Each step of a followed search is notified, with the places of the sources."""
    from regard.tasks.batches import PredictWork

    model = estimators["transduce"]
    for search in SEARCHES:
        notified: dict[int, list[tuple[int, ...]]] = {}

        def follow(places: Any, outputs: Any, notified: Any = notified) -> None:
            for index, so_far in zip(places, outputs(), strict=True):
                notified.setdefault(index, []).append(tuple(so_far.tokens))

        sources = ["bed", "fadeb", "a"]
        predictor = model.predictor_
        found = predictor.predict(
            sources, predictor.search_options(**search), work=PredictWork(step_callback=follow)
        )
        assert set(notified) == {0, 1, 2}
        for index, result in enumerate(found):
            lengths = [len(tokens) for tokens in notified[index]]
            if search.get("beam") == 1:
                tokens = tuple(notified[index][-1])
                task: Any = model.task_
                assert lengths == list(range(1, len(lengths) + 1))
                assert result.text.startswith(task.target.decode(tokens))


def test_slow_readers_get_the_latest_partial() -> None:
    async def read() -> Any:
        growth = LatestPartial()
        for tokens in ([5], [5, 6], [5, 6, 7]):
            growth.put(PartialHypothesis(tokens))
        await growth.ready.wait()
        return growth.take(), growth.take()

    assert asyncio.run(read()) == (PartialHypothesis([5, 6, 7]), None)
