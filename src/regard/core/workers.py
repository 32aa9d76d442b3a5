"""Parallel work in forked processes, each with one torch thread.

Python threads wait for each other between torch operations; processes do not. A fork shares the
memory of its parent (the weights of a model) and costs a few milliseconds.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar, cast

import torch

from regard.core.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")


def num_workers() -> int:
    """Return how many worker processes to use; 1 if forking this process is not safe.

    Forking is safe on Linux if neither CUDA nor torch.distributed is in use and the caller is the
    main thread. REGARD_WORKERS overrides the number, except that only the main thread forks: a
    server has other threads, and connections that its forks would keep open.
    """
    value = os.environ.get("REGARD_WORKERS")
    if value is not None and (not value.isdecimal() or int(value) < 1):
        raise UserError(f"REGARD_WORKERS: expected a number of processes >= 1, found {value!r}")
    can_fork = "fork" in multiprocessing.get_all_start_methods()
    if not can_fork or multiprocessing.current_process().daemon:  # daemons may not have children
        return 1
    main = threading.current_thread() is threading.main_thread()
    if value is not None:
        return int(value) if main else 1
    safe = sys.platform.startswith("linux") and main and not torch.cuda.is_initialized()
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.get_num_threads() if safe and not distributed else 1


def fork_map(work: Callable[[Item], Result], items: Sequence[Item], count: int) -> Iterator[Result]:
    """Apply `work` to the items in `count` worker processes; yield the results in order.

    A worker that becomes free takes the next item. An error in a worker is raised here. No worker
    outlives the call.
    """
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    processes: list[Any] = []
    try:
        with _quiet_fork():
            for _ in range(min(count, len(items))):
                parent_end, worker_end = context.Pipe()
                pipes.append(parent_end)
                arguments = (work, items, worker_end, pipes)
                process = context.Process(target=_serve, args=arguments, daemon=True)
                process.start()
                worker_end.close()
                processes.append(process)
        yield from _results(pipes, len(items))
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()


def _results(pipes: list[Connection], count: int) -> Iterator[Any]:
    """Send item indices to free workers and yield the results in order of the indices."""
    ready: dict[int, Any] = {}
    sent = returned = 0
    for pipe in pipes:
        pipe.send(sent)
        sent += 1
    while returned < count:
        for pipe in cast(list[Connection], wait(pipes)):
            try:
                number, result, error = pipe.recv()
            except EOFError:
                raise UserError(
                    "a worker process died, possibly for lack of memory",
                    help="set REGARD_WORKERS=1",
                ) from None
            if error is not None:
                raise error
            ready[number] = result
            if sent < count:
                pipe.send(sent)
                sent += 1
        while returned in ready:
            yield ready.pop(returned)
            returned += 1


def _serve(
    work: Callable[[Any], Any], items: Sequence[Any], pipe: Connection, others: list[Connection]
) -> None:
    """Process items by index until the parent closes the pipe.

    others: the parent's ends of the pipes. A fork that kept them open would never notice that its
    parent is gone.
    """
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            number = pipe.recv()
            try:
                pipe.send((number, work(items[number]), None))
            except BaseException as error:  # raised again in the parent
                pipe.send((number, None, error))


@contextlib.contextmanager
def _quiet_fork() -> Iterator[None]:
    """Suppress the warning about forking a process with threads, since torch's threads are idle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
