"""The server and whatever is sent to it: never a 500, and each refusal says what was wrong."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from regard.estimators import Estimator
from regard.serve.api_errors import INTERNAL_ERROR
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

from . import fuzz_cases

PLAIN = {"deadline": None, "derandomize": True, "database": None, "phases": [Phase.generate]}
doors = pytest.mark.parametrize("door", fuzz_cases.ENDPOINTS)
# All that JSON can carry: halves of characters, which UTF-8 cannot, as escapes.
TEXTS = st.text(st.characters(), max_size=30) | st.text("abcdef\ud800\udfff\x00", max_size=9)


def quick(examples: int) -> Any:
    """So many examples, the same each time."""
    odd = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    fixture = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, suppress_health_check=[*odd, *fixture], **PLAIN)


@pytest.fixture(autouse=True)
def small_numbers() -> Iterator[None]:
    """Training here may have turned the smallest numbers off, without which nothing is drawn."""
    flushed = 5e-324 * 1.0 == 0.0
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(flushed)


@pytest.fixture(scope="module")
def app(estimators: dict[str, Estimator]) -> FastAPI:
    """All tasks, with small limits: what is large is refused soon."""
    return build_app(estimators, ServeSettings(max_chars=2_000, max_length=100, timeout=240))


@pytest.fixture(scope="module")
def anyone(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def calm(answer: Any) -> dict[str, Any]:
    """The JSON of an answer that is one, or of a refusal that says why."""
    said = answer.content.decode("utf-8")
    assert answer.status_code in (200, *range(400, 500)), said
    if answer.status_code != 200:
        found = json.loads(said)
        assert isinstance(found["error"], str) and found["error"].strip()
        return found
    if answer.headers["content-type"].startswith("text/event-stream"):
        kind, data = said.strip().split("\n\n")[-1].split("\n")
        assert kind in ("event: result", "event: error") and INTERNAL_ERROR not in data
        return json.loads(data.removeprefix("data: "))
    return json.loads(said)


def ask(client: TestClient, door: str, body: Any) -> dict[str, Any]:
    data = body if isinstance(body, bytes) else fuzz_cases.encoded(body)
    return calm(client.post(door, content=data, headers={"content-type": "application/json"}))


@doors
@pytest.mark.parametrize("name", fuzz_cases.TEXTS)
def test_odd_texts(anyone: TestClient, app: FastAPI, door: str, name: str) -> None:
    """By every model; what is too long is refused by its length."""
    text = fuzz_cases.TEXTS[name]
    for model in app.state.service.models:
        found = ask(anyone, door, fuzz_cases.fields(door, text) | {"model": model})
        if len(text) > 2_000 and not found["error"].startswith("model: "):
            assert "2000" in found["error"].replace(",", "") or "bytes" in found["error"]


@doors
@quick(30)
@given(text=TEXTS, place=st.integers(0, 4))
def test_any_text(anyone: TestClient, app: FastAPI, door: str, text: str, place: int) -> None:
    model = list(app.state.service.models)[place]
    ask(anyone, door, fuzz_cases.fields(door, text) | {"model": model})


@doors
def test_odd_bodies(anyone: TestClient, door: str) -> None:
    for body in (*fuzz_cases.bodies(door), *fuzz_cases.RAW_BODIES):
        ask(anyone, door, body)


@doors
@quick(20)
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["texts", "text", "model", "search", "nbest", "request", "beam", "x"]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json(anyone: TestClient, door: str, body: Any) -> None:
    ask(anyone, door, body)


OPERATIONS = [
    *(("POST", door) for door in fuzz_cases.ENDPOINTS),
    ("GET", "/models"),
    ("GET", "/limits"),
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_what_the_description_allows_and_forbids(
    anyone: TestClient, app: FastAPI, method: str, path: str, right: bool
) -> None:
    """What is wrong by OpenAPI is refused. What is right may be too: settings that do not go
    together. All answers are as described."""
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_dict(app.openapi())
    kind = schemathesis.GenerationMode
    mode = kind.POSITIVE if right else kind.NEGATIVE
    operation = schema[path][method]
    if not right and method == "GET":
        return  # nothing is given, so nothing can be wrong

    @quick(12)
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://testserver")
        sent["content"] = sent.pop("data", None)
        answer = anyone.request(**{name: value for name, value in sent.items() if value})
        assert answer.status_code < 500, answer.text
        case.validate_response(answer, excluded_checks=[positive_data_acceptance])

    run()
