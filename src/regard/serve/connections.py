"""Connection limits.

Idle and stalled connections are closed. Connections above the maximum number are rejected.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from regard.serve.middleware import OVER_LIMIT

HttpProtocol: Any = AutoHTTPProtocol  # uses the installed HTTP parser
MAX_OVER_LIMIT_INTERVAL = 5.0  # seconds between two checks of a connection above the limit


def limited_protocol(interval: float, max_connections: int) -> type[asyncio.Protocol]:
    """Return an HTTP protocol class that checks each connection every `interval` seconds.

    uvicorn itself waits without limit for the first request, for the rest of a header and for a
    client that does not read. Its own connection limit rejects the requests of all clients, in
    plain text. Here connections above `max_connections` are marked, so that the middleware rejects
    their requests. Connections above twice this number are closed at once.
    """

    class LimitedProtocol(HttpProtocol):
        """A connection that is closed if nothing happens between two checks."""

        app_state: dict[str, Any]

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.interval = interval
            if len(self.connections) > max_connections:
                self.app_state = {**self.app_state, OVER_LIMIT: True}
                self.interval = min(interval, MAX_OVER_LIMIT_INTERVAL)
            self.schedule_check(None)
            if len(self.connections) > 2 * max_connections:
                transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self.timer.cancel()
            super().connection_lost(exc)

        def schedule_check(self, state: Any) -> None:
            self.timer = self.loop.call_later(self.interval, self.check, state)

        def check(self, previous: Any) -> None:
            """Close the connection if it was idle, or its client stalled, since the last check."""
            unsent = self.transport.get_write_buffer_size()
            busy = self.cycle is not None and not self.cycle.response_complete
            state = (self.cycle, busy, unsent)
            if state == previous and (unsent or not busy):
                self.transport.abort()
            else:
                self.schedule_check(state)

    return LimitedProtocol
