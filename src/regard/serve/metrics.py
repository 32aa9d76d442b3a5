"""Statistics of the server in the text format of Prometheus."""

import os
import sys
import time
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
OTHER = "other"  # unknown paths and methods: their names come from outside
METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"))

disable_created_metrics()  # a second series for each counter that only says when it was made


class Metrics:
    """What is counted while serving. paths: those that are counted by name."""

    def __init__(self, paths: frozenset[str] = frozenset()) -> None:
        self.began, self.flying, self.paths = time.monotonic(), 0, paths
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        labels = ("method", "path", "status")
        self.requests = counter("regard_requests_total", "Requests answered.", labels)
        self.latency = histogram(
            "regard_request_seconds", "Time to answer.", ["path"], buckets=SECONDS
        )
        self.sizes = histogram("regard_batch_texts", "Texts run together.", buckets=SIZES)
        self.running = histogram(
            "regard_batch_seconds", "Time of the model for a batch.", buckets=SECONDS
        )
        self.tokens = counter("regard_tokens_total", "Tokens answered.", ["model"])
        self.waiting = Gauge("regard_queue_texts", "Texts that wait.", registry=self.registry)
        for name, about, call in (
            ("requests_in_flight", "Requests not answered yet.", lambda: self.flying),
            ("process_resident_bytes", "Memory of the process.", resident),
            ("uptime_seconds", "Time since the start.", lambda: round(self.seconds, 3)),
        ):
            Gauge(f"regard_{name}", about, registry=self.registry).set_function(call)

    @property
    def seconds(self) -> float:
        """How long it has been serving."""
        return time.monotonic() - self.began

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        path = "/static/{name}" if path.startswith("/static/") else path
        path = path if path in self.paths else OTHER
        self.requests.labels(method if method in METHODS else OTHER, path, status).inc()
        self.latency.labels(path).observe(seconds)

    def batch(self, size: int, seconds: float) -> None:
        """Count a batch that was run."""
        self.sizes.observe(size)
        self.running.observe(seconds)

    def text(self) -> bytes:
        """Return all of it."""
        return generate_latest(self.registry)


def resident() -> int:
    """Return the bytes of memory that the process holds; where nobody says so the most it ever
    held, or 0."""
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
