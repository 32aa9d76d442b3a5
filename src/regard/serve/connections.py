"""Connections: those that say nothing, or do not take their answer, are cut, so that none pile up;
and of more than are taken the last are refused."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from regard.serve.guard import CROWDED

Protocol: Any = AutoHTTPProtocol  # whichever parser is installed
BRIEF = 5.0  # seconds between two looks at a connection that is one too many, at most


def watched_connections(seconds: float, most: int) -> type[asyncio.Protocol]:
    """The protocol of the server; it looks at each connection after every so many seconds.

    uvicorn itself waits for ever for the first request, for the rest of a header, and for a client
    that does not read. Its own limit of connections refuses those of all clients, in plain text;
    here what comes when `most` are open is marked, for the guard to refuse, and cut when as many
    again are.
    """

    class Watched(Protocol):
        """A connection that is cut where nothing happened between two looks."""

        app_state: dict[str, Any]

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.pause = seconds
            if len(self.connections) > most:
                self.app_state = {**self.app_state, CROWDED: True}
                self.pause = min(seconds, BRIEF)
            self.look_again(None)
            if len(self.connections) > 2 * most:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.watch.cancel()
            super().connection_lost(exc)

        def look_again(self, seen: Any) -> None:
            self.watch = self.loop.call_later(self.pause, self.look, seen)

        def look(self, before: Any) -> None:
            """Cuts it if it is as it was before: nothing asked, or as much not taken."""
            unsent = self.transport.get_write_buffer_size()
            busy = self.cycle is not None and not self.cycle.response_complete
            now = (self.cycle, busy, unsent)
            if now == before and (unsent or not busy):
                self.transport.abort()
            else:
                self.look_again(now)

    return Watched
