"""Fuzzing: no input causes a 500, and every error has a message."""

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
endpoints = pytest.mark.parametrize("path", fuzz_cases.ENDPOINTS)
# Everything JSON can encode, lone surrogates as escapes.
TEXTS = st.text(st.characters(), max_size=30) | st.text("abcdef\ud800\udfff\x00", max_size=9)


def fuzz_settings(examples: int) -> Any:
    """Return settings for this many deterministic examples."""
    slow = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    fixture = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, suppress_health_check=[*slow, *fixture], **PLAIN)


@pytest.fixture(autouse=True)
def small_numbers() -> Iterator[None]:
    """Enable denormals, which hypothesis needs and training may have disabled."""
    flushed = 5e-324 * 1.0 == 0.0
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(flushed)


@pytest.fixture(scope="module")
def app(estimators: dict[str, Estimator]) -> FastAPI:
    """Return an application with all tasks and small limits."""
    return build_app(estimators, ServeSettings(max_chars=2_000, max_length=100, timeout=240))


@pytest.fixture(scope="module")
def fuzz_client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def check_response(response: Any) -> dict[str, Any]:
    """Assert that a response is a success or an error with a message; return its JSON."""
    message = response.content.decode("utf-8")
    assert response.status_code in (200, *range(400, 500)), message
    if response.status_code != 200:
        found = json.loads(message)
        assert isinstance(found["error"], str) and found["error"].strip()
        return found
    if response.headers["content-type"].startswith("text/event-stream"):
        kind, data = message.strip().split("\n\n")[-1].split("\n")
        assert kind in ("event: result", "event: error") and INTERNAL_ERROR not in data
        return json.loads(data.removeprefix("data: "))
    return json.loads(message)


def ask(client: TestClient, path: str, body: Any) -> dict[str, Any]:
    data = body if isinstance(body, bytes) else fuzz_cases.encoded(body)
    return check_response(
        client.post(path, content=data, headers={"content-type": "application/json"})
    )


@endpoints
@pytest.mark.parametrize("name", fuzz_cases.TEXTS)
def test_unusual_texts(fuzz_client: TestClient, app: FastAPI, path: str, name: str) -> None:
    """With every model; texts above the limit are rejected."""
    text = fuzz_cases.TEXTS[name]
    for model in app.state.service.models:
        found = ask(fuzz_client, path, fuzz_cases.fields(path, text) | {"model": model})
        if len(text) > 2_000 and not found["error"].startswith("model: "):
            assert "2000" in found["error"].replace(",", "") or "bytes" in found["error"]


@endpoints
@fuzz_settings(15)
@given(text=TEXTS, place=st.integers(0, 4))
def test_random_texts(
    fuzz_client: TestClient, app: FastAPI, path: str, text: str, place: int
) -> None:
    model = list(app.state.service.models)[place]
    ask(fuzz_client, path, fuzz_cases.fields(path, text) | {"model": model})


@endpoints
def test_unusual_bodies(fuzz_client: TestClient, path: str) -> None:
    for body in (*fuzz_cases.bodies(path), *fuzz_cases.RAW_BODIES):
        ask(fuzz_client, path, body)


@endpoints
@fuzz_settings(10)
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
def test_random_json(fuzz_client: TestClient, path: str, body: Any) -> None:
    ask(fuzz_client, path, body)


OPERATIONS = [
    *(("POST", path) for path in fuzz_cases.ENDPOINTS),
    ("GET", "/models"),
    ("GET", "/limits"),
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_openapi_schema(
    fuzz_client: TestClient, app: FastAPI, method: str, path: str, right: bool
) -> None:
    """Invalid requests are rejected. Valid ones may be too: some settings exclude each other. All
    responses match the schema."""
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_dict(app.openapi())
    kind = schemathesis.GenerationMode
    mode = kind.POSITIVE if right else kind.NEGATIVE
    operation = schema[path][method]
    if not right and method == "GET":
        return  # no input, so nothing can be invalid

    @fuzz_settings(6)
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://testserver")
        sent["content"] = sent.pop("data", None)
        response = fuzz_client.request(**{name: value for name, value in sent.items() if value})
        assert response.status_code < 500, response.text
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    run()
