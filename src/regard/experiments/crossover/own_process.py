"""A function call in a process of its own, with limits on time and memory."""

import multiprocessing
import resource
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from regard.core.errors import UserError
from regard.core.formatting import size

Result = TypeVar("Result")
KEPT_FREE = 0.1  # fraction of the free memory that stays free


class Limits(NamedTuple):
    """seconds: maximum duration. memory: maximum bytes on top of the process; None: unlimited."""

    seconds: float
    memory: int | None


class LimitExceeded(Exception):
    """A call that took too long or needed too much memory. The message is the reason."""


def call_in_process(work: Callable[..., Result], args: tuple[Any, ...], limits: Limits) -> Result:
    """Return work(*args), computed in a forked process; raise LimitExceeded beyond the limits.

    A fork does not import anything again. The caller must not have run torch operations in several
    threads: forks cannot use the threads of OpenMP then. No process outlives the call.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise UserError("this system cannot fork processes: expected Linux or macOS")
    context = multiprocessing.get_context("fork")
    parent_end, worker_end = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, args, limits.memory, worker_end))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forks of threaded processes
        process.start()
    worker_end.close()
    try:
        if not parent_end.poll(limits.seconds):
            raise LimitExceeded(f"takes more than {limits.seconds:g} s")
        result, error = parent_end.recv()
    except EOFError:
        raise LimitExceeded("the process died, possibly for lack of memory") from None
    finally:
        process.kill()
        process.join()
        parent_end.close()
    if error is not None:
        raise error
    return result


def _run(
    work: Callable[..., Any], args: tuple[Any, ...], memory: int | None, pipe: Connection
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C: the parent kills its workers
    if memory is not None:
        limit = _mapped_bytes() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        pipe.send((work(*args), None))
    except (MemoryError, RuntimeError) as error:
        is_limit = isinstance(error, MemoryError) or "allocate memory" in str(error)
        reason = LimitExceeded(f"needs more than {size(memory or 0)} of memory")
        pipe.send((None, reason if is_limit else error))
    except Exception as error:
        pipe.send((None, error))


def free_memory() -> int | None:
    """Return how many bytes a process may use of the memory that is free now; None if unknown."""
    path = Path("/proc/meminfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return int(found[0] * 1024 * (1 - KEPT_FREE)) if found else None


def _mapped_bytes() -> int:
    """Return the size of the address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
