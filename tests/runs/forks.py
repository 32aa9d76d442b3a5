"""Commands in forked processes, alone or two that share the work as those of torchrun do.

A fork has everything imported already, so it starts at once. That torchrun itself starts and
restarts processes is tested in `test_torchrun.py`.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import holding
import torch._dynamo  # noqa: F401  # optimizers import it, and each fork would again
from torch.distributed import TCPStore

from regard.cli import main

CRASHED = 70


class Forks:
    """Processes that run the same work, each with its rank; one that fails ends the others."""

    def __init__(self, work: Callable[[], None], count: int = 1, **surroundings: str) -> None:
        self.streams = [tempfile.TemporaryFile() for _ in ("out", "err")]  # noqa: SIM115
        self.codes: list[int] = []
        ranks: list[dict[str, str]] = [{}]
        if count > 1:
            self.store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
            ranks = [self._rank(rank, count) for rank in range(count)]
        self.running = [self._fork(work, surroundings | rank) for rank in ranks]

    def _fork(self, work: Callable[[], None], surroundings: dict[str, str]) -> int:
        """The pid of a fork that works, with nothing to read, and ends."""
        child = os.fork()
        return child or _run_child(work, [file.fileno() for file in self.streams], surroundings)

    def _rank(self, rank: int, count: int) -> dict[str, str]:
        """The environment that torchrun gives a process."""
        place = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(self.store.port)}
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
        return {**place, **ranks, "TORCHELASTIC_USE_AGENT_STORE": "True"}

    def poll(self) -> int | None:
        """The exit code of the first process that failed, or 0; None while one runs."""
        for pid in list(self.running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self.running.remove(pid)
                self.codes.append(os.waitstatus_to_exitcode(status))
                if self.codes[-1]:
                    self.send_signal(signal.SIGTERM)
        return None if self.running else next((code for code in self.codes if code), 0)

    def send_signal(self, number: int) -> None:
        for pid in self.running:
            os.kill(pid, number)

    def communicate(self) -> tuple[str, str]:
        """Wait until all have ended; return what they wrote to stdout and to stderr."""
        end = time.monotonic() + holding.PATIENCE
        while self.poll() is None:
            if time.monotonic() > end:
                self.send_signal(signal.SIGKILL)
            time.sleep(0.005)
        for file in self.streams:
            file.seek(0)
        out, err = (file.read().decode() for file in self.streams)
        return out, err


def forks_of_command(*words: str | Path, count: int = 1, **surroundings: str) -> Forks:
    """Run the command `regard` in forks, held as the environment says."""

    def work() -> None:
        sys.argv = ["regard", *map(str, words)]
        if "REGARD_HELD_AT" in os.environ:
            holding.prepare()
        main()

    return Forks(work, count, **surroundings)


def _run_child(
    work: Callable[[], None], streams: list[int], surroundings: dict[str, str]
) -> NoReturn:
    code = CRASHED
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, source in enumerate((nothing, *streams)):
            os.dup2(source, number)
        for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            mode = "r" if name == "stdin" else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        os.environ.update(surroundings)
        work()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
