"""Connections that say nothing, or do not take their answer: they are cut, so that none pile up."""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

Protocol: Any = AutoHTTPProtocol  # whichever parser is installed


def watched_connections(seconds: float) -> type[asyncio.Protocol]:
    """The protocol of the server; it looks at each connection after every so many seconds.

    uvicorn itself waits for ever for the first request, for the rest of a header, and for a client
    that does not read.
    """

    class Watched(Protocol):
        """A connection that is cut where nothing happened between two looks."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.look_again(None)

        def connection_lost(self, exc: Exception | None) -> None:
            self.watch.cancel()
            super().connection_lost(exc)

        def look_again(self, seen: Any) -> None:
            self.watch = self.loop.call_later(seconds, self.look, seen)

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
