"""Predictions for many texts: windows, batches, order, shards, progress."""

import gzip
import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.core import parallel
from regard.core.errors import UserError
from regard.data.corpus.ragged import Ragged
from regard.data.reading.read import read_lines
from regard.data.reading.tagged_format import Sentence
from regard.data.reading.tagged_tokens import ColumnLayout
from regard.data.tensors.padded import Padded
from regard.inference.prediction import prediction_progress, windows
from regard.inference.prediction.input_items import count_lines
from regard.inference.prediction.output_lines import OutputFormat, one_line
from regard.inference.prediction.prediction_progress import PredictionProgress
from regard.inference.prediction.prediction_warnings import MAX_KEPT, PredictionWarnings
from regard.inference.prediction.shards import Shard
from regard.inference.prediction.windows import MAX_CHARS, fixed_windows, live_windows, window_size
from regard.tasks.batches import plan
from regard.tasks.values import InputItem, Prediction

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of 8 and then 32 lines."""
    monkeypatch.setattr(windows, "MIN_ITEMS", 8)
    monkeypatch.setattr(windows, "MAX_ITEMS", 32)


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


# Windows


class Counted:
    """Items that count how many of them were read."""

    def __init__(self, count: int, length: int = 1) -> None:
        self.read, self.count, self.length = 0, count, length

    def __iter__(self) -> Iterator[InputItem]:
        for number in range(self.count):
            self.read += 1
            yield InputItem(number, "x" * self.length)


def test_windows_grow_to_a_limit_and_nothing_is_read_ahead() -> None:
    counted = Counted(30_000)
    sizes, before = [], 0
    for window in fixed_windows(iter(counted)):
        assert [q.source for q in window] == list(range(before, before + len(window)))
        before += len(window)
        assert counted.read == before
        sizes.append(len(window))
    assert before == 30_000 and sizes[0] == windows.MIN_ITEMS and max(sizes) == windows.MAX_ITEMS
    assert sizes[:-1] == sorted(sizes[:-1])


def test_resumed_windows_have_the_same_boundaries() -> None:
    ends = [0]
    for window in fixed_windows(iter(Counted(20_000))):
        ends.append(ends[-1] + len(window))
    for place in (1, 3, len(ends) - 2):
        rest = fixed_windows(iter(Counted(20_000 - ends[place])), ends[place])
        assert ends[place] + len(next(rest)) == ends[place + 1]
        assert window_size(ends[place]) >= ends[place + 1] - ends[place]


def test_long_lines_make_short_windows() -> None:
    found = [len(window) for window in fixed_windows(iter(Counted(30, MAX_CHARS // 4)))]
    assert max(found) == 4 and sum(found) == 30
    found = [len(window) for window in live_windows(iter(Counted(30, MAX_CHARS // 4)))]
    assert max(found) <= 4 and sum(found) == 30


def test_a_stream_is_read_ahead_up_to_a_limit() -> None:
    counted = Counted(100_000)
    before = 0
    for window in live_windows(iter(counted)):
        before += len(window)
        assert counted.read <= before + 2 * windows.MAX_ITEMS + 1
    assert before == 100_000


def test_items_before_an_error_are_predicted() -> None:
    def broken() -> Iterator[InputItem]:
        yield from Counted(3)
        raise UserError("line 4")

    for kind in (fixed_windows, live_windows):
        found: list[InputItem] = []
        with pytest.raises(UserError, match="line 4"):
            for window in kind(broken()):
                found += window
        assert [item.source for item in found] == [0, 1, 2]


# Batches


def test_batches_respect_the_maximum_of_texts_and_tokens() -> None:
    lengths = [5, 40, 1, 7, 7, 7, 3, 2, 100, 1]
    found = plan(lengths, rows=3, max_tokens=40)
    assert sorted(place for part in found for place in part) == list(range(10))
    for part in found:
        longest = max(lengths[place] for place in part)
        assert len(part) <= 3 and (len(part) == 1 or len(part) * longest <= 40)
    firsts = [lengths[part[0]] for part in found]
    assert firsts == sorted(firsts, reverse=True) and firsts[:2] == [100, 40]
    assert plan([], 3, 40) == []
    assert [len(part) for part in plan([1] * 7, rows=3, max_tokens=40)] == [3, 3, 1]


def test_the_token_limit_changes_neither_predictions_nor_order(
    command: Command, trained: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = lines(regard.load(trained.run).predict(words))
    areas: list[int] = []

    def seen(rows: Ragged, some: Any) -> Padded:
        areas.append(len(some) * int(rows.lengths[some].max()))
        return pad(rows, some)

    pad = Ragged.pad
    monkeypatch.setattr(Ragged, "pad", seen)
    said = command("predict", trained.run, "--batch-tokens", "30", stdin=lines(words))
    assert said.out == expected and 0 < max(areas) <= 30


def test_the_order_is_kept_over_windows(
    command: Command, trained: Any, words: list[str], small_windows: None
) -> None:
    expected = lines(regard.load(trained.run).predict(words))
    Path("words.txt").write_text(lines(words))
    assert command("predict", trained.run, "--input", "words.txt") == (0, expected, "")
    assert command("predict", trained.run, stdin=lines(words)).out == expected


def test_samples_depend_on_the_index_not_on_the_window(
    command: Command, models: Any, small_windows: None
) -> None:
    """Samples of a language model do not depend on the batch."""
    model = models("language-model").run
    prompts = ["Anna"] * 50
    expected = lines([one_line(p) for p in regard.load(model).predict(prompts, max_length=8)])
    assert len(set(expected.splitlines())) > 20
    words = ("predict", model, "--max-length", "8", "--batch-size", "3")
    assert command(*words, stdin=lines(prompts)).out == expected
    Path("in.txt").write_text(lines(prompts))
    shards = [command(*words, "--input", "in.txt", "--shard", f"{k}/3").out for k in (1, 2, 3)]
    assert "".join(shards) == expected


# Shards


def test_shards_are_contiguous_and_complete() -> None:
    for count in (0, 1, 5, 16, 1001):
        for parts in (1, 2, 7, 16):
            bounds = [Shard(k + 1, parts).bounds(count) for k in range(parts)]
            assert bounds[0][0] == 0 and bounds[-1][1] == count
            assert all(one[1] == two[0] for one, two in pairwise(bounds))
            sizes = [end - first for first, end in bounds]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("task", ["transduce", "tag"])
def test_shards_in_order_are_the_complete_output(command: Command, models: Any, task: str) -> None:
    trained = models(task)
    Path("in.txt").write_text(trained.train.read_text().split("\n\n", 1)[-1])
    args = ("predict", trained.run, "--input", "in.txt")
    complete = command(*args).out
    parts = []
    for number in range(1, 4):
        assert command(*args, "--shard", f"{number}/3", "--output", f"out.{number}").code == 0
        parts.append(Path(f"out.{number}").read_text())
    assert "".join(parts) == complete and all(parts)


def test_more_shards_than_lines(command: Command, trained: Any) -> None:
    Path("in.txt").write_text("ab\nbc")
    words = ("predict", trained.run, "--input", "in.txt")
    found = [command(*words, "--shard", f"{k}/5").out for k in range(1, 6)]
    assert "".join(found) == command(*words).out and found.count("") == 3
    texts = [command("predict", trained.run, "ab", "bc", "--shard", f"{k}/2").out for k in (1, 2)]
    assert "".join(texts) == command("predict", trained.run, "ab", "bc").out


@pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0", "-1/2"])
def test_an_invalid_shard(command: Command, trained: Any, shard: str) -> None:
    said = command("predict", trained.run, "ab", f"--shard={shard}")
    assert said.code == 2 and f"--shard {shard}: expected K/N" in said.err


def test_a_stream_cannot_be_sharded(command: Command, trained: Any) -> None:
    said = command("predict", trained.run, "--shard", "1/2", stdin="ab\n")
    assert said.code == 2 and "--shard: cannot shard a pipe of unknown length" in said.err


def test_two_processes_need_a_file_on_both_sides(
    command: Command, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "world_size", lambda: 2)
    said = command("predict", trained.run, "ab")
    assert said.code == 2 and "several processes need an output file" in said.err
    said = command("predict", trained.run, "--output", "out", stdin="ab\n")
    assert said.code == 2 and "several processes: cannot shard a pipe" in said.err


def test_shards_of_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job of an array may have several processes."""
    monkeypatch.setattr(parallel, "world_size", lambda: 3)
    found = []
    for shard in ("1/2", "2/2"):
        for rank in range(3):
            monkeypatch.setattr(parallel, "rank", lambda rank=rank: rank)
            found.append(Shard.of(shard))
    assert found == [Shard(number, 6) for number in range(1, 7)]
    assert found[3].bounds(11)[0] == Shard(2, 2).bounds(11)[0]


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\nb", "\n\n", "a\r\nb\r\n"])
def test_lines_are_counted_as_they_are_read(text: str) -> None:
    Path("in.txt").write_bytes(text.encode())
    expected = len(text.removesuffix("\n").split("\n")) if text else 0
    assert count_lines("in.txt") == expected


