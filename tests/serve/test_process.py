"""`regard serve` as a process: address, slow and disconnected clients, shutdown, arguments."""

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from regard.serve import server as command_of_serve
from regard.serve.server import read_api_key, serve_command
from regard.serve.settings import ServeSettings

SLOW = {"min_length": 300, "max_length": 300, "beam": 8}  # takes about a second
TIMEOUT = 240  # seconds, for slow machines


class Process:
    """A running server and its address."""

    def __init__(self, run: Path, *words: str, descriptors: int | None = None) -> None:
        source = str(Path(__file__).parents[2] / "src")
        command = [sys.executable, "-m", "regard", "serve", f"turn={run}", "--port", "0", *words]
        limits = (descriptors, descriptors)
        set_limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        self.process = subprocess.Popen(
            command,
            preexec_fn=None if descriptors is None else set_limit,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        place = urlsplit(self.process.stdout.readline().strip())
        self.port = place.port or 0
        assert place.hostname == "127.0.0.1" and self.port, self.process.communicate()

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        given = {"content-type": "application/json", **headers}
        method, content = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, path, content, given)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()

    def raw(self, body: Any, path: str = "/predict", held: int = 0) -> socket.socket:
        """Open a connection and send a request without its last bytes; read nothing."""
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        head += f"content-length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content[: len(content) - held])
        return connection

    def metric(self, name: str) -> float:
        """Return a metric of /metrics."""
        lines = self.ask("/metrics")[2].decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def until(self, name: str, test: Callable[[float], bool]) -> None:
        """Wait until a metric passes a test."""
        end = time.monotonic() + TIMEOUT
        while not test(value := self.metric(name)):
            assert time.monotonic() < end, f"{name} is {value}"
            time.sleep(0.02)


@pytest.fixture
def process(trained: Any) -> Iterator[Process]:
    words = ("--batch-wait-ms", "0", "--max-batch-size", "1", "--timeout", str(TIMEOUT))
    one = Process(trained.run, *words)
    yield one
    one.process.kill()
    one.process.wait()


def test_slow_and_disconnected_clients_and_graceful_shutdown(process: Process) -> None:
    assert process.ask("/health")[0] == 200
    assert process.ask("/health", host="evil.example")[0] == 400  # only loopback names by default
    assert b"<html" in process.ask("/")[2]

    lazy = [process.raw({"text": "fade", "search": SLOW}, "/stream") for _ in range(3)]
    leaving = [process.raw({"texts": ["bed"] * 50, "search": SLOW}) for _ in range(3)]
    process.until("regard_queue_length", lambda value: value > 100)
    for connection in leaving:
        connection.close()
    process.until("regard_queue_length", lambda value: value < 10)  # they left the queue
    status, _, content = process.ask("/predict", {"texts": ["bed"]})
    assert status == 200 and json.loads(content)["predictions"]
    process.until(
        'regard_requests_total{method="POST",path="/predict",status="499"}', lambda v: v == 3
    )
    for connection in lazy:
        connection.close()

    process.until("regard_requests_in_flight", lambda value: value == 1)  # this request

    body = {"texts": ["fade"], "search": SLOW}
    running = process.raw(body, held=1)  # so that it cannot finish yet
    process.until("regard_requests_in_flight", lambda value: value == 2)
    process.process.send_signal(signal.SIGTERM)
    while (rejected := process.ask("/predict", {"texts": ["bed"]}))[0] == 200:
        time.sleep(0.01)
    assert rejected[0] == 503 and int(rejected[1]["retry-after"]) > 0
    for _ in range(25):  # it runs as long as a request is unfinished
        assert process.ask("/health")[0] == 503
        time.sleep(0.02)
    running.sendall(json.dumps(body)[-1:].encode())
    response = http.client.HTTPResponse(running)
    response.begin()
    assert response.status == 200 and json.loads(response.read())["predictions"]
    _, message = process.process.communicate(timeout=TIMEOUT)
    assert process.process.returncode == 0 and message.endswith("stopped\n")
    assert "Traceback" not in message


def test_more_clients_than_descriptors(trained: Any) -> None:
    """Silent and half-sent connections make room for others, and the log stays small."""
    process = Process(trained.run, descriptors=300)
    try:
        silent = [
            socket.create_connection(("127.0.0.1", process.port), timeout=TIMEOUT)
            for _ in range(400)
        ]
        for connection in silent[::2]:
            with contextlib.suppress(OSError):  # closed to make room
                connection.sendall(b"POST /predict HTTP/1.1\r\nhost: ")
        assert process.ask("/health")[0] == 200
        assert process.ask("/predict", {"texts": ["bed"]})[0] == 200
        for connection in silent:
            connection.close()
        process.process.send_signal(signal.SIGTERM)
        _, message = process.process.communicate(timeout=TIMEOUT)
        assert "connections instead of 512: the limit of open files is 300" in message
        assert "closed a silent one" in message and len(message) < 2000
        assert "Traceback" not in message and "cannot accept" not in message, message
    finally:
        process.process.kill()
        process.process.wait()


def test_invalid_arguments(command: Callable[..., Any], trained: Any, tmp_path: Path) -> None:
    short = tmp_path / "api_key"
    short.write_text("abc\n")
    non_ascii = tmp_path / "non_ascii"
    non_ascii.write_text("schlüssel-der-nicht-geht\n", "utf-8")
    for words, expected in (
        ((tmp_path / "nothing",), "no such model folder"),
        ((trained.run, trained.run), "two models are named run"),
        ((trained.run, "--api-key-file", short), "at least 8 printable"),
        ((trained.run, "--api-key-file", non_ascii), "printable ASCII"),
        ((trained.run, "--api-key-file", tmp_path / "none"), "cannot be read"),
        ((trained.run, "--max-texts", "2000"), "never fit"),
        ((trained.run, "--max-batch-size", "0"), "--max-batch-size"),
        ((trained.run, "--host", "256.0.0.1"), "choose another --host"),
        ((trained.run, "--host", "ж" * 80), "cannot listen"),
        ((trained.run, "--cors-origin", "https://page.example/"), "without a path"),
    ):
        result = command("serve", *words)
        assert result.code == 2 and expected in result.err, result


def test_api_key_files(tmp_path: Path) -> None:
    place = tmp_path / "api_key"
    for content in (b"0123456789\n", b"0123456789\r\n", b"\xef\xbb\xbf0123456789"):
        place.write_bytes(content)
        key = read_api_key(place)
        assert key is not None and key.get_secret_value() == "0123456789"


def test_public_host_without_api_key_warns(
    trained: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_of_serve, "run_server", lambda *_: None)
    for host, key, warned in (
        ("0.0.0.0", None, True),
        ("127.0.0.1", None, False),
        ("0.0.0.0", SecretStr("0123456789"), False),
    ):
        serve_command([str(trained.run)], host, 0, ServeSettings(api_key=key))
        assert ("no API key" in capsys.readouterr().err) == warned


def test_missing_packages(
    command: Callable[..., Any], trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("regard.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = command("serve", trained.run)
    assert result.code == 2 and "pip install 'regard[serve]'" in result.err
