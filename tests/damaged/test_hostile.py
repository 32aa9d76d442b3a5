"""Model folders that are made to hang a program or to use all memory, and what reads them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from torch import nn

from regard.config.load import load_config, read_yaml
from regard.core.errors import UserError
from regard.core.field_types import Deviations, Names
from regard.core.files import read_bytes, read_fields, read_json
from regard.data.reading.lines import read_lines, read_text
from regard.data.sources.open import DataSpec
from regard.metrics.metric_names import usual_metrics
from regard.storage.weights import build_for, load_weights, save_weights
from regard.tasks.batches import MAX_LENGTH

from . import forked

DIGITS = "9" * 5000
ALIASES = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 11)
)
COMMANDS = (("predict", "abc"), ("load",), ("inspect", "abc"), ("diagnose", "--quick"), ("runs",))


def setting(**changes: Any) -> Callable[[Path], None]:
    """Change settings of the decoder in config.yaml."""

    def change(folder: Path) -> None:
        path = folder / "config.yaml"
        tree = yaml.safe_load(path.read_text())
        tree["model"]["decoder"] |= changes
        path.write_text(yaml.safe_dump(tree))

    return change


def content(name: str, text: str) -> Callable[[Path], None]:
    """Replace the content of a file."""
    return lambda folder: (folder / name).write_text(text) and None


def device(name: str) -> Callable[[Path], None]:
    """Replace a file by a link to an endless device."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")

    return change


def pipe(name: str) -> Callable[[Path], None]:
    """Replace a file by a named pipe."""

    def change(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "layers": (setting(layers=1_000_000), "do not match config.yaml"),
    "width": (setting(width=1_000_000_000), "do not match config.yaml"),
    "aliases": (content("config.yaml", ALIASES), "aliases are not supported"),
    "long number, YAML": (content("config.yaml", f"task: {DIGITS}"), "config.yaml: invalid YAML"),
    "long number, JSON": (content("run.json", f'{{"format": {DIGITS}}}'), "integer of 5000 digits"),
    "list": (content("run.json", "[]"), "run.json: corrupted: expected an object, found []"),
    "other type": (content("run.json", '{"format": "4"}'), "format: expected a number"),
    "deep": (content("vocabulary/text.json", "[" * 200_000), "nested too deeply"),
    "pipe, vocabulary": (pipe("vocabulary/text.json"), "found a named pipe"),
    "pipe, weights": (pipe("model.safetensors"), "found a named pipe"),
    "pipe, log": (pipe("metrics.jsonl"), "metrics.jsonl could not be read"),
    "device, vocabulary": (device("vocabulary/text.json"), "found a device"),
    "device, config": (device("config.yaml"), "found a device"),
    "device, weights": (device("model.safetensors"), "found a device"),
}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory, models: Any) -> forked.End:
    """How the command ends that loads the model before it is changed."""
    end = forked.run(
        ["load", str(models("language-model").run)], tmp_path_factory.mktemp("healthy")
    )
    assert end.code == 0, end.said
    return end


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_an_error(
    tmp_path: Path, models: Any, healthy: forked.End, name: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(models("language-model").run, folder)
    change, message = HOSTILE[name]
    change(folder)
    said = ""
    for command, *words in COMMANDS:
        end = forked.run([command, str(folder), *words], tmp_path)
        assert end.problem(healthy.memory) is None, (command, end.said)
        said += end.said
    assert message in said


def test_a_large_model_is_not_allocated_for_a_small_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    small = nn.Linear(3, 4)
    save_weights(small, path)
    found = build_for(lambda: nn.Linear(3, 4), path)
    load_weights(found, path)
    assert torch.equal(found.weight, small.weight) and torch.equal(found.bias, small.bias)
    layers = 0

    def deep() -> nn.Module:
        nonlocal layers
        model = nn.Sequential()
        for _ in range(1_000_000):
            model.append(nn.Linear(3, 4))
            layers += 1
        return model

    for build in (
        deep,
        lambda: nn.Linear(10**5, 10**5),
        lambda: nn.Linear(10**12, 10**12),
        lambda: nn.Embedding(10**9, 64),
        lambda: nn.Parameter(torch.zeros((10**5, 10**5))),
        lambda: torch.arange(10**11),
        lambda: nn.Linear(3, 5),
    ):
        with pytest.raises(UserError, match=r"the weights do not match config.yaml"):
            build_for(build, path)
    assert layers < 10_000


def test_only_regular_files_of_limited_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_bytes(link) == b"12345"
    with pytest.raises(OSError, match="expected at most 4 bytes"):
        read_bytes(path, 4)
    with pytest.raises(OSError, match="expected a regular file, found a folder"):
        read_bytes(tmp_path)


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "a: " + "[" * 5000, f"a: {DIGITS}"])
def test_yaml_that_is_too_much(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"recipe.yaml.*: invalid YAML: "):
        read_yaml(path)


