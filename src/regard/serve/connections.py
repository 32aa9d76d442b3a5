"""Connection limits.

Idle and stalled connections are closed. If too many are open, the one that has kept the server
waiting longest makes room for a new one.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from regard.serve.descriptors import OVER_LIMIT_CONNECTIONS
from regard.serve.middleware import OVER_LIMIT
from regard.serve.throttled_log import ThrottledLog

HttpProtocol: Any = AutoHTTPProtocol  # uses the installed HTTP parser
CHECK_INTERVAL = 5.0  # seconds between two checks of a connection; the timeout if it is crowded
CROWDED = 0.75  # fraction of the maximum number of connections


class ConnectionPool:
    """The open connections of each address, those that wait longest for a request first."""

    def __init__(self, max_connections: int, log: ThrottledLog | None = None) -> None:
        self.max_connections, self.log = max_connections, log or ThrottledLog()
        self.by_address: dict[str, dict[Any, None]] = {}
        self.size = 0

    @property
    def is_crowded(self) -> bool:
        """Return whether silent connections get the short timeout."""
        return self.size > CROWDED * self.max_connections

    def add(self, connection: Any) -> bool:
        """Add a connection; close a waiting one if there are too many.

        Return False if the others are busy, so that the new one is above the limit.
        """
        if self.size >= self.max_connections:
            self._make_room()
        has_room = self.size < self.max_connections
        self.by_address.setdefault(connection.address, {})[connection] = None
        self.size += 1
        return has_room

    def remove(self, connection: Any) -> None:
        """Remove a connection, unless it was removed before."""
        same_address = self.by_address.get(connection.address, {})
        if connection in same_address:
            del same_address[connection]
            self.size -= 1
            if not same_address:
                del self.by_address[connection.address]

    def restart_wait(self, connection: Any) -> None:
        """Let a connection wait from now on: its client has got a response."""
        same_address = self.by_address.get(connection.address, {})
        if connection in same_address:
            del same_address[connection]
            same_address[connection] = None  # now the last

    def _make_room(self) -> None:
        """Close the connection that waits longest, of the address with the most connections."""
        for same_address in sorted(self.by_address.values(), key=len, reverse=True):
            for connection in same_address:
                if connection.is_waiting():
                    self.remove(connection)
                    connection.transport.abort()
                    limit = f"limit {self.max_connections}"
                    self.log.report("too many connections", f"closed a silent one ({limit})")
                    return


def limited_protocol(
    timeout: float, max_connections: int, log: ThrottledLog | None = None
) -> type[asyncio.Protocol]:
    """Return an HTTP protocol class that closes connections silent for `timeout` seconds.

    uvicorn itself waits without limit for the first request, for the rest of a header and for a
    client that does not read. Its own connection limit rejects the requests of all clients, in
    plain text. Here a new connection above `max_connections` replaces one whose client sends no
    complete request. If all are busy, it is marked, so that the middleware rejects its requests.
    """
    pool = ConnectionPool(max_connections, log)

    class LimitedProtocol(HttpProtocol):
        """A connection that is closed if nothing happens for a while."""

        app_state: dict[str, Any]

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.address = self.client[0] if self.client else ""
            self.unchanged_since = self.loop.time()
            self.previous: Any = (None, False, 0)
            self.timer = self.loop.call_later(min(timeout, CHECK_INTERVAL), self.check)
            if not pool.add(self):
                self.app_state = {**self.app_state, OVER_LIMIT: True}
                if pool.size > max_connections + OVER_LIMIT_CONNECTIONS:
                    transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            pool.remove(self)
            self.timer.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            pool.restart_wait(self)
            super().on_response_complete()

        def is_busy(self) -> bool:
            """Return whether a response is not complete."""
            return self.cycle is not None and not self.cycle.response_complete

        def is_waiting(self) -> bool:
            """Return whether the server waits for a request, or for the rest of one."""
            has_request = self.is_busy() and not self.cycle.more_body
            return not has_request and not self.transport.get_write_buffer_size()

        def check(self) -> None:
            """Close the connection if it was idle, or its client stalled, for too long."""
            unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
            state = (self.cycle, self.is_busy(), unsent)
            if state != self.previous:
                self.previous, self.unchanged_since = state, now
            limit = min(timeout, CHECK_INTERVAL) if pool.is_crowded else timeout
            if now - self.unchanged_since >= limit and (unsent or not self.is_busy()):
                self.transport.abort()
            else:
                self.timer = self.loop.call_later(min(timeout, CHECK_INTERVAL), self.check)

    return LimitedProtocol
