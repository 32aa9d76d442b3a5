"""Connection limits: silent and stalled connections are closed, waiting ones are not."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from regard.serve import connections
from regard.serve.connections import CHECK_INTERVAL, limited_protocol
from regard.serve.middleware import OVER_LIMIT
from regard.serve.throttled_log import ThrottledLog

ASK = b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF_HEADER = b"GET / HTTP/1.1\r\nhost: "
HALF_BODY = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{"


class FakeLoop:
    """An event loop whose clock the test sets. Timers fire in `advance`; tasks never run."""

    def __init__(self) -> None:
        self.now, self.timers = 0.0, list[tuple[float, Any, Any]]()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Any, *args: Any) -> Any:
        timer = (self.now + delay, call, args)
        self.timers.append(timer)
        return FakeTimer(lambda: timer in self.timers and self.timers.remove(timer))

    def create_task(self, coroutine: Any, **_: Any) -> Any:
        coroutine.close()
        return FakeTimer(lambda: None)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer[0] <= end]:
            first = min(due, key=lambda timer: timer[0])
            self.timers.remove(first)
            self.now = first[0]
            first[1](*first[2])
        self.now = end


class FakeTimer:
    """A timer or a task."""

    def __init__(self, cancel: Any) -> None:
        self.cancel = cancel

    def add_done_callback(self, call: Any) -> None:
        pass


class FakeTransport:
    """A socket of a client at an address; `unsent` bytes wait for it."""

    def __init__(self, address: str) -> None:
        self.address, self.is_closed, self.unsent = address, False, 0

    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self.address, 1), "sockname": ("127.0.0.1", 2)}.get(name)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    close = abort

    def write(self, data: bytes) -> None:
        pass


class Clients:
    """Connections of a server with a limit, without sockets."""

    def __init__(self, max_connections: int, timeout: float = 30.0) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            pass

        self.config = uvicorn.Config(app, log_level="critical")
        self.config.load()
        self.lines = list[str]()
        self.kind: Any = limited_protocol(
            timeout, max_connections, ThrottledLog(lambda: 0.0, self.lines.append)
        )
        self.state, self.loop = ServerState(), FakeLoop()

    def connect(self, data: bytes = b"", address: str = "1.1.1.1") -> Any:
        """Return a new connection that has sent this much."""
        self.loop.advance(0.001)
        one = self.kind(config=self.config, server_state=self.state, app_state={}, _loop=self.loop)
        one.connection_made(FakeTransport(address))
        if data:
            one.data_received(data)
        return one


def is_open(*those: Any) -> list[bool]:
    return [not one.transport.is_closed for one in those]


@pytest.mark.parametrize("silent", [b"", HALF_HEADER, HALF_BODY])
def test_new_connections_replace_silent_ones(silent: bytes) -> None:
    clients = Clients(3)
    busy = clients.connect(ASK % b"slow")
    first, second = clients.connect(silent), clients.connect(silent)
    assert all(is_open(busy, first, second))
    new = clients.connect()
    assert is_open(busy, first, second, new) == [True, False, True, True]
    assert OVER_LIMIT not in new.app_state
    another = clients.connect(ASK % b"slow")
    assert is_open(busy, second, new, another) == [True, False, True, True]
    assert len(clients.lines) == 1 and "closed a silent one (limit 3)" in clients.lines[0]


def test_more_bytes_of_a_header_do_not_keep_a_connection_open() -> None:
    clients = Clients(2)
    slow, other = clients.connect(HALF_HEADER), clients.connect(HALF_HEADER)
    slow.data_received(b"l")
    clients.connect()
    assert is_open(slow, other) == [False, True]


def test_a_response_restarts_the_wait() -> None:
    clients = Clients(2)
    first, second = clients.connect(ASK % b"a"), clients.connect()
    first.cycle.response_complete = True
    first.on_response_complete()
    clients.connect()
    assert is_open(first, second) == [True, False]


def test_the_address_with_most_connections_makes_room() -> None:
    clients = Clients(4)
    other = clients.connect(address="2.2.2.2")
    busy = clients.connect(ASK % b"slow")
    silent = [clients.connect() for _ in range(2)]
    clients.connect(address="3.3.3.3")
    assert is_open(other, busy, *silent) == [True, True, False, True]


def test_connections_above_the_limit_are_marked_and_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only if no connection is silent; otherwise that one is replaced, above the limit too."""
    monkeypatch.setattr(connections, "OVER_LIMIT_CONNECTIONS", 1)
    clients = Clients(2)
    busy = [clients.connect(ASK % b"slow") for _ in range(2)]
    above = clients.connect()
    assert OVER_LIMIT in above.app_state and is_open(above) == [True]
    next_above = clients.connect(ASK % b"health")
    assert OVER_LIMIT in next_above.app_state
    assert is_open(above, next_above) == [False, True]
    rejected = clients.connect()
    assert is_open(*busy, next_above, rejected) == [True, True, True, False]
    rejected.connection_lost(None)
    busy[0].connection_lost(None)
    next_above.connection_lost(None)
    assert OVER_LIMIT not in clients.connect().app_state


