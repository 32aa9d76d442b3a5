"""Starting from another model, frozen weights, and labels that a model gave."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest
import torch
from folders import files, stop_at_7
from safetensors.torch import load_file

Command = Callable[..., Any]
FREEZE = ("--set", "training.freeze=[frontend,encoder]")


def weights(folder: str | Path) -> dict[str, torch.Tensor]:
    return load_file(Path(folder) / "model.safetensors")


def body(folder: str | Path) -> dict[str, torch.Tensor]:
    """The weights that models of different tasks share."""
    return {n: w for n, w in weights(folder).items() if n.startswith(("frontend", "encoder"))}


@pytest.fixture(scope="module")
def pretrained(
    tmp_path_factory: pytest.TempPathFactory, command: Command, models: Any
) -> dict[str, Path]:
    """Models that fill gaps: one reads words, one characters."""
    _, train, dev, _ = models("language-model")
    found = {}
    for tokens in ("word_char", "char"):
        found[tokens] = tmp_path_factory.mktemp("pretrained") / tokens
        said = command(
            *("train", train, "--dev", dev, "--task", "language-model", "--out", found[tokens]),
            *("--set", "objective.kind=masked", "--set", f"task.tokenizer={tokens}"),
            *("--set", "model.encoder.width=16", "--set", "model.encoder.layers=1"),
            *("--steps", "5"),
        )
        assert said.code == 0, said.err
    return found


CASES = [("tag", "word_char"), ("classify", "char"), ("transduce", "char")]


@pytest.mark.parametrize(("task", "tokens"), CASES)
def test_frozen_weights_are_those_of_the_origin(
    command: Command, models: Any, pretrained: dict[str, Path], task: str, tokens: str
) -> None:
    train, dev = corpora.write(task, Path())
    words = ("train", train, "--dev", dev, "--task", task, "--steps", "3")
    origin = ("--init-from", pretrained[tokens])
    said = command(*words, *origin, *FREEZE, "--out", "frozen")
    assert said.code == 0 and f"weight tensors from {pretrained[tokens]}" in said.err
    frozen, before = body("frozen"), body(pretrained[tokens])
    assert frozen.keys() == before.keys() and len(frozen) > 3
    assert all(torch.equal(frozen[name], before[name]) for name in frozen)

    assert command(*words, *origin, "--out", "free").code == 0
    free = body("free")
    moved = [name for name in free if not torch.equal(free[name], before[name])]
    near = max(float((free[name] - before[name]).abs().max()) for name in free)
    assert moved and near < 0.1  # they began there
    assert command("evaluate", "free", dev).code == 0
    assert command("train", "--resume", "--out", "frozen").code == 0


def test_loaded_weights_have_a_rate_of_their_own(
    command: Command, pretrained: dict[str, Path]
) -> None:
    train, dev = corpora.write("tag", Path())
    words = ("train", train, "--dev", dev, "--task", "tag", "--steps", "3")
    before, distance = body(pretrained["word_char"]), {}
    for share in ("0.01", "1"):
        more = ("--set", f"training.pretrained_lr_factor={share}", "--out", share)
        assert command(*words, "--init-from", pretrained["word_char"], *more).code == 0
        after = body(f"{share}/checkpoint")
        distance[share] = sum(float((after[n] - before[n]).abs().sum()) for n in before)
    assert 0 < 10 * distance["0.01"] < distance["1"]


def test_a_run_from_another_model_can_be_stopped_and_resumed(
    command: Command, pretrained: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate of loaded weights is remembered, and the other model is not needed any more."""
    train, dev = corpora.write("tag", Path())
    shutil.copytree(pretrained["word_char"], "origin")
    words = ("train", train, "--dev", dev, *corpora.small("tag")[:4], "--init-from", "origin")
    assert command(*words, "--out", "whole").code == 0
    with monkeypatch.context() as patch:
        patch.setattr("regard.training.display.PlainDisplay.step", stop_at_7)
        assert command(*words, "--out", "run").code == 130
    shutil.rmtree("origin")
    assert command("train", "--resume", "--out", "run").code == 0
    one, other = weights("run"), weights("whole")
    assert all(torch.equal(one[name], other[name]) for name in other)


