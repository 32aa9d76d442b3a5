"""The built-in datasets `listops` and `listops-long`: nested lists of digits and their values.

The operators are those of Nangia and Bowman (2018). `listops-long` has the sizes of the benchmark
Long Range Arena (Tay et al. 2021).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

NESTED = 0.25  # probability that an argument is a list
CLOSE = "]"


class ListShape(NamedTuple):
    """Bounds of nested lists.

    depth: maximum of a digit; the outermost list has depth 1. arguments: maximum per list.
    shortest, longest: in tokens.
    """

    depth: int
    arguments: int
    shortest: int
    longest: int


SHORT = ListShape(depth=5, arguments=5, shortest=10, longest=100)
LONG = ListShape(depth=10, arguments=10, shortest=501, longest=1_999)
SIZES = {"train": 20_000, "dev": 1_000, "test": 1_000}
LONG_SIZES = {"train": 10_000, "dev": 500, "test": 500}


def _median(values: list[int]) -> int:
    """Return the median, rounded down."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) // 2


OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "[MIN": min,
    "[MAX": max,
    "[MED": _median,
    "[SM": lambda values: sum(values) % 10,
}


def nested_list(generator: random.Random, shape: ListShape) -> tuple[str, tuple[str]]:
    """Return a random nested list, and its value as a label."""
    while True:
        tokens: list[str] = []
        if _append_list(generator, shape, 1, tokens) and len(tokens) >= shape.shortest:
            return " ".join(tokens), (str(list_value(tokens)),)


def _append_list(generator: random.Random, shape: ListShape, depth: int, tokens: list[str]) -> bool:
    """Append the tokens of a random list; return whether they are within the maximum length."""
    tokens.append(generator.choice(list(OPERATORS)))
    for _ in range(generator.randint(2, shape.arguments)):
        if depth + 1 == shape.depth or generator.random() >= NESTED:
            tokens.append(str(generator.randrange(10)))
        elif not _append_list(generator, shape, depth + 1, tokens):
            return False
    tokens.append(CLOSE)
    return len(tokens) <= shape.longest


def list_value(tokens: list[str]) -> int:
    """Return the value of a nested list."""
    open_lists: list[tuple[str, list[int]]] = []
    for token in tokens:
        if token in OPERATORS:
            open_lists.append((token, []))
            continue
        value = int(token) if token != CLOSE else _close(open_lists.pop())
        if not open_lists:
            return value
        open_lists[-1][1].append(value)
    raise ValueError(f"{CLOSE} is missing")


def _close(one: tuple[str, list[int]]) -> int:
    """Return the value of a list of numbers."""
    operator, values = one
    return OPERATORS[operator](values)
