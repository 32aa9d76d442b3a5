"""Commands in forked processes: how they end, and their peak memory."""

import faulthandler
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

import torch._dynamo  # noqa: F401  # optimizers import it; forked processes need not again

SECONDS = 10  # of processor time, so that a busy machine makes no difference
BLOCKED = 120  # seconds until a process that only waits is ended
MEMORY = 1024**3  # bytes above the healthy case
SPARE = 4 * MEMORY  # of address space, so that a fault does not use all memory of the machine
TRACEBACK = 70


class End(NamedTuple):
    """How a process ended.

    memory: peak of resident memory in bytes. seconds: processor time.
    """

    code: int  # negative: a signal
    said: str
    memory: int
    seconds: float

    def problem(self, healthy: int = 0) -> str | None:
        """Return what must not happen, or None. healthy: memory of the healthy case."""
        if self.code == -signal.SIGALRM:
            return "waits forever"
        if self.code == -signal.SIGXCPU:
            return f"more than {SECONDS} s"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}"
        if "Traceback" in self.said:
            return "traceback"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        if healthy and self.memory - healthy > MEMORY:
            return f"{(self.memory - healthy) / 1024**3:.1f} GB above the healthy case"
        return None


def run(words: list[str], folder: Path) -> End:
    """Run a command of regard in a forked process that works in `folder`.

    The word `load` is not a command: it loads the model of a folder in Python.
    """
    log = folder / "said.txt"
    child = os.fork()
    if child == 0:
        _run_child(words, folder, log)
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    said = log.read_text("utf-8", errors="replace")
    return End(code, said, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def _run_child(words: list[str], folder: Path, log: Path) -> None:
    code = TRACEBACK
    try:
        handle = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (handle, 1), (handle, 2)):
            os.dup2(source, target)
        for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
            mode = "r" if name == "stdin" else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + SPARE, used + SPARE))
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
        faulthandler.register(signal.SIGXCPU, chain=True)  # prints where it is
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(BLOCKED)
        code = call(words)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def call(words: list[str]) -> int:
    """Run a command in this process; return its exit code."""
    import regard
    from regard.cli import main
    from regard.core.errors import UserError

    if words[0] == "load":
        try:
            regard.load(words[1])
        except UserError as error:
            print(error)
            return 2
        return 0
    sys.argv = ["regard", *words]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0