def test_a_task_resumes_from_a_model_of_its_own(command: Command, models: Any) -> None:
    for task in ("tag", "classify", "regress", "language-model"):
        run, train, dev, _ = models(task)
        scores = json.loads((run / "scores.json").read_text())
        words = ("train", train, "--dev", dev, "--task", task, "--init-from", run, "--steps", "1")
        said = command(*words, "--set", "training.lr=1e-9", "--out", task)
        assert said.code == 0, said.err
        found = json.loads((Path(task) / "scores.json").read_text())["scores"]
        metric = json.loads((run / "run.json").read_text())["metric"]
        assert found[metric] == pytest.approx(scores["scores"][metric], rel=1e-3)


# labels that a model gave


def unlabeled(task: str) -> str:
    """A file of new examples without labels, and one that is all unknown."""
    Path("new.txt").write_text(corpora.running(20, seed=8).replace(".", "") + "zq yx\n")
    if task == "classify":
        rows = [text for text, _ in corpora.labeled(20, seed=8)]
        Path("new.txt").write_text("\n".join([*rows, "zq yx", ""]))
    return "new.txt"


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_only_labels_that_are_sure_are_learned(command: Command, models: Any, task: str) -> None:
    teacher, train, dev, _ = models(task)
    words = ("train", train, "--dev", dev, *corpora.small(task), "--unlabeled", unlabeled(task))
    least, sure = 0.3, list[list[Any]]()
    for _ in range(2):
        more = (
            "--teacher",
            teacher,
            "--set",
            f"task.pseudo_label_threshold={least}",
            "--out",
            str(least),
            "--steps",
            "2",
        )
        said = command(*words, *more)
        assert said.code == 0, said.err
        lines = (Path(str(least)) / "pseudo_labels.jsonl").read_text().splitlines()
        sure.append([json.loads(line) for line in lines])
        assert all(row.keys() == {"source", "target", "confidence"} for row in sure[-1])
        assert all(row["confidence"] >= least for row in sure[-1])
        assert f"pseudo-labels: {len(lines)} of 21 examples with confidence >= " in said.err
        least = sorted(row["confidence"] for row in sure[-1])[len(lines) // 2]
    assert 0 < len(sure[1]) < len(sure[0])
    assert not Path("0.3-teacher").exists()


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_without_a_teacher_one_is_trained_first(command: Command, models: Any, task: str) -> None:
    _, train, dev, _ = models(task)
    more = ("--set", "task.pseudo_label_threshold=0.1", "--unlabeled", unlabeled(task))
    said = command("train", train, "--dev", dev, *corpora.small(task), *more, "--out", "run")
    assert said.code == 0 and "training the teacher model first in run-teacher" in said.err
    half = json.loads(Path("run-teacher/checkpoint/state.json").read_text())["step"]
    assert half == corpora.STEPS[task] // 2
    before = files("run")
    assert len(Path("run/pseudo_labels.jsonl").read_text().splitlines()) == 21
    said = command("train", "--resume", "--out", "run")
    assert said.code == 0 and "already finished" in said.err and files("run") == before

    last = (Path("run") / "checkpoint" / "model.safetensors").read_bytes()
    shutil.rmtree("run/checkpoint")  # as if it had been killed at its beginning
    assert command("train", "--resume", "--out", "run").code == 0
    assert (Path("run") / "checkpoint" / "model.safetensors").read_bytes() == last


def test_a_teacher_that_is_never_sure(command: Command, models: Any) -> None:
    teacher, train, dev, _ = models("tag")
    words = ("train", train, "--dev", dev, *corpora.small("tag"), "--teacher", teacher)
    more = (
        "--unlabeled",
        unlabeled("tag"),
        "--set",
        "task.pseudo_label_threshold=1.0",
        "--out",
        "run",
    )
    said = command(*words, *more)
    assert said.code == 2 and "labels none of 21 examples with confidence >= 1" in said.err
