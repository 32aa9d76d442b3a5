"""Connections that say nothing, or do not take their answer, are cut; those that wait are not."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from regard.serve.connections import watched_connections

ASK = b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n"
LARGE = 50_000_000  # more than the system takes for a client


def test_connections_that_do_nothing_are_cut() -> None:
    async def talk() -> None:
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
        kind: Any = watched_connections(0.3)
        server = await asyncio.get_running_loop().create_server(
            lambda: kind(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]

        async def connect(said: bytes) -> Any:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
            writer.write(said)
            return reader, writer

        waits = await connect(ASK % b"slow")
        dawdles = await connect(ASK % b"large")  # and reads only what its buffer takes
        others = [await connect(said) for said in (b"", b"GET / HTTP/1.1\r\nhost: ")]
        for reader, _ in others:
            assert await asyncio.wait_for(reader.read(), 60) == b""
        while len(state.connections) > 1:  # the one that waits for its answer stays
            await asyncio.sleep(0.05)
        go.set()
        assert (await waits[0].readuntil(b"xxxxxxxxxx")).startswith(b"HTTP/1.1 200")
        for _, writer in (waits, dawdles, *others):
            writer.close()
        server.close()

    asyncio.run(asyncio.wait_for(talk(), 120))
