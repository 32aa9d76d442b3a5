"""Parallel work in threads, each of which runs torch operations in a single thread.

Threads inside each operation synchronize many times per step of a small model. Threads that each
compute all operations for part of the rows do not.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_map(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Apply `work` to each item in a pool of threads; return the results in order."""
    if threads < 2:
        return [work(item) for item in items]
    with single_threaded_torch():
        return list(_pool(threads).map(work, items))


_outer: list[int] = []  # torch threads before each `single_threaded_torch`, of all callers


@contextlib.contextmanager
def single_threaded_torch() -> Iterator[None]:
    """Run each torch operation in one thread inside the block.

    Each Python thread has its own number of torch threads, and restores its own.
    """
    before = torch.get_num_threads()
    _outer.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _outer.remove(before)
        torch.set_num_threads(before)


def num_threads() -> int:
    """Return the number of torch threads, regardless of `single_threaded_torch`."""
    return max([torch.get_num_threads(), *_outer])


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a thread pool; each thread sets its own number of torch threads to 1."""
    return ThreadPoolExecutor(
        threads, thread_name_prefix="part", initializer=torch.set_num_threads, initargs=(1,)
    )
