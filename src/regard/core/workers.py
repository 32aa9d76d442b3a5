"""Work for several processes that are copies of this one, each with one thread of torch.

Threads of Python wait for each other between the operations of torch; processes do not. A copy
shares the memory of the original (the weights of a model), and costs a few milliseconds.
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


def workers_there() -> int:
    """How many processes may share work here; 1 where copies of this process are not safe.

    They are where the system can fork (not on Windows or macOS), nothing runs on a GPU, and the
    caller is the main thread. REGARD_WORKERS overrides, except that only the main thread forks: a
    server has other threads, and connections that its copies would keep open.
    """
    given = os.environ.get("REGARD_WORKERS")
    if given is not None and (not given.isdecimal() or int(given) < 1):
        raise UserError(f"REGARD_WORKERS={given}: a number of processes expected, 1 or more")
    can = "fork" in multiprocessing.get_all_start_methods()
    if not can or multiprocessing.current_process().daemon:  # who may have no children
        return 1
    main = threading.current_thread() is threading.main_thread()
    if given is not None:
        return int(given) if main else 1
    safe = sys.platform.startswith("linux") and main and not torch.cuda.is_initialized()
    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.get_num_threads() if safe and not distributed else 1


def in_workers(
    work: Callable[[Item], Result], items: Sequence[Item], count: int
) -> Iterator[Result]:
    """The results of the items, in their order, as they are ready; each item goes to who is free.

    An error of a worker is raised here. Nothing is left running behind.
    """
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    processes: list[Any] = []
    try:
        with _quiet_fork():
            for _ in range(min(count, len(items))):
                here, there = context.Pipe()
                pipes.append(here)
                own = (work, items, there, pipes)
                process = context.Process(target=_serve, args=own, daemon=True)
                process.start()
                there.close()
                processes.append(process)
        yield from _results(pipes, len(items))
    finally:
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()


def _results(pipes: list[Connection], count: int) -> Iterator[Any]:
    """Hands out numbers of items and gives what comes back, in the order of the numbers."""
    ready: dict[int, Any] = {}
    given = given_back = 0
    for pipe in pipes:
        pipe.send(given)
        given += 1
    while given_back < count:
        for pipe in cast(list[Connection], wait(pipes)):
            try:
                number, result, error = pipe.recv()
            except EOFError:
                raise UserError(
                    "a worker process died; there may be too little memory. Set REGARD_WORKERS=1"
                ) from None
            if error is not None:
                raise error
            ready[number] = result
            if given < count:
                pipe.send(given)
                given += 1
        while given_back in ready:
            yield ready.pop(given_back)
            given_back += 1


def _serve(
    work: Callable[[Any], Any], items: Sequence[Any], pipe: Connection, others: list[Connection]
) -> None:
    """What a worker does: items by number, until nobody asks any more.

    others: the ends of pipes that belong to the original. A copy that kept them open would never
    learn that the original is gone.
    """
    for other in others:
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the original stops us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            number = pipe.recv()
            try:
                pipe.send((number, work(items[number]), None))
            except BaseException as error:  # it is raised again in the original
                pipe.send((number, None, error))


@contextlib.contextmanager
def _quiet_fork() -> Iterator[None]:
    """Within, Python does not warn that other threads (those of torch, which sleep) are copied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