# Progress, warnings


def test_progress_is_printed_at_intervals(
    command: Command,
    trained: Any,
    words: list[str],
    small_windows: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("in.txt").write_text(lines(words))
    args = ("predict", trained.run, "--input", "in.txt")
    assert command(*args).err == ""  # little work
    monkeypatch.setattr(prediction_progress, "LINE_INTERVAL", 0.0)
    said = command(*args, "--batch-size", "8").err.splitlines()
    assert all(line.startswith(f"{8 * n:,} of 300 lines | ") for n, line in enumerate(said[:1], 1))
    assert said[-1].startswith("300 of 300 lines | ") and said[-1].endswith("lines/s | 0 s left")
    assert len(said) > len(words) / 32
    assert "\x1b" not in "".join(said)
    streamed = command("predict", trained.run, stdin=lines(words)).err
    assert "300 lines | " in streamed and "left" not in streamed


def test_the_speed_is_that_of_this_command(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 4.0])
    monkeypatch.setattr(prediction_progress.time, "monotonic", lambda: next(clock))
    bar = PredictionProgress(lambda: 1000, "lines", done=600)
    bar.advance(200)
    assert bar.line() == "800 of 1,000 lines | 50 lines/s | 4 s left"


def test_warnings_keep_a_bounded_number_of_tokens() -> None:
    warnings = PredictionWarnings()
    for number in range(MAX_KEPT + 500):
        warnings.add(Prediction("", 0.0, unknown_tokens=(f"w{number}", "often")))
    assert warnings.num_unknown == 2 * (MAX_KEPT + 500) and len(warnings.unknown_tokens) == MAX_KEPT
    assert warnings.unknown_tokens["often"] == MAX_KEPT + 500
    other = PredictionWarnings()
    other.restore(warnings.record())
    assert other.num_unknown == warnings.num_unknown and other.unknown_tokens.most_common(1) == [
        ("often", MAX_KEPT + 500)
    ]


