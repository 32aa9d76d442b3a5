"""The command `regard`, which pauses at a point of its work until a signal arrives.

So a test decides what a signal interrupts, on a fast or a slow machine. The environment has
REGARD_HELD_AT, such as `step 12`, and REGARD_HELD, a file: when the process gets there, it writes
its pid to FILE-RANK. If that file exists, the process does not pause.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

PATIENCE = 240  # seconds for what a slow machine does in a few


class Process(Protocol):
    """What pauses: a process, or several."""

    def poll(self) -> int | None: ...


def held_at(place: str, number: int, mark: Path) -> dict[str, str]:
    """Return the environment of a command that pauses: after the update `step 12`, after the
    predictions of a window are recorded (`predictions 1`), before they are (`unrecorded 3`)."""
    return {"REGARD_HELD_AT": f"{place} {number}", "REGARD_HELD": str(mark.absolute())}


def wait_until_held(mark: Path, process: Process, rank: int = 0) -> int:
    """Wait until a process pauses; return its pid."""
    path = mark.with_name(f"{mark.name}-{rank}")
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert process.poll() is None, process.communicate()  # type: ignore[attr-defined]
        assert time.monotonic() < end, f"{path} is not there after {PATIENCE} s"
        time.sleep(0.005)
    return int(path.read_text())


def hold(heard: Callable[[], Any] = lambda: False) -> None:
    """Pause until a signal was caught, or one ends the process."""
    mark = Path(f"{os.environ['REGARD_HELD']}-{os.environ.get('RANK', '0')}")
    if not mark.exists():
        fresh = mark.with_name(f"{mark.name}.new")
        fresh.write_text(str(os.getpid()))
        fresh.rename(mark)
        while not heard():
            time.sleep(0.005)


def prepare() -> None:
    """Patch the pause that the environment names into the command."""
    place, count = os.environ["REGARD_HELD_AT"].split()
    number = int(count)
    from regard.inference.prediction.partial_file import PartialOutput
    from regard.training.log import Log

    add, write, record, calls = Log.add, PartialOutput.write, PartialOutput._record, list[int]()

    def held_add(log: Log, done: Any) -> None:
        add(log, done)
        if done.step == number:
            hold(lambda: log.run.interrupted)

    def held_write(part: PartialOutput, *given: Any) -> None:
        write(part, *given)
        calls.append(1)
        if len(calls) == number:
            hold()

    def held_record(part: PartialOutput) -> None:
        calls.append(1)
        if len(calls) == number:
            hold()
        record(part)

    if place == "step":
        Log.add = held_add  # type: ignore[method-assign]
    elif place == "predictions":
        PartialOutput.write = held_write  # type: ignore[method-assign]
    else:
        assert place == "unrecorded"
        PartialOutput._record = held_record  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.path.pop(0)  # the tests, among which nothing of regard is to be found
    os.fsync = lambda file: None  # as in the tests themselves
    prepare()
    from regard.cli import main

    main()
