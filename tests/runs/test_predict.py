"""Answers of processes that are killed, and of two processes that write one file."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_torchrun import torchrun

import regard


@pytest.fixture
def asked(words: list[str]) -> Path:
    """A file of several windows."""
    path = Path("in.txt")
    path.write_text("".join(f"{word}\n" for word in words * 6))
    return path


def start(*words: str | Path) -> subprocess.Popen[str]:
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.Popen(run, env=os.environ | where, stderr=subprocess.PIPE, text=True)


def answered(record: Path) -> int:
    try:
        return int(json.loads(record.read_text())["answered"])
    except FileNotFoundError:
        return 0


def wait_until(answers: int, record: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while answered(record) < answers:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.002)


def test_kill_9_and_the_same_command_again(command: Any, trained: Any, asked: Path) -> None:
    given = ("predict", trained.run, "--input", asked, "--json", "--nbest", "2")
    assert command(*given, "--output", "whole").code == 0
    seen = 0
    for _ in range(2):
        process = start(*given, "--output", "out")
        wait_until(seen + 1, Path("out.part.json"), process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not Path("out").exists() and answered(Path("out.part.json")) > seen
        seen = answered(Path("out.part.json"))
    assert seen < 1800
    process = start(*given, "--output", "out")
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0 and "sources are answered already; going on" in said
    assert Path("out").read_bytes() == Path("whole").read_bytes()
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_two_processes_write_one_file(command: Any, trained: Any, asked: Path) -> None:
    given = ("predict", trained.run, "--input", asked)
    whole = command(*given).out
    process = torchrun(*given, "--output", "out")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-2000:]
    assert Path("out").read_text() == whole
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_two_processes_go_on_after_a_kill(command: Any, trained: Any, asked: Path) -> None:
    given = ("predict", trained.run, "--input", asked)
    whole = command(*given).out
    process = torchrun(*given, "--output", "out")
    wait_until(1, Path("out.2-of-2.part.json"), process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode != 0 and not Path("out").exists()
    assert answered(Path("out.2-of-2.part.json")) > 0
    process = torchrun(*given, "--output", "out")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[-2000:]
    assert Path("out").read_text() == whole
    assert sorted(path.name for path in Path().glob("out*")) == ["out"]


def test_a_process_that_fails_leaves_no_output(trained: Any, asked: Path) -> None:
    asked.write_bytes(asked.read_bytes() + b"\xe4\n")  # in the share of the second one
    Path("out").write_text("old")
    process = torchrun("predict", trained.run, "--input", asked, "--output", "out")
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0 and "in.txt line 1801: not UTF-8" in said
    assert Path("out").read_text() == "old"
