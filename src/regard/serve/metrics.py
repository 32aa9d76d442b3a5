"""Figures of the server in the text format of Prometheus."""

import os
import sys
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OTHER = "other"  # paths that there are none of: their names come from outside


class Histogram:
    """How often a value was at most each bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, label: str = "") -> list[str]:
        """As Prometheus writes it. label: `path="/predict"`."""
        comma, own = (f"{label},", f"{{{label}}}") if label else ("", "")
        total, lines = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{comma}le="{bound}"}} {total}')
        return [*lines, f"{name}_sum{own} {self.sum:.6f}", f"{name}_count{own} {total}"]


class Metrics:
    """What is counted while serving. waiting: says how many texts wait."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.latency: dict[str, Histogram] = {}
        self.batches, self.running = Histogram(SIZES), Histogram(SECONDS)
        self.symbols: Counter[str] = Counter()
        self.flying = 0
        self.waiting: Callable[[], int] = int

    @property
    def seconds(self) -> float:
        """How long it has been serving."""
        return time.monotonic() - self.began

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Counts a request that was answered."""
        self.requests[method, path, status] += 1
        self.latency.setdefault(path, Histogram(SECONDS)).add(seconds)

    def batch(self, size: int, seconds: float) -> None:
        """Counts a batch that was run."""
        self.batches.add(size)
        self.running.add(seconds)

    def text(self) -> str:
        """All of it."""
        parts = [
            *_part("requests_total", "counter", "Requests answered.", self._requests()),
            *_part("request_seconds", "histogram", "Time to answer.", self._latency()),
            *_part(
                "batch_texts",
                "histogram",
                "Texts run together.",
                self.batches.lines("regard_batch_texts"),
            ),
            *_part(
                "batch_seconds",
                "histogram",
                "Time of the model for a batch.",
                self.running.lines("regard_batch_seconds"),
            ),
            *_part(
                "symbols_total",
                "counter",
                "Symbols answered.",
                (
                    f'regard_symbols_total{{model="{_escape(name)}"}} {count}'
                    for name, count in sorted(self.symbols.items())
                ),
            ),
            *_gauge("queue_texts", "Texts that wait.", self.waiting()),
            *_gauge("requests_in_flight", "Requests not answered yet.", self.flying),
            *_gauge("process_resident_bytes", "Memory of the process.", resident()),
            *_gauge("uptime_seconds", "Time since the start.", round(self.seconds, 3)),
        ]
        return "\n".join(parts) + "\n"

    def _requests(self) -> Iterable[str]:
        for (method, path, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",path="{path}",status="{status}"'
            yield f"regard_requests_total{{{labels}}} {count}"

    def _latency(self) -> Iterable[str]:
        for path, histogram in sorted(self.latency.items()):
            yield from histogram.lines("regard_request_seconds", f'path="{path}"')


def _part(name: str, kind: str, about: str, lines: Iterable[str]) -> list[str]:
    return [f"# HELP regard_{name} {about}", f"# TYPE regard_{name} {kind}", *lines]


def _gauge(name: str, about: str, value: float) -> list[str]:
    return _part(name, "gauge", about, [f"regard_{name} {value}"])


def _escape(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def resident() -> int:
    """The bytes of memory that the process holds; where nobody says so the most it ever held, or
    0."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Counted:
    """Counts what passes."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self.app, self.metrics, self.paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status = time.monotonic(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.flying += 1
        try:
            await self.app(scope, receive, watched)
        finally:
            self.metrics.flying -= 1
            path, method = scope["path"], scope["method"]
            if path.startswith("/static/"):
                path = "/static/{name}"
            known = path if path in self.paths else OTHER
            self.metrics.request(
                method if method in METHODS else OTHER, known, status, time.monotonic() - began
            )


METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"))
