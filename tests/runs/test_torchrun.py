"""torchrun: a lost worker, an end that is asked for, a run that continues with fewer processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holding
import pytest
import torch
from folders import progress, written
from forks import forks_of_command
from holding import PATIENCE, held_at, wait_until_held

import regard
from regard.storage.weights import read_tensors

STEPS = ("--steps", "30", "--set", "training.validate_every=10")
OFTEN = ("--set", "training.checkpoint_every=5", "--set", "training.batch_tokens=60")


def torchrun(*words: str | Path, restarts: int = 0, **surroundings: str) -> subprocess.Popen[str]:
    """Two processes of the command `regard`, held as the environment says."""
    how = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    command = [sys.executable, "-m", "torch.distributed.run", *how, holding.__file__]
    run = [*command, *map(str, words)]
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    everything = os.environ | where | surroundings
    return subprocess.Popen(run, env=everything, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture(scope="module")
def training(
    tmp_path_factory: pytest.TempPathFactory, tiny: list[str], words: list[str]
) -> list[str | Path]:
    """The words that train, up to the run folder."""
    data = tmp_path_factory.mktemp("data") / "words.tsv"
    data.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words[:120]))
    return ["train", data, *tiny, *STEPS, *OFTEN, "--out"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, training: list[str | Path]) -> Path:
    """A run of two processes that nothing interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    both = forks_of_command(*training, out, count=2)
    _, said = both.communicate()
    assert both.poll() == 0, said[-2000:]
    assert said.count("parameters, device cpu") == 1  # only the main process prints
    return out


def test_a_lost_worker_is_replaced_and_the_run_resumes(
    tmp_path: Path, training: list[str | Path], whole: Path
) -> None:
    out = tmp_path / "run"
    mark = tmp_path / "mark"
    process = torchrun(*training, out, restarts=3, **held_at("step", 12, mark))
    _, second = (wait_until_held(mark, process, rank) for rank in (0, 1))
    os.kill(second, signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said[-2000:]
    assert "resumed at step 10" in said and progress(out)["step"] == 30
    for name in (
        "model.safetensors",
        "checkpoint/model.safetensors",
        "checkpoint/training.safetensors",
    ):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert written(out) == written(whole)


def test_two_processes_that_are_asked_to_end_are_followed_by_one(
    command: Callable[..., Any], tmp_path: Path, training: list[str | Path], whole: Path
) -> None:
    out = tmp_path / "run"
    mark = tmp_path / "mark"
    process = torchrun(*training, out, **held_at("step", 12, mark))
    for rank in (0, 1):
        wait_until_held(mark, process, rank)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0 and "interrupted at step 12;" in said
    assert progress(out)["step"] == 12

    alone = command(*training, out, "--resume")
    assert alone.code == 0 and "resumed at step 12" in alone.err
    assert progress(out)["step"] == 30
    ours, theirs = (read_tensors(place / "checkpoint/model.safetensors") for place in (out, whole))
    torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)
