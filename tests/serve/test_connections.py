"""Connection limits: idle and stalled connections are closed, waiting ones are not."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from regard.serve.connections import limited_protocol

ASK = b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = 50_000_000  # more than the socket buffers hold


def test_idle_connections_are_closed() -> None:
    async def run_requests() -> None:
        go, state = asyncio.Event(), ServerState()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            slow = scope["path"] == "/slow"
            if slow:
                await go.wait()
            body = b"x" * (10 if slow else LARGE)
            headers = [(b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        config = uvicorn.Config(app, log_level="critical", timeout_keep_alive=60)
        config.load()
        kind: Any = limited_protocol(0.3, 9)
        server = await asyncio.get_running_loop().create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]

        async def connect(message: bytes) -> Any:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writer.write(message)
            return reader, writer

        pending = await connect(ASK % b"slow")
        stalled = await connect(ASK % b"large")  # and reads only into its buffer
        others = [await connect(message) for message in (b"", b"GET / HTTP/1.1\r\nhost: ")]
        for reader, _ in others:
            assert await asyncio.wait_for(reader.read(), 60) == b""
        while len(state.connections) > 1:  # the one that pending for its response stays
            await asyncio.sleep(0.05)
        go.set()
        assert (await pending[0].readuntil(b"xxxxxxxxxx")).startswith(b"HTTP/1.1 200")
        for _, writer in (pending, stalled, *others):
            writer.close()
        server.close()

    asyncio.run(asyncio.wait_for(run_requests(), 120))


def test_connections_above_the_limit_are_rejected(
    build_transducer_app: Callable[..., FastAPI], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is JSON; earlier connections and /health are still served."""

    # No connection is closed for being idle.
    monkeypatch.setattr("regard.serve.connections.MAX_OVER_LIMIT_INTERVAL", 600)

    async def run_requests() -> None:
        app, state = build_transducer_app(max_connections=2), ServerState()
        config = uvicorn.Config(app, log_level="critical")
        config.load()
        kind: Any = limited_protocol(600, 2)
        server = await asyncio.get_running_loop().create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]

        async def open_are(count: int) -> None:
            while len(state.connections) != count:
                await asyncio.sleep(0.01)

        async def connect(count: int) -> Any:
            """Open a connection and wait until this many are open."""
            found = await asyncio.open_connection("127.0.0.1", port)
            await open_are(count)
            return found

        async def ask(connection: Any, path: bytes) -> tuple[bytes, bytes]:
            reader, writer = connection
            writer.write(ASK % path)
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"content-length: (\d+)", head)
            return head, await reader.readexactly(int(length))

        first, second, third, fourth = [await connect(count) for count in (1, 2, 3, 4)]
        head, message = await ask(third, b"limits")
        assert head.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in head
        assert json.loads(message)["error"].startswith("too many connections (limit 2)")
        assert await third[0].read() == b""  # closed
        await open_are(3)
        assert (await ask(fourth, b"health"))[0].startswith(b"HTTP/1.1 200")
        for one in (first, second):
            assert (await ask(one, b"limits"))[0].startswith(b"HTTP/1.1 200")
        last = await connect(4)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""  # above twice the limit: closed at once
        for one in (writer, *(open_one[1] for open_one in (first, second, fourth, last))):
            one.close()
        await open_are(0)
        again = await connect(1)
        assert (await ask(again, b"limits"))[0].startswith(b"HTTP/1.1 200")
        again[1].close()
        server.close()

    asyncio.run(asyncio.wait_for(run_requests(), 120))
