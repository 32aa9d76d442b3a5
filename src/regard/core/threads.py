"""Work for several threads, each with one thread of torch to itself.

Two threads inside each operation wait for each other many times in a step of a small model. Two
threads that each do all operations of a part of the rows do not.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """The results of the items, in their order; one after the other where there is one thread."""
    if threads < 2:
        return [work(item) for item in items]
    with one_thread_each():
        return list(_pool(threads).map(work, items))


_held: list[int] = []  # the threads that torch had before each `one_thread_each` around us


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Within, an operation of torch has one thread to itself."""
    _held.append(torch.get_num_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(_held.pop())


def threads_there() -> int:
    """The threads that there are for work, also within `one_thread_each`."""
    return max([torch.get_num_threads(), *_held])


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work; each must be told by itself to be one thread."""
    return ThreadPoolExecutor(
        threads, thread_name_prefix="part", initializer=torch.set_num_threads, initargs=(1,)
    )
