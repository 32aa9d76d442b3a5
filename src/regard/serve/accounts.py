"""The model time that each client has used recently. A client is an address."""

import time
from collections.abc import Callable

MAX_DEBT = 5.0  # seconds; a client with more waits no longer
RECOVERY = 0.5  # seconds of debt that a client loses per second
MAX_CLIENTS = 1000  # above which clients without debt are forgotten


class Accounts:
    """The debt of each client: seconds of model time used, less what was recovered since."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._debts: dict[str, tuple[float, float]] = {}  # debt and when it was computed

    def debt(self, client: str) -> float:
        """Return the debt of a client in seconds, from 0 to MAX_DEBT."""
        debt, then = self._debts.get(client, (0.0, 0.0))
        return max(0.0, debt - RECOVERY * (self.clock() - then))

    def charge(self, client: str, seconds: float) -> None:
        """Add model time that a client has used."""
        if client not in self._debts and len(self._debts) >= MAX_CLIENTS:
            self._debts = {name: one for name, one in self._debts.items() if self.debt(name)}
        self._debts[client] = (min(MAX_DEBT, self.debt(client) + seconds), self.clock())
