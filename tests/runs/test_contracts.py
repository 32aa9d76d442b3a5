"""Runs that go astray unless every part keeps to its contract: memory, weights, lines, labels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest
import torch
from safetensors.torch import load_file

from regard.config.load import load_config
from regard.data.reading.read import Pair
from regard.storage.run_files import read_config
from regard.storage.weights import save_weights
from regard.training.describe import describe
from regard.training.start import resume_run, start_run
from regard.training.transfer import read_pretrained

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", ["recurrent", "window"])
def test_random_windows_carry_nothing_on(command: Command, kind: str) -> None:
    """Though the last batch of an epoch has fewer rows than the previous one."""
    Path("text.txt").write_text("the cat sat on the mat and the dog ran off\n" * 40)
    said = command(
        *("train", "text.txt", "--task", "language-model", "--out", "run", "--epochs", "2"),
        *("--set", f"model.decoder.kind={kind}", "--set", "model.decoder.width=8"),
        *("--set", "task.window_order=shuffled", "--set", "training.batch_tokens=640"),
    )
    assert said.code == 0, said.err
    assert not [
        name for name in load_file("run/checkpoint/training.safetensors") if "carry" in name
    ]


def test_a_run_killed_before_its_first_step_keeps_the_weights_it_was_given() -> None:
    pairs = [Pair("ab" * n, ("yes" if n % 2 else "no",), n) for n in range(1, 9)]
    settings = ["task.kind=classify", "model.encoder.kind=recurrent", "model.encoder.width=8"]
    first = start_run(
        Path("first"), load_config(None, [*settings, "training.steps=1"]), pairs, pairs
    )
    describe(first, {})
    save_weights(first.model, Path("first/model.safetensors"))
    origin = read_pretrained(Path("first"), read_config(Path("first")))
    config = load_config(None, [*settings, "training.steps=1", "training.seed=5"])
    describe(start_run(Path("second"), config, pairs, pairs, origin), {})
    resumed = resume_run(Path("second"), pairs, pairs)
    for name, weight in resumed.model.named_parameters():
        assert torch.equal(weight, origin.tensors[name]), name


def test_a_setting_of_the_encoder_keeps_the_encoder_that_is_started_from() -> None:
    pairs = [Pair("ab" * n, ("yes" if n % 2 else "no",), n) for n in range(1, 9)]
    settings = ["task.kind=classify", "training.steps=1"]
    sized = ["model.encoder.kind=recurrent", "model.encoder.width=8", "model.encoder.dropout=0.5"]
    first = start_run(Path("first"), load_config(None, [*settings, *sized]), pairs, pairs)
    describe(first, {})
    save_weights(first.model, Path("first/model.safetensors"))
    origin = read_pretrained(Path("first"), read_config(Path("first")))
    config = load_config(None, [*settings, "model.encoder.dropout=0.25"])
    second = start_run(Path("second"), config, pairs, pairs, origin)
    assert second.config.model.encoder.width == 8
    assert second.config.model.encoder.dropout == 0.25
    assert [name for name in second.pretrained_weights if name.startswith("encoder")]


def test_json_answers_line_up_with_their_lines(command: Command, models: Any) -> None:
    Path("lines.txt").write_text("fine tree\n\ndull dog\n")
    said = command("predict", models("classify").run, "--input", "lines.txt", "--json")
    assert [json.loads(line)["source"] for line in said.out.splitlines()] == [
        *("fine tree", "", "dull dog")
    ]


def test_a_far_answer_in_dev_is_no_divergence(command: Command) -> None:
    Path("train.csv").write_text("".join(f"{n},{n % 7},{n % 5}\n" for n in range(40)))
    Path("dev.csv").write_text("3,4,99999\n4,5,1\n")
    for more in ((), ("--set", "model.encoder.kind=linear")):
        out = f"run{len(more)}"
        words = ("train", "train.csv", "--dev", "dev.csv", "--task", "regress", "--out", out)
        said = command(*words, *more, *(() if more else ("--steps", "3")))
        assert said.code == 0, said.err


def test_labels_of_another_shape_than_in_training_are_named(command: Command) -> None:
    rows = [{"text": text, "label": label} for text, label in corpora.labeled(40)]
    Path("train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("dev.jsonl").write_text(json.dumps({"text": "fine tree", "label": ["good", "bad"]}) + "\n")
    words = ("train", "train.jsonl", "--dev", "dev.jsonl", "--task", "classify", "--steps", "1")
    said = command(*words)
    assert said.code == 2 and "line 1: expected one label, as in training, found 2" in said.err


def test_a_teacher_of_another_task_is_an_error(command: Command, models: Any) -> None:
    data, _ = corpora.write("classify", Path())
    Path("more.txt").write_text("fine tree\n")
    teacher = ("--unlabeled", "more.txt", "--teacher", models("tag").run)
    said = command("train", data, "--task", "classify", *teacher, "--steps", "1")
    assert said.code == 2 and "expected a classify model, found tag" in said.err


def test_what_only_files_and_taggers_can_have_is_an_error(command: Command, models: Any) -> None:
    said = command("train", "-", "--task", "regress", stdin="1,2,3\n2,3,4\n3,4,9\n")
    assert said.code == 2 and "vectors can only be read from files" in said.err
    said = command("predict", models("classify").run, "--source-column", "1", stdin="fine\tgood\n")
    assert said.code == 2 and "only supported for task tag" in said.err
