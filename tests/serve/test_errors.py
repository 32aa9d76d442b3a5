"""Errors: status, JSON body, field and message."""

from typing import Any

import pytest
from starlette.testclient import TestClient

JSON = {"content-type": "application/json"}


def rejected(client: TestClient, status: int, body: Any, path: str = "/predict") -> dict[str, Any]:
    """Asserts that a body is rejected; what is message."""
    response = client.post(path, json=body)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    message: dict[str, Any] = response.json()
    assert message["error"]
    return message


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "texts"),
        ({"texts": "bed"}, "texts"),
        ({"texts": []}, "texts"),
        ({"texts": ["a", 5]}, "texts.1"),
        ({"texts": ["a"], "nbest": "2"}, "nbest"),
        ({"texts": ["a"], "nbest": 0}, "nbest"),
        ({"texts": ["a"], "beam": 2}, "beam"),
        ({"texts": ["a"], "constraints": []}, "constraints"),
        ({"texts": ["a"], "constraints": [{"require": "a"}]}, "constraints.0.require"),
        ({"texts": ["a"], "constraints": [{"require": [""]}]}, "constraints.0.require.0"),
        ({"texts": ["a"], "search": {"beam": [5]}}, "search.beam"),
        ({"texts": ["a"] * 257}, "texts"),
        ({"texts": ["a", "b" * 5_001]}, "texts.1"),
        ({"texts": ["a"], "constraints": [{"prefix": "a" * 5_001}]}, "constraints.0.prefix"),
        ({"texts": ["a"], "constraints": [{"ban": ["a"] * 33}]}, "constraints.0.ban"),
        ({"texts": ["a" * 5_000], "return_alignment": True}, "return_alignment"),
        (
            {"texts": ["a" * 100] * 256, "return_alignment": True, "search": {"min_length": 2_000}},
            "return_alignment",
        ),
    ],
)
def test_schema_errors(client: TestClient, body: Any, field: str) -> None:
    message = rejected(client, 422, body)
    assert message["field"].startswith(field) and field in message["error"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"texts": ["\\ud800"]}',
        b'{"texts": ["\xed\xa0\x80"]}',
        b'{"texts": ["a"], "search": {"length_penalty": NaN}}',
        b'{"texts": ["a"], "search": {"length_penalty": Infinity}}',
        b'{"texts": ["a"], "search": {"length_penalty": 1e999}}',
        b'{"texts": ' + b"[" * 100_000,
        b'{"texts": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"texts": ["a"], "nbest": ' + b"9" * 5_000 + b"}",
    ],
)
def test_invalid_json(client: TestClient, content: bytes) -> None:
    response = client.post("/predict", content=content, headers=JSON)
    assert response.status_code == 422 and response.json()["error"]


def test_content_type(client: TestClient) -> None:
    """text/plain is rejected: pages of other origins can send it without a preflight."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = client.post("/predict", content=b"{}", headers={"content-type": kind})
        assert response.status_code == 415


@pytest.mark.parametrize(
    ("search", "word"),
    [
        ({"beam": 33}, "at most 32"),
        ({"beam": 0}, "greater than 0"),
        ({"beam": "5"}, "search.beam"),
        ({"beam": True}, "search.beam"),
        ({"beem": 5}, "beem"),
        ({"beem": None}, "beem"),
        ({"kind": "magic"}, "magic"),
        ({"kind": "ctc"}, "outputs steps; available: beam, sample"),
        ({"kind": "refine"}, "outputs steps; available: beam, sample"),
        ({"temperature": 0.5}, "sample"),
        ({"kind": "sample", "temperature": 1e-30}, "temperature"),
        ({"kind": "sample", "max_length": 2001}, "at most 2000"),
        ({"max_length": 10**9}, "at most 2000"),
        ({"min_length": 2001}, "at most 2000"),
        ({"length_penalty": 1e300}, "at most 10"),
        ({"beam_groups": 3}, "multiple"),
        ({"threshold": 0.5}, "threshold"),
    ],
)
def test_invalid_search_settings(client: TestClient, search: dict[str, Any], word: str) -> None:
    assert word in rejected(client, 400, {"texts": ["bed"], "search": search})["error"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"texts": ["bed"], "nbest": 33}, "at most 32"),
        ({"model": "tag", "texts": ["Anna"], "nbest": 2}, "nbest"),
        ({"model": "tag", "texts": ["Anna"], "return_alignment": True}, "return_alignment"),
        ({"model": "classify", "texts": ["a"], "constraints": [{"prefix": "a"}]}, "prefix"),
        ({"model": "regress", "texts": ["one, two"]}, "numbers"),
        ({"model": "regress", "texts": ["1,2", "1,nan"]}, "texts.1"),
        ({"texts": ["bed"], "constraints": [{"require": ["ж"]}]}, "require"),
        ({"texts": ["bed"], "constraints": [{"prefix": "a", "ban": ["a"]}]}, "banned"),
        ({"texts": ["a", "b"], "constraints": [{}, {"require": ["bж"]}]}, "texts.1"),
    ],
)
def test_invalid_requests(client: TestClient, body: Any, word: str) -> None:
    assert word in rejected(client, 400, body)["error"]


def test_unknown_models_paths_and_methods(client: TestClient) -> None:
    message = rejected(client, 404, {"model": "../transduce", "texts": ["a"]})
    assert "transduce, tag" in message["error"] and message["field"] == "model"
    assert client.get("/nothing").status_code == 404
    assert client.get("/static/..%2f..%2fapp.py").status_code == 404
    assert client.get("/static/app.py").status_code == 404
    wrong = client.get("/predict")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "POST" and wrong.json()["error"]


@pytest.mark.parametrize(
    "text", ["\x00", "\x07\x1b[31m", "\u202eabc", "👩‍👩‍👧", "\ufeff", "\r\n", "e\u0301" * 50, " "]
)
def test_unusual_texts_are_predicted(client: TestClient, text: str) -> None:
    for model in ("transduce", "tag", "classify", "language-model"):
        response = client.post("/predict", json={"model": model, "texts": [text]})
        assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "content",
    [
        b'{"texts": [' + b"1," * 100_000 + b"1]}",
        b'{"texts": ["a"], "constraints": [' + b"1," * 100_000 + b"1]}",
        b'{"texts": ["a"], "constraints": [{"require": [' + b"1," * 100_000 + b"1]}]}",
        b'{"texts": ["a"], "search": {' + b",".join(b'"%d":[]' % n for n in range(9_999)) + b"}}",
        b'{"texts": ["a"], ' + b",".join(b'"%d":1' % n for n in range(9_999)) + b"}",
        b'{"texts": ["a"], "constraints": [{'
        + b",".join(b'"%d":1' % n for n in range(9_999))
        + b"}]}",
    ],
)
def test_much_that_is_wrong_is_told_once(
    client: TestClient, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of all errors of a body of 4 MB would keep everybody wait_for_queue for 20 seconds."""
    from regard.serve import api_errors

    noted: list[int] = []
    original = api_errors.invalid_body

    def invalid_body(errors: Any) -> Any:
        noted.append(len(errors))
        return original(errors)

    monkeypatch.setattr(api_errors, "invalid_body", invalid_body)
    response = client.post("/predict", content=content, headers=JSON)
    assert response.status_code == 422 and response.json()["error"]
    assert sum(noted) < 10


def test_errors_truncate_long_field_names(client: TestClient) -> None:
    message = rejected(client, 422, {"texts": ["a"], "b" * 1_000: 1})
    assert len(message["error"]) < 300 and len(message["field"]) < 100
