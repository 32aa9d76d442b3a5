"""Nested lists: values by hand, bounds, disjoint sets, and the task that reads them."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.data.sources.builtin import builtin, builtin_task
from regard.data.sources.listops import (
    LONG,
    OPERATORS,
    SHORT,
    SIZES,
    ListShape,
    list_value,
    nested_list,
)

Command = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("[MIN 4 2 8 ]", 2),
        ("[MAX 4 2 8 ]", 8),
        ("[MED 9 1 5 ]", 5),
        ("[MED 1 9 4 7 ]", 5),  # (4 + 7) / 2 = 5.5, rounded down
        ("[SM 9 8 7 ]", 4),  # 24
        ("[SM 5 5 ]", 0),
        # the example of Nangia and Bowman (2018), and that of Long Range Arena
        ("[MAX 2 9 [MIN 4 7 ] 0 ]", 9),
        ("[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]", 5),
        # 3 + min(8, max(2, 6) = 6) + med(0, 4, 9, 9 + 9 = 8 mod 10) = 3 + 6 + 6 = 15
        ("[SM 3 [MIN 8 [MAX 2 6 ] ] [MED 0 4 9 [SM 9 9 ] ] ]", 5),
    ],
)
def test_values_by_hand(text: str, value: int) -> None:
    assert list_value(text.split()) == value


def test_a_list_without_its_end_has_no_value() -> None:
    with pytest.raises(ValueError, match="missing"):
        list_value(["[MIN", "4", "2"])


def depth_and_arguments(tokens: list[str]) -> tuple[int, list[int]]:
    """The largest depth of a digit, and the number of arguments of each list."""
    deepest, open_lists, found = 0, [0], []
    for token in tokens:
        if token == "]":
            found.append(open_lists.pop())
            continue
        open_lists[-1] += 1
        if token in OPERATORS:
            open_lists.append(0)
        else:
            assert token in set("0123456789")
            deepest = max(deepest, len(open_lists))
    assert open_lists == [1]
    return deepest, found


@pytest.mark.parametrize(
    ("shape", "count"), [(SHORT, 2000), (LONG, 60), (ListShape(3, 2, 4, 9), 50)]
)
def test_lists_are_within_their_bounds(shape: ListShape, count: int) -> None:
    generator = random.Random(3)
    depths, arguments = Counter[int](), Counter[int]()
    for _ in range(count):
        text, (label,) = nested_list(generator, shape)
        tokens = text.split()
        assert shape.shortest <= len(tokens) <= shape.longest
        assert label == str(list_value(tokens)) and len(label) == 1
        depth, found = depth_and_arguments(tokens)
        depths[depth] += 1
        arguments.update(found)
    assert max(depths) == shape.depth
    assert (min(arguments), max(arguments)) == (2, shape.arguments)


def test_the_benchmark_has_its_published_sizes() -> None:
    """Longer than 500 and shorter than 2,000 tokens, depth 10, up to 10 arguments."""
    assert (LONG.depth, LONG.arguments, LONG.shortest, LONG.longest) == (10, 10, 501, 1_999)


def test_sets_are_disjoint_and_repeat() -> None:
    splits = builtin("listops")
    parts = {"train": splits.train, "dev": splits.dev, "test": splits.test}
    assert {name: len(pairs) for name, pairs in parts.items()} == SIZES
    sources = [pair.source for pairs in parts.values() for pair in pairs]
    assert len(set(sources)) == sum(SIZES.values())
    assert builtin("listops") == splits
    for pairs in parts.values():
        assert {pair.target for pair in pairs} == {(digit,) for digit in "0123456789"}
    assert [builtin_task(name) for name in ("listops", "listops-long", "copy")] == [
        *("classify", "classify"),
        "transduce",
    ]


def test_the_commands_read_it(command: Command, tmp_path: Path) -> None:
    checked = command("check", "listops", "--task", "classify")
    assert checked.code == 0 and "no issues found" in checked.out
    run = str(tmp_path / "run")
    small = ("--set", "model.encoder.width=16", "--set", "task.examples=500")
    words = ("train", "listops", "--recipe", "listops", *small, "--steps", "3", "--out", run)
    trained = command(*words)
    assert trained.code == 0, trained.err
    scored = command("evaluate", run, "listops")
    assert scored.code == 0 and "1,000 examples" in scored.out and "baseline:" in scored.out
    predicted = command("predict", run, "[MAX 2 9 [MIN 4 7 ] 0 ]")
    assert predicted.out.strip() in set("0123456789")
    other = command("train", "listops", "--out", str(tmp_path / "other"))
    assert "pass --task classify" in other.err
