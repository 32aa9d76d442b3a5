"""Who may ask, how much, and what browsers are notified."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.serve.middleware import accepted_hosts, host_name

BuildApp = Callable[..., FastAPI]
KEY = "a-secret-key-of-tests"
ASK = {"texts": ["bed"]}


def test_api_key(build_transducer_app: BuildApp) -> None:
    with TestClient(build_transducer_app(api_key=KEY)) as client:
        for given in (None, "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "é"):
            headers = {} if given is None else {"authorization": given.encode()}
            for rejected in (
                client.post("/predict", json=ASK, headers=headers),
                client.get("/models", headers=headers),
                client.get("/metrics", headers=headers),
                client.get("/nothing", headers=headers),
            ):
                assert rejected.status_code == 401
                assert rejected.headers["www-authenticate"].startswith("Bearer")
                assert KEY not in rejected.text
        good = {"authorization": f"bearer {KEY}"}
        assert client.post("/predict", json=ASK, headers=good).status_code == 200
        for path in ("/health", "/", "/docs", "/openapi.json"):  # the page prompts for the key
            assert client.get(path).status_code == 200
        assert KEY not in client.get("/openapi.json").text


def test_body_too_large(build_transducer_app: BuildApp) -> None:
    def parts(count: int) -> Iterator[bytes]:
        yield b'{"texts": ["'
        for _ in range(count):
            yield b"a" * 10
        yield b'"]}'

    with TestClient(build_transducer_app(max_body_mb=0.0001)) as client:
        kind = {"content-type": "application/json"}
        chunked = client.post("/predict", content=parts(5), headers=kind)
        assert "content-length" not in chunked.request.headers
        assert chunked.status_code == 200
        for content in (b"".join(parts(10)), parts(10)):
            rejected = client.post("/predict", content=content, headers=kind)
            assert rejected.status_code == 413 and "at most 100 bytes" in rejected.json()["error"]
            assert rejected.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/health", "/", "/nothing", "/predict"])
def test_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert ("script-src 'self'" in policy) == (path == "/")
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_cors(build_transducer_app: BuildApp) -> None:
    page, other = "https://page.example", "https://other.example"
    ask = {"access-control-request-method": "POST"}
    with TestClient(build_transducer_app(cors_origins=(page,))) as client:
        welcome = client.options("/predict", headers={"origin": page, **ask})
        assert welcome.status_code == 204
        assert welcome.headers["access-control-allow-origin"] == page
        assert "authorization" in welcome.headers["access-control-allow-headers"]
        rejected = client.options("/predict", headers={"origin": other, **ask})
        assert rejected.status_code == 405
        assert "access-control-allow-origin" not in rejected.headers
        response = client.post("/predict", json=ASK, headers={"origin": page})
        assert response.headers["access-control-allow-origin"] == page
        assert "Origin" in response.headers["vary"]
        assert response.headers["access-control-expose-headers"] == "retry-after"
    with TestClient(build_transducer_app()) as client:
        assert client.options("/predict", headers={"origin": page, **ask}).status_code == 405
    with pytest.raises(ValueError, match="list the origins"):
        build_transducer_app(cors_origins=("*",), api_key=KEY)


@pytest.mark.parametrize(
    "origin", ["https://page.example/", "page.example", "null", "https://Page.example", ""]
)
def test_invalid_origins(build_transducer_app: BuildApp, origin: str) -> None:
    with pytest.raises(ValueError, match="without a path"):
        build_transducer_app(cors_origins=(origin,))


def test_allowed_hosts(build_transducer_app: BuildApp) -> None:
    """A foreign name that points to this address is rejected (DNS rebinding)."""
    names = accepted_hosts("127.0.0.1", ["Models.example"])
    with TestClient(build_transducer_app(allowed_hosts=names)) as client:
        for good in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "models.example"):
            assert client.get("/health", headers={"host": good}).status_code == 200
        for bad in ("evil.example", "evil.example:8000", "localhost.evil.example", "", "[::2]"):
            rejected = client.get("/health", headers={"host": bad})
            assert rejected.status_code == 400 and "Host" in rejected.json()["error"]
    assert "models.example" in (accepted_hosts("0.0.0.0", ["models.example"]) or ())
    assert accepted_hosts("0.0.0.0") is None and accepted_hosts("192.168.1.2") is None
    assert [host_name(h) for h in ("a:1", "A", "[::1]:2", "::1")][:3] == ["a", "a", "::1"]


def test_new_requests_are_rejected_during_shutdown(build_transducer_app: BuildApp) -> None:
    app = build_transducer_app()
    with TestClient(app) as client:
        app.state.stopping = True
        rejected = client.post("/predict", json=ASK)
        assert rejected.status_code == 503 and rejected.headers["retry-after"]
        assert rejected.headers["connection"] == "close"
        health = client.get("/health")
        assert health.status_code == 503 and health.json()["status"] == "stopping"
        assert client.get("/metrics").status_code == 200


def test_head_is_a_get_without_content(client: TestClient) -> None:
    for path in ("/health", "/", "/metrics", "/static/base.css"):
        assert client.head(path).status_code == 200
    assert client.head("/predict").status_code == 405
    assert client.head("/nothing").status_code == 404
