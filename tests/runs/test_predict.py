"""Predictions of processes that are killed, and of two processes that write one file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import holding
import pytest
from holding import PATIENCE, held_at, wait_until_held
from test_torchrun import torchrun

import regard


@pytest.fixture
def source_file(words: list[str]) -> Path:
    """A file of several windows."""
    path = Path("in.txt")
    path.write_text("".join(f"{word}\n" for word in words * 6))
    return path


def start(*words: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Start a process that pauses at the point that its environment names."""
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, holding.__file__, *map(str, words)]
    everything = os.environ | where | environment
    return subprocess.Popen(run, env=everything, stderr=subprocess.PIPE, text=True)


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
        process = start(*args, "--output", "out", **held_at(place, number, mark))
        wait_until_held(mark, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
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
    process = torchrun(*args, "--output", "out")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said[-2000:]
    assert Path("out").read_text() == complete
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_two_processes_resume_after_a_kill(command: Any, trained: Any, source_file: Path) -> None:
    args = ("predict", trained.run, "--input", source_file)
    complete = command(*args).out
    mark = Path("mark")
    process = torchrun(*args, "--output", "out", **held_at("predictions", 1, mark))
    for rank in (0, 1):
        wait_until_held(mark, process, rank)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0 and not Path("out").exists()
    assert 0 < done(Path("out.2-of-2.part.json")) < 900
    process = torchrun(*args, "--output", "out")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said[-2000:]
    assert Path("out").read_text() == complete
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_a_process_that_fails_leaves_no_output(trained: Any, source_file: Path) -> None:
    source_file.write_bytes(source_file.read_bytes() + b"\xe4\n")  # in the shard of the second one
    Path("out").write_text("old")
    words = ("--input", source_file, "--output", "out", "--force")
    process = torchrun("predict", trained.run, *words)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0 and "in.txt line 1801: not UTF-8" in said
    assert Path("out").read_text() == "old"