def test_a_long_number_on_the_command_line() -> None:
    with pytest.raises(UserError, match=r"--set training.lr=9+: invalid YAML"):
        load_config(None, [f"training.lr={DIGITS}"])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tags", ["a", 3], r"field 'tags'\[1\]: Input should be a valid string, found 3"),
        ("tags", ["a", "a"], "expected distinct names"),
        ("tags", [], "at least 1 item"),
        ("tags", "ab", "valid list"),
        ("flag", 1, "valid boolean"),
        ("scale", [1.0, 0], "greater than 0"),
        ("scale", [float("nan")], "finite number"),
        ("scale", [10**30], "integer of 31 digits"),
    ],
)
def test_fields_have_types(tmp_path: Path, field: str, value: Any, message: str) -> None:
    path = tmp_path / "task.json"
    good = {"tags": ["a", "b"], "flag": True, "scale": [1, 2.5]}
    types: dict[str, Any] = {"tags": Names, "flag": bool, "scale": Deviations}
    path.write_text(json.dumps(good))
    assert read_fields(path, **types) == [["a", "b"], True, [1, 2.5]]
    path.write_text(json.dumps({**good, field: value}))
    with pytest.raises(UserError, match=message):
        read_fields(path, **types)


def test_json_integers_have_64_bits(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps([2**63 - 1, -(2**63), 0]))
    assert read_json(path) == [2**63 - 1, -(2**63), 0]
    path.write_text(str(2**63))
    with pytest.raises(UserError, match="at most 64 bits"):
        read_json(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("check.json", '{"train": 3, "source": {"ngrams": [1]}, "lines": 3}'),
        ("settings.json", '{"changed": {"a": 3}, "auto": [1]}'),
        ("samples.jsonl", '{"step": null, "source": "a"}\n{"step": 2, "source": []}\n'),
        ("metrics.jsonl", '{"kind": "train", "step": "x"}\n{"kind": "final", "scores": []}\n'),
    ],
)
def test_a_report_of_corrupted_values(tmp_path: Path, models: Any, name: str, text: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(models("classify").run, folder)
    (folder / name).write_text(text)
    for command in ("report", "runs"):
        end = forked.run([command, str(folder)], tmp_path)
        assert (end.code, end.problem()) == (0, None), (command, end.said)


def test_a_source_that_is_too_long(tmp_path: Path, models: Any, command: Any) -> None:
    (tmp_path / "long.txt").write_text("ab\n" + "a" * (MAX_LENGTH + 1) + "\n")
    said = command("predict", models("transduce").run, "--input", tmp_path / "long.txt")
    assert said.code == 2 and "expected at most 100,000" in said.err


@pytest.mark.parametrize("task", ["transduce", "language-model"])
def test_a_line_that_is_too_long(
    tmp_path: Path, models: Any, command: Any, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    run, long = models(task).run, "a" * 3_000_000
    text = tmp_path / "long.txt"
    text.write_text(f"ab\n{long}\n")
    for words in (["predict", run, "--input", text], ["evaluate", run, text]):
        if words[0] == "evaluate" and task == "transduce":
            words[2] = tmp_path / "long.tsv"
            words[2].write_text(f"a\tb\nab\t{long}\n")
        end = forked.run([str(word) for word in words], tmp_path)
        assert end.code == 2 and f"{words[-1]} line 2: " in end.said, end.said[-1000:]
        assert " of 3,000,000 characters: expected at most 500,000" in end.said
        assert "REGARD_MAX_TEXT=3000000" in end.said
    monkeypatch.setenv("REGARD_MAX_TEXT", "1")
    said = command("predict", run, "--input", text)
    assert said.code == 2 and "line 1: source of 2 characters: expected at most 1" in said.err
    monkeypatch.setenv("REGARD_MAX_TEXT", "much")
    said = command("predict", run, "--input", text)
    assert said.code == 2 and "REGARD_MAX_TEXT: expected a number" in said.err


def test_binary_data_is_not_read_to_its_end() -> None:
    with pytest.raises(UserError, match="line 1: NUL byte"):
        read_text("/dev/zero")
    with pytest.raises(UserError, match="line 1: no line end within 16 MB"):
        next(read_lines("/dev/zero"))


def test_data_without_spans_has_no_f1() -> None:
    assert usual_metrics("f1", {"accuracy": 1.0}) == ["accuracy"]
    assert usual_metrics("f1", {"accuracy": 1.0, "f1": 1.0}) == ["f1", "accuracy"]


@pytest.mark.parametrize("record", [[], {"data": 1}, {"other": "x"}, {"source_column": 2**31}])
def test_the_data_files_of_a_corrupted_run(record: Any) -> None:
    with pytest.raises(UserError, match="corrupted"):
        DataSpec.from_record(record)


def test_corrupted_values_are_shown(tmp_path: Path, models: Any, command: Any) -> None:
    folder = tmp_path / "run"
    shutil.copytree(models("classify").run, folder)
    weights = load_file(folder / "model.safetensors")
    weights["head.linear.bias"].fill_(torch.finfo(torch.float32).max)
    save_file(weights, folder / "model.safetensors")
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"kind": "final", "signatures": [[]]}\n')
    said = command("inspect", folder, "abc")
    assert said.code == 2 and "the output is not finite" in said.err
    assert command("report", folder).code == 0


def test_a_word_that_is_too_long(models: Any, command: Any) -> None:
    said = command("predict", models("tag").run, "Anna " + "a" * 3000)
    assert said.code == 2 and "word of 3,000 characters (aaaaaaaaaaaaaaaaaaaa...)" in said.err
