"""Predictions of processes that are killed, and of two processes that write one file."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from forks import forks_of_command
from holding import held_at, wait_until_held


@pytest.fixture
def source_file(words: list[str]) -> Path:
    """A file of several windows."""
    path = Path("in.txt")
    path.write_text("".join(f"{word}\n" for word in words * 6))
    return path


def done(record: Path) -> int:
    return int(json.loads(record.read_text())["done"])


def test_kill_9_and_the_same_command_again(command: Any, trained: Any, source_file: Path) -> None:
    args = ("predict", trained.run, "--input", source_file, "--json", "--nbest", "2")
    assert command(*args, "--output", "whole").code == 0
    seen = 0
    for place, number in (
        ("predictions", 1),
        ("unrecorded", 3),
    ):  # 3: at the start, and two windows
        mark = Path(place)
        process = forks_of_command(*args, "--output", "out", **held_at(place, number, mark))
        wait_until_held(mark, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.poll() == -signal.SIGKILL
        assert not Path("out").exists() and done(Path("out.part.json")) > seen
        seen = done(Path("out.part.json"))
    assert len(Path("out.part").read_text().splitlines()) > seen  # not recorded yet
    assert seen < 1800
    said = command(*args, "--output", "out")
    assert said.code == 0 and "sources already done" in said.err
    assert Path("out").read_bytes() == Path("whole").read_bytes()
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_two_processes_write_one_file(command: Any, trained: Any, source_file: Path) -> None:
    args = ("predict", trained.run, "--input", source_file)
    complete = command(*args).out
    process = forks_of_command(*args, "--output", "out", count=2)
    _, said = process.communicate()
    assert process.poll() == 0, said[-2000:]
    assert Path("out").read_text() == complete
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_two_processes_resume_after_a_kill(command: Any, trained: Any, source_file: Path) -> None:
    args = ("predict", trained.run, "--input", source_file)
    complete = command(*args).out
    mark = Path("mark")
    process = forks_of_command(*args, "--output", "out", count=2, **held_at("predictions", 1, mark))
    for rank in (0, 1):
        wait_until_held(mark, process, rank)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.poll() != 0 and not Path("out").exists()
    assert 0 < done(Path("out.2-of-2.part.json")) < 900
    process = forks_of_command(*args, "--output", "out", count=2)
    _, said = process.communicate()
    assert process.poll() == 0, said[-2000:]
    assert Path("out").read_text() == complete
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_a_process_that_fails_leaves_no_output(trained: Any, source_file: Path) -> None:
    source_file.write_bytes(source_file.read_bytes() + b"\xe4\n")  # in the shard of the second one
    Path("out").write_text("old")
    words = ("--input", source_file, "--output", "out", "--force")
    process = forks_of_command("predict", trained.run, *words, count=2)
    _, said = process.communicate()
    assert process.poll() != 0 and "in.txt line 1801: not UTF-8" in said
    assert Path("out").read_text() == "old"
