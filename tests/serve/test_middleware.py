"""Who may ask, how much, and what browsers are told."""

from collections.abc import Callable, Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from regard.serve.middleware import accepted_hosts, host_name

Turner = Callable[..., FastAPI]
KEY = "a-secret-token-of-tests"
ASK = {"texts": ["bed"]}


def test_the_token(turner: Turner) -> None:
    with TestClient(turner(api_key=KEY)) as client:
        for given in (None, "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}x", "é"):
            headers = {} if given is None else {"authorization": given.encode()}
            for refused in (
                client.post("/predict", json=ASK, headers=headers),
                client.get("/models", headers=headers),
                client.get("/metrics", headers=headers),
                client.get("/nothing", headers=headers),
            ):
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"].startswith("Bearer")
                assert KEY not in refused.text
        good = {"authorization": f"bearer {KEY}"}
        assert client.post("/predict", json=ASK, headers=good).status_code == 200
        for path in ("/health", "/", "/docs", "/openapi.json"):  # a page asks for the key later
            assert client.get(path).status_code == 200
        assert KEY not in client.get("/openapi.json").text


def test_bodies_that_are_too_large(turner: Turner) -> None:
    def parts(count: int) -> Iterator[bytes]:
        yield b'{"texts": ["'
        for _ in range(count):
            yield b"a" * 10
        yield b'"]}'

    with TestClient(turner(max_body_mb=0.0001)) as client:
        kind = {"content-type": "application/json"}
        chunked = client.post("/predict", content=parts(5), headers=kind)
        assert "content-length" not in chunked.request.headers
        assert chunked.status_code == 200
        for content in (b"".join(parts(10)), parts(10)):
            refused = client.post("/predict", content=content, headers=kind)
            assert refused.status_code == 413 and "at most 100 bytes" in refused.json()["error"]
            assert refused.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/health", "/", "/nothing", "/predict"])
def test_browsers_are_told_what_they_may_do(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert ("script-src 'self'" in policy) == (path == "/")
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_other_origins_only_where_asked(turner: Turner) -> None:
    page, other = "https://page.example", "https://other.example"
    ask = {"access-control-request-method": "POST"}
    with TestClient(turner(cors_origins=(page,))) as client:
        welcome = client.options("/predict", headers={"origin": page, **ask})
        assert welcome.status_code == 204
        assert welcome.headers["access-control-allow-origin"] == page
        assert "authorization" in welcome.headers["access-control-allow-headers"]
        refused = client.options("/predict", headers={"origin": other, **ask})
        assert refused.status_code == 405
        assert "access-control-allow-origin" not in refused.headers
        answer = client.post("/predict", json=ASK, headers={"origin": page})
        assert answer.headers["access-control-allow-origin"] == page
        assert "Origin" in answer.headers["vary"]
        assert answer.headers["access-control-expose-headers"] == "retry-after"
    with TestClient(turner()) as client:
        assert client.options("/predict", headers={"origin": page, **ask}).status_code == 405
    with pytest.raises(ValueError, match="list the origins"):
        turner(cors_origins=("*",), api_key=KEY)


@pytest.mark.parametrize(
    "origin", ["https://page.example/", "page.example", "null", "https://Page.example", ""]
)
def test_origins_that_no_browser_sends(turner: Turner, origin: str) -> None:
    with pytest.raises(ValueError, match="without a path"):
        turner(cors_origins=(origin,))


def test_names_of_the_host(turner: Turner) -> None:
    """A name of somebody else that points to our address is not ours (DNS rebinding)."""
    names = accepted_hosts("127.0.0.1", ["Models.example"])
    with TestClient(turner(allowed_hosts=names)) as client:
        for good in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "models.example"):
            assert client.get("/health", headers={"host": good}).status_code == 200
        for bad in ("evil.example", "evil.example:8000", "localhost.evil.example", "", "[::2]"):
            refused = client.get("/health", headers={"host": bad})
            assert refused.status_code == 400 and "Host" in refused.json()["error"]
    assert "models.example" in (accepted_hosts("0.0.0.0", ["models.example"]) or ())
    assert accepted_hosts("0.0.0.0") is None and accepted_hosts("192.168.1.2") is None
    assert [host_name(h) for h in ("a:1", "A", "[::1]:2", "::1")][:3] == ["a", "a", "::1"]


def test_a_server_that_stops_refuses_what_is_new(turner: Turner) -> None:
    app = turner()
    with TestClient(app) as client:
        app.state.stopping = True
        refused = client.post("/predict", json=ASK)
        assert refused.status_code == 503 and refused.headers["retry-after"]
        assert refused.headers["connection"] == "close"
        health = client.get("/health")
        assert health.status_code == 503 and health.json()["status"] == "stopping"
        assert client.get("/metrics").status_code == 200


def test_head_is_a_get_without_content(client: TestClient) -> None:
    for path in ("/health", "/", "/metrics", "/static/base.css"):
        assert client.head(path).status_code == 200
    assert client.head("/predict").status_code == 405
    assert client.head("/nothing").status_code == 404
