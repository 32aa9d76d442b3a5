"""Metrics of the server in the text format of Prometheus."""

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
OTHER = "other"  # label of unknown paths and methods, whose names clients choose
METHODS = frozenset(("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"))

disable_created_metrics()  # omit the creation times of counters


class Metrics:
    """Counters, histograms and gauges of the server. paths: URL paths that are counted by name."""

    def __init__(self, paths: frozenset[str] = frozenset()) -> None:
        self.started, self.in_flight, self.paths = time.monotonic(), 0, paths
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        labels = ("method", "path", "status")
        self.requests = counter("regard_requests_total", "Finished requests.", labels)
        self.latency = histogram(
            "regard_request_duration_seconds", "Request duration.", ["path"], buckets=SECONDS
        )
        self.batch_sizes = histogram("regard_batch_size", "Texts per batch.", buckets=SIZES)
        self.batch_seconds = histogram(
            "regard_batch_duration_seconds", "Inference time per batch.", buckets=SECONDS
        )
        self.tokens = counter("regard_tokens_total", "Predicted tokens.", ["model"])
        self.queue_length = Gauge("regard_queue_length", "Queued texts.", registry=self.registry)
        for name, about, call in (
            ("requests_in_flight", "Unfinished requests.", lambda: self.in_flight),
            ("process_resident_bytes", "Resident memory of the process.", resident_bytes),
            ("uptime_seconds", "Time since the start.", lambda: round(self.uptime, 3)),
        ):
            Gauge(f"regard_{name}", about, registry=self.registry).set_function(call)

    @property
    def uptime(self) -> float:
        """Return the seconds since the start of the server."""
        return time.monotonic() - self.started

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        path = "/static/{name}" if path.startswith("/static/") else path
        path = path if path in self.paths else OTHER
        self.requests.labels(method if method in METHODS else OTHER, path, status).inc()
        self.latency.labels(path).observe(seconds)

    def count_batch(self, size: int, seconds: float) -> None:
        """Count a finished batch."""
        self.batch_sizes.observe(size)
        self.batch_seconds.observe(seconds)

    def render(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self.registry)


def resident_bytes() -> int:
    """Return the resident memory of the process (without /proc: its peak; on Windows: 0)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
