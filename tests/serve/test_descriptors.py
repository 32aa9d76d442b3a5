"""File descriptors: the limit is raised, connections fit it, and the log stays small."""

import asyncio
import errno
import resource
from typing import Any

import pytest

from regard.serve import descriptors
from regard.serve.descriptors import fit_connections, raise_limit
from regard.serve.server import on_loop_error
from regard.serve.throttled_log import INTERVAL, ThrottledLog

NEEDED = 10 + descriptors.OVER_LIMIT_CONNECTIONS + descriptors.UNCOUNTED + descriptors.SPARE


class Limits:
    """The limits of open files, which the test sets, and no call changes for the test itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.soft, self.hard = 0, 0
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (self.soft, self.hard))
        monkeypatch.setattr(resource, "setrlimit", self.set)
        monkeypatch.setattr(descriptors, "num_open_descriptors", lambda: 10)

    def set(self, kind: int, limits: tuple[int, int]) -> None:
        assert kind == resource.RLIMIT_NOFILE and limits[1] == self.hard
        self.soft = limits[0]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    return Limits(monkeypatch)


@pytest.mark.parametrize(
    ("soft", "hard", "found"),
    [
        (256, 4096, 1000),
        (256, 512, 512),
        (2000, 4096, 2000),
        (256, resource.RLIM_INFINITY, 1000),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_soft_limit_is_raised_as_needed(
    limits: Limits, soft: int, hard: int, found: int | None
) -> None:
    limits.soft, limits.hard = soft, hard
    assert raise_limit(1000) == found
    assert limits.soft == (soft if found is None else found)


def test_limit_that_cannot_be_raised(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("current limit exceeds maximum limit")

    limits.soft, limits.hard = 256, resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "setrlimit", fail)
    assert raise_limit(1000) == 256


def test_connections_fit_the_limit(limits: Limits, capsys: pytest.CaptureFixture[str]) -> None:
    limits.soft, limits.hard = 256, 1024
    assert fit_connections(512) == 512 and limits.soft == NEEDED + 512
    assert not capsys.readouterr().err
    limits.soft, limits.hard = 256, 300
    assert fit_connections(512) == 300 - NEEDED and limits.soft == 300
    printed = capsys.readouterr().err
    assert f"at most {300 - NEEDED} connections instead of 512" in printed
    assert f"ulimit -n {NEEDED + 512}" in printed
    limits.soft, limits.hard = 64, 64
    assert fit_connections(512) == descriptors.MIN_CONNECTIONS


def test_warnings_are_printed_once_per_minute() -> None:
    now, lines = [0.0], list[str]()
    log = ThrottledLog(lambda: now[0], lines.append)
    for _ in range(1000):
        log.report("no room", "first")
    log.report("other")
    assert lines == ["no room: first", "other"]
    now[0] = INTERVAL
    log.report("no room", "second")
    assert lines[2:] == ["no room: second (999 more since the last warning)"]


def test_failures_to_accept_connections_have_no_traceback() -> None:
    lines, others = list[str](), list[Any]()
    log = ThrottledLog(lambda: 0.0, lines.append)
    loop = asyncio.new_event_loop()
    loop.default_exception_handler = others.append  # type: ignore[method-assign]
    for number in (errno.EMFILE, errno.ENFILE, errno.EMFILE):
        on_loop_error(log, loop, {"exception": OSError(number, "Too many open files")})
    assert lines == [f"cannot accept connections: [Errno {errno.EMFILE}] Too many open files"]
    assert not others
    bug = {"message": "a bug", "exception": ZeroDivisionError()}
    on_loop_error(log, loop, bug)
    on_loop_error(log, loop, {"message": "no exception"})
    assert others == [bug, {"message": "no exception"}]
    loop.close()
