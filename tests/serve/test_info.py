"""What the server says of itself: models, limits, metrics_by_name, its description, its files."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.core.version import __version__
from regard.estimators import Estimator
from regard.serve.served_models import (
    _text_direction,
    example_texts,
    open_models,
    training_facts,
)
from regard.serve.static import load_static_files

LINE = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+')


def test_models(client: TestClient, estimators: dict[str, Estimator]) -> None:
    found = client.get("/models").json()["models"]
    assert [one["name"] for one in found] == list(estimators)
    first = found[0]
    model = estimators["transduce"]
    assert first["task"] == "transduce" and "recurrent" in first["description"]
    assert first["parameters"] == sum(w.numel() for w in model.model_.parameters())
    assert first["search"] == model.config_.search.model_dump()
    assert first["capabilities"] == ["predict", "stream", "inspect", "alternatives"]
    assert len(first["examples"]) == 3 and set("".join(first["examples"])) <= set("abcdef")
    final = json.loads((model.folder_ / "scores.json").read_text())
    assert first["training"] == {
        "data": ["train.tsv"],
        "examples": json.loads((model.folder_ / "run.json").read_text())["examples"]["training"],
        "dev_examples": final["examples"],
        "metric": "exact_match",
        "score": final["scores"]["exact_match"],
        "higher_is_better": True,
        "sample": {"source": first["examples"][0], "target": first["examples"][0][::-1]},
    }
    assert [kind["properties"]["kind"]["const"] for kind in first["settings"]["oneOf"]] == [
        "beam",
        "sample",
    ]
    assert first["settings"]["oneOf"][0]["properties"]["beam"]["maximum"] == 32
    assert first["direction"] == {"source": "ltr", "target": "ltr"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"source": "ab"}', ["ab"]),
        ('{"source": "ab"}\n' * 2 + '{"source": "c"}', ["ab", "c"]),
        ('{"source": [1]}\n{"source": ""}', []),
        ("[1]", []),
        ('"ab"', []),
        ("{}", []),
        ("{", []),
        ("", []),
    ],
)
def test_example_texts(tmp_path: Path, line: str, found: list[str]) -> None:
    (tmp_path / "samples.jsonl").write_text(line, "utf-8")
    assert example_texts(tmp_path) == found


def test_paths_of_the_data_are_not_shown(tmp_path: Path) -> None:
    assert training_facts(tmp_path) is None
    final = {"kind": "final", "scores": {"bleu": 31.5}}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(final))
    facts = {
        "examples": {"training": 9, "dev": 4},
        "data": {"data": None, "source": "/secret/a.en", "target": "b.de"},
    }
    (tmp_path / "run.json").write_text(json.dumps(facts))
    found = training_facts(tmp_path)
    assert found is not None and found["data"] == ["a.en", "b.de"]
    assert (found["metric"], found["score"], found["dev_examples"]) == ("bleu", 31.5, 4)
    assert found["higher_is_better"] and found["sample"] is None


def test_the_sample_is_a_pair_of_texts(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "final", "scores": {"rmse": 0.5}}')
    (tmp_path / "run.json").write_text('{"examples": {"training": 9, "dev": 4}, "data": {}}')
    samples = (
        {"source": "a", "references": []},
        {"source": [1, 2], "references": ["b"]},
        {"source": "a", "references": [3]},
        {"source": "c", "references": ["d", "e"]},
    )
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    found = training_facts(tmp_path)
    assert found is not None and found["sample"] == {"source": "c", "target": "d"}
    assert not found["higher_is_better"]


def test_text_direction() -> None:
    assert _text_direction("אבגabשת") == "rtl"
    assert _text_direction("abcש12.") == _text_direction([]) == "ltr"


def test_health_and_limits(client: TestClient) -> None:
    health = client.get("/health").json()
    assert (health["status"], health["version"]) == ("ok", __version__)
    assert health["models"][0] == "transduce" and health["uptime_seconds"] > 0
    limits = client.get("/limits").json()
    assert (
        limits["max_texts"] == 256
        and limits["max_body_bytes"] == 4_000_000
        and "api_key" not in limits
    )


def test_metrics(build_transducer_app: Callable[..., FastAPI]) -> None:
    with TestClient(build_transducer_app()) as client:
        predictions = client.post("/predict", json={"texts": ["bed", "fade"]}).json()["predictions"]
        client.get("/nothing%22%0A")
        client.get("/static/base.css")
        response = client.get("/metrics")
        assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = response.text.splitlines()
    assert all(line.startswith("# ") or LINE.fullmatch(line) for line in lines)
    assert "_created" not in response.text
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    metrics_by_name = {name: float(value) for name, value in pairs}
    assert metrics_by_name['regard_requests_total{method="POST",path="/predict",status="200"}'] == 1
    assert metrics_by_name['regard_requests_total{method="GET",path="other",status="404"}'] == 1
    assert 'regard_request_duration_seconds_count{path="/static/{name}"}' in metrics_by_name
    assert metrics_by_name['regard_batch_size_bucket{le="1.0"}'] == 0
    assert metrics_by_name['regard_batch_size_bucket{le="2.0"}'] == 1
    assert metrics_by_name['regard_batch_size_bucket{le="+Inf"}'] == 1
    tokens = sum(len(one["tokens"]) for one in predictions)
    assert metrics_by_name['regard_tokens_total{model="turn"}'] == tokens
    assert metrics_by_name["regard_requests_in_flight"] == 1  # this request
    assert metrics_by_name["regard_process_resident_bytes"] > 10_000_000


def test_openapi_has_the_limits(client: TestClient) -> None:
    api = client.get("/openapi.json").json()
    schemas = api["components"]["schemas"]
    body = schemas["PredictRequest"]["properties"]
    assert body["texts"]["maxItems"] == 256 and body["texts"]["items"]["maxLength"] == 5_000
    assert body["model"]["anyOf"][0]["enum"][0] == "transduce"
    searches = [set(one["properties"]) for one in body["search"]["anyOf"]]
    assert [[name in one for name in ("beam", "temperature", "threshold")] for one in searches] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
        [False, True, False],
    ]
    for path in ("/predict", "/stream", "/inspect", "/alternatives"):
        operation = api["paths"][path]["post"]
        assert {"200", "400", "401", "404", "408", "413", "415", "422", "503"} == set(
            operation["responses"]
        )
        (ref,) = re.findall(r"schemas/(\w+)", str(operation["requestBody"]))
        assert ref in schemas
    used = set(re.findall(r"#/components/schemas/(\w+)", str(api)))
    assert used <= set(schemas)


def test_static_files(client: TestClient) -> None:
    assert {"base.css", "index.html", "app.js"} <= set(load_static_files())
    response = client.get("/static/base.css")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/css")
    again = client.get("/static/base.css", headers={"if-none-match": response.headers["etag"]})
    assert again.status_code == 304 and not again.content
    names = re.findall(r'(?:src|href)="(static/[^"]+)"', client.get("/").text)
    assert names
    for name in names:
        assert client.get(f"/{name}").status_code == 200, name


def test_media_types_do_not_depend_on_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, `mimetypes` may return text/plain for scripts, which browsers block."""
    monkeypatch.setattr("mimetypes.guess_type", lambda name: ("text/plain", None))
    files = load_static_files()
    assert files["app.js"].media_type.startswith("text/javascript")
    assert files["base.css"].media_type.startswith("text/css")


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_resident_bytes_without_proc(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    from regard.serve import metrics

    def raise_not_found(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(metrics, "open", raise_not_found, raising=False)
    monkeypatch.setattr("sys.platform", system)
    if system == "win32":
        monkeypatch.setitem(sys.modules, "resource", None)
    found = metrics.resident_bytes()
    assert found == 0 if system == "win32" else 0 < found < 10**9  # in bytes there


def test_inspect(client: TestClient) -> None:
    found = client.post("/inspect", json={"text": "fade", "search": {"beam": 2}}).json()
    assert found["model"]["name"] == "transduce" and found["tree"]["beam"] == 2
    assert "".join(found["source"]["tokens"]).startswith("fade")
    (prediction,) = client.post("/predict", json={"texts": ["fade"], "search": {"beam": 2}}).json()[
        "predictions"
    ]
    assert found["target"]["text"] == prediction["text"]
    given = client.post("/inspect", json={"text": "fade", "target": "cab"}).json()
    assert given["target"]["text"] == "cab" and given["target"]["forced"] is True
    rejected = client.post("/inspect", json={"text": "a", "search": {"max_tokens": 9}})
    assert rejected.status_code == 400 and "max_tokens" in rejected.json()["error"]


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"text": "a" * 500}, "text", "text: 501 tokens"),
        ({"text": "a", "target": "b" * 300}, "target", "target: 301 tokens"),
        ({"text": "a", "search": {"min_length": 250}}, None, "output: 251 tokens"),
    ],
)
def test_too_long_to_inspect(
    client: TestClient, body: Any, field: str | None, message: str
) -> None:
    """The error names the limit and the option of the server."""
    rejected = client.post("/inspect", json=body)
    problem = rejected.json()
    assert rejected.status_code == 422 and problem.get("field") == field
    count = re.findall(r"(\d+) tokens", message)[0]
    assert (
        problem["error"].startswith(message)
        and f"regard serve --max-inspect-tokens {count}" in problem["error"]
    )
    assert "--max-tokens" not in problem["error"] and "--max-length" not in problem["error"]


@pytest.mark.parametrize("name", ["", "other"])
def test_model_names(trained: Any, name: str) -> None:
    place = f"{name}={trained.run}" if name else str(trained.run)
    assert list(open_models([place])) == [name or "run"]