# Lines


def test_a_prediction_with_line_ends_is_one_line_of_plain_output() -> None:
    """JSON keeps the text as it is."""
    text = "a\nb\r\nc\\d\u2028e"
    best = Prediction(text, -1.0, value=text)
    found = Prediction(text, -1.0, nbest=(best, best), value=text)
    item, tokens = InputItem("x", "x"), list[str]
    shown = "a\\nb\\r\\nc\\d\u2028e"
    assert OutputFormat().line(item, found, tokens) == f"{shown}\n"
    assert OutputFormat(nbest=2).line(item, found, tokens) == f"-1.0000\t{shown}\n" * 2
    alternatives = OutputFormat(alternatives=1)
    assert alternatives.format_alternatives("x", "", [("\n", 0.5, best)]) == (
        f"0.5000\t\\n\t{shown}\n"
    )
    record = json.loads(OutputFormat(json_lines=True).line(item, found, tokens))
    assert record["prediction"] == text


def test_a_tag_with_a_line_end_is_one_line_of_columns() -> None:
    layout = ColumnLayout(width=1)
    assert layout.render(Sentence(("a",), None, 1, ("a", "")), ["X\nY"]) == "a\tX\\nY\n\n"


@pytest.mark.parametrize("source", ["stdin", "file", "gzip"])
def test_endless_input_without_line_ends_is_an_error(
    source: str, command: Command, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.reading.lines.MAX_LINE", 1000)
    content = b"ab\n" + b"a" * 5000
    Path("in.txt").write_bytes(gzip.compress(content) if source == "gzip" else content)
    given = () if source == "stdin" else ("--input", "in.txt")
    said = command("predict", trained.run, *given, stdin=content if source == "stdin" else b"")
    name = "standard input" if source == "stdin" else "in.txt"
    assert said.code == 2 and said.out.count("\n") == 1
    assert f"{name} line 2: no line end within 1000 bytes" in said.err.replace(",", "")


def test_a_line_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.reading.lines.MAX_LINE", 1000)
    text = "a" * 999
    Path("in.txt").write_text(f"{text}\n{text}\n{text}")
    assert list(read_lines("in.txt")) == [text] * 3


def test_a_byte_that_is_not_text_is_named_with_its_line(command: Command, trained: Any) -> None:
    said = command("predict", trained.run, stdin=b"ab\nc\0\n")
    assert said.code == 2 and "standard input line 2: NUL byte" in said.err


# Existing files


def test_an_existing_file_is_overwritten_only_by_force(command: Command, trained: Any) -> None:
    Path("train.tsv").write_text("a\tb\n")
    words = ("predict", trained.run, "ab", "--output", "train.tsv")
    said = command(*words)
    assert said.code == 2 and "--output train.tsv: the file exists" in said.err
    assert "overwrite it with --force" in said.err
    assert Path("train.tsv").read_text() == "a\tb\n" and os.listdir() == ["train.tsv"]
    expected = lines(regard.load(trained.run).predict(["ab"]))
    assert command(*words, "--force").code == 0 and Path("train.tsv").read_text() == expected


def test_the_input_is_never_overwritten(command: Command, trained: Any) -> None:
    Path("in.txt").write_text("ab\n")
    words = ("--input", "in.txt", "--output", "./in.txt", "--force")
    said = command("predict", trained.run, *words)
    assert said.code == 2 and "same file as --input" in said.err
    assert Path("in.txt").read_text() == "ab\n"
