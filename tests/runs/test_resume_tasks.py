"""Runs of every task that are stopped and taken up again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest
from folders import files, progress, stop_at_7

from regard.training.display import PlainDisplay

Command = Callable[..., Any]
TASKS = ("tag", "classify", "regress", "language-model")


@pytest.mark.parametrize("task", TASKS)
def test_a_stopped_run_resumes_as_if_nothing_had_been(
    command: Command, models: Any, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights at the end are those of the run that was never interrupted."""
    whole, train, dev, _ = models(task)
    words = ("train", train, "--dev", dev, *corpora.small(task), "--out", "run")
    with monkeypatch.context() as patch:
        patch.setattr(PlainDisplay, "step", stop_at_7)
        assert command(*words).code == 130
    assert progress("run")["step"] == 7
    assert command("evaluate", "run", dev).code == 0  # it can be used as it is
    said = command("train", "--resume", "--out", "run")
    assert said.code == 0 and "resumed at step 7" in said.err
    for name in ("model.safetensors", "checkpoint/model.safetensors", "config.yaml"):
        assert (Path("run") / name).read_bytes() == (whole / name).read_bytes()
    scores = [json.loads((folder / "scores.json").read_text()) for folder in (Path("run"), whole)]
    assert scores[0]["scores"] == scores[1]["scores"]
    assert scores[0]["details"] == scores[1]["details"]


@pytest.mark.parametrize("task", TASKS)
def test_a_finished_run_stays_as_it_is(command: Command, models: Any, task: str) -> None:
    shutil.copytree(models(task).run, "run")
    before = files("run")
    said = command("train", "--resume", "--out", "run")
    steps = corpora.STEPS[task]
    assert said == (0, "", f"run: already finished ({steps} steps)\n")
    assert files("run") == before


@pytest.mark.parametrize("task", TASKS)
def test_a_run_killed_before_its_first_checkpoint_starts_over(
    command: Command, models: Any, task: str
) -> None:
    whole = models(task).run
    shutil.copytree(whole, "run")
    shutil.rmtree("run/checkpoint")
    (Path("run") / "scores.json").unlink()
    assert command("train", "--resume", "--out", "run").code == 0
    weights = "checkpoint/model.safetensors"
    assert (Path("run") / weights).read_bytes() == (whole / weights).read_bytes()


@pytest.mark.parametrize("task", TASKS)
def test_other_data_and_other_settings_are_errors(command: Command, models: Any, task: str) -> None:
    run, _, dev, _ = models(task)
    shutil.copytree(run, "run")
    said = command("train", dev, "--dev", dev, "--out", "run", "--resume")
    assert said.code == 2 and "the training data changed since this run started" in said.err
    said = command("train", "--out", "run", "--resume", "--set", "training.lr=0.5")
    assert said.code == 2 and "training.lr is 0.01 in run, got 0.5" in said.err
    other = TASKS[TASKS.index(task) - 1]
    said = command("train", "--out", "run", "--resume", "--task", other)
    assert said.code == 2 and f"task.kind is {task} in run, got {other}" in said.err