def test_silent_connections_get_the_short_timeout_when_crowded() -> None:
    clients = Clients(100, timeout=60)
    silent = clients.connect(HALF_HEADER)
    stalled = clients.connect(ASK % b"large")
    stalled.transport.unsent = 10
    busy = clients.connect(ASK % b"slow")
    clients.loop.advance(2 * CHECK_INTERVAL)
    assert is_open(silent, stalled, busy) == [True, True, True]  # not crowded
    crowd = [clients.connect() for _ in range(80)]
    clients.loop.advance(CHECK_INTERVAL)
    assert is_open(silent, stalled, busy) == [False, False, True]
    clients.loop.advance(CHECK_INTERVAL)
    assert not any(is_open(*crowd))


def test_silent_connections_are_closed_after_the_timeout() -> None:
    clients = Clients(100, timeout=30)
    silent, busy = clients.connect(HALF_HEADER), clients.connect(ASK % b"slow")
    reading = clients.connect(ASK % b"large")
    for unsent in range(10, 4, -1):  # it reads, slowly
        reading.transport.unsent = unsent
        assert is_open(silent, busy, reading) == [True, True, True]
        clients.loop.advance(CHECK_INTERVAL)
    assert is_open(silent, busy, reading) == [False, True, True]
    clients.loop.advance(30 + CHECK_INTERVAL)
    assert is_open(busy, reading) == [True, False]


def test_connections_above_the_limit_are_rejected(
    build_transducer_app: Callable[..., FastAPI],
) -> None:
    """The error is JSON; /health is still served. With real sockets."""

    async def run_requests() -> None:
        app, state = build_transducer_app(max_connections=1, batch_wait_ms=0), ServerState()
        config = uvicorn.Config(app, log_level="critical")
        config.load()
        kind: Any = limited_protocol(600, 1, ThrottledLog(write=lambda line: None))
        server = await asyncio.get_running_loop().create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]

        async def ask(connection: Any, path: bytes) -> tuple[bytes, bytes]:
            reader, writer = connection
            writer.write(ASK % path)
            head = await reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"content-length: (\d+)", head)
            return head, await reader.readexactly(int(length))

        silent = await asyncio.open_connection("127.0.0.1", port)
        silent[1].write(HALF_HEADER)
        first = await asyncio.open_connection("127.0.0.1", port)
        assert (await ask(first, b"limits"))[0].startswith(b"HTTP/1.1 200")
        assert await silent[0].read() == b""  # closed
        content = b'{"text": "bed"}'
        head = b"POST /stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        first[1].write(head + b"content-length: %d\r\n\r\n%b" % (len(content), content))
        while not app.state.service.batcher.queue:  # it never runs: the queue has no loop here
            await asyncio.sleep(0.01)
        second = await asyncio.open_connection("127.0.0.1", port)
        head, message = await ask(second, b"limits")
        assert head.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in head
        assert json.loads(message)["error"].startswith("too many connections (limit 1)")
        assert await second[0].read() == b""  # closed
        third = await asyncio.open_connection("127.0.0.1", port)
        assert (await ask(third, b"health"))[0].startswith(b"HTTP/1.1 200")
        for one in (silent, first, second, third):
            one[1].close()
        server.close()
        while state.connections or state.tasks:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run_requests(), 120))
