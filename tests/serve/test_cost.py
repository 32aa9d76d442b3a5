"""The estimated cost of requests, and its limit."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.estimators import Estimator
from regard.serve.cost import inspect_cost, predict_cost
from regard.serve.jobs import PredictHandler
from regard.serve.request_sources import TextSource
from regard.serve.served_models import ServedModel
from regard.tasks.values import Constraints

from .calls import Calls

Served = Callable[..., Any]
BuildApp = Callable[..., FastAPI]


@pytest.fixture(scope="module")
def handler(estimators: dict[str, Estimator]) -> Callable[..., PredictHandler]:
    """`handler("transduce", beam=2)` returns a handler of a model."""

    def build(task: str, nbest: int = 1, **search: Any) -> PredictHandler:
        predictor = estimators[task].predictor_
        return PredictHandler(
            ServedModel(task, predictor), predictor.search_options(**search), nbest
        )

    return build


def test_everything_requested_adds_to_the_cost(handler: Callable[..., PredictHandler]) -> None:
    base, word = handler("transduce", beam=2), "abc"
    plain = predict_cost(base, TextSource(word))
    task: Any = base.model.task
    assert plain == 4 + 2 * task.max_output_length(4, base.search)
    for dearer in (
        predict_cost(base, TextSource(100 * word)),
        predict_cost(handler("transduce", beam=4), TextSource(word)),
        predict_cost(handler("transduce", nbest=8, beam=2), TextSource(word)),
        predict_cost(handler("transduce", beam=2, min_length=100), TextSource(word)),
        predict_cost(base, TextSource(word), Constraints(prefix=100 * word)),
        predict_cost(base, TextSource(word), Constraints(require=(word,))),
        predict_cost(base, TextSource(word), Constraints(ban=(word,))),
        predict_cost(base, TextSource(word), top=2),
    ):
        assert dearer > plain
    for more in ((word, 2 * word), (100 * word,)):
        required = Constraints(require=more)
        assert predict_cost(base, TextSource(word), required) > predict_cost(
            base, TextSource(word), Constraints("", more[1:])
        )
    prefix = Constraints(prefix=100 * word)
    assert predict_cost(base, TextSource(word), prefix, top=100) > 90 * predict_cost(
        base, TextSource(word), prefix
    )


def test_cost_of_other_tasks(handler: Callable[..., PredictHandler]) -> None:
    assert predict_cost(handler("classify"), TextSource("abc")) == 4  # no steps
    assert inspect_cost(handler("classify"), TextSource(""), None, 200) > 0
    model = handler("language-model", nbest=3, max_length=7)
    assert predict_cost(model, TextSource("abc")) == 4 + 3 * 7


def test_cost_of_inspections(handler: Callable[..., PredictHandler]) -> None:
    base = handler("transduce", beam=2)
    short, long = (inspect_cost(base, TextSource(n * "ab"), None, 200) for n in (1, 20))
    assert short < long < inspect_cost(base, TextSource(20 * "ab"), 50 * "ab", 200)
    assert inspect_cost(base, TextSource(1000 * "a"), None, 200) == inspect_cost(
        base, TextSource(4000 * "a"), None, 200
    )


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (
            "/alternatives",
            {"text": "a", "constraints": {"prefix": "ab" * 2400}, "top": 100},
            "constraints",
        ),
        (
            "/predict",
            {"texts": ["bed", "fed"], "constraints": [{}, {"require": ["ab" * 2000] * 32}]},
            "constraints.1",
        ),
        ("/stream", {"text": "a", "constraints": {"require": ["ab" * 2000]}}, "constraints"),
    ],
)
def test_requests_above_the_limit_are_422(
    client: TestClient, calls: Calls, path: str, body: Any, field: str
) -> None:
    rejected = client.post(path, json={**body, "search": {"beam": 5}})
    assert rejected.status_code == 422
    assert rejected.json()["field"] == field
    error = rejected.json()["error"]
    assert error.startswith(f"{field}: expected at most 1,000,000 steps") and "--max-work" in error
    assert not calls.sizes


def test_limit_can_be_changed(served: Served, build_transducer_app: BuildApp) -> None:
    async def run_requests(client: httpx.AsyncClient) -> None:
        limits = (await client.get("/limits")).json()
        assert limits["max_work"] == 100
        body = {"texts": ["bed", "bed" * 20], "search": {"beam": 1}}
        rejected = await client.post("/predict", json=body)
        assert rejected.status_code == 422, json.dumps(rejected.json())
        assert rejected.json()["field"] == "texts.1"
        body["texts"] = ["bed"]
        assert (await client.post("/predict", json=body)).status_code == 200

    served(build_transducer_app(max_work=100), run_requests)
