"""Questions that make no sense to a model of another task, and models that are damaged."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
TASKS = ("tag", "classify", "regress", "language-model")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def error_of(said: Any) -> str:
    """Return the error of a command: nothing on stdout, no traceback, the error last."""
    assert said.code == 2, said
    assert said.out == "" and "Traceback" not in said.err
    _, mark, message = f"\n{said.err}".partition("\nerror: ")
    assert mark and len(message.splitlines()) <= 11, said.err
    return message


ASKED = [
    ("tag", ("predict", "Anna", "--beam", "3"), "beam: unknown search setting of a tag model"),
    ("tag", ("evaluate", "DEV", "--beam", "3"), "beam: unknown search setting of a tag model"),
    ("tag", ("predict", "Anna", "--nbest", "3"), "--nbest: not supported for task tag"),
    ("regress", ("predict", "1,2", "--nbest", "3"), "--nbest: not supported for task regress"),
    (
        "classify",
        ("predict", "a", "--temperature", "1"),
        "temperature: unknown search setting of a classify",
    ),
    ("classify", ("predict", "a", "--threshold", "2"), "threshold: Input should be less than 1"),
    (
        "language-model",
        ("predict", "a", "--beam", "3"),
        "beam: unknown search setting of a language-model",
    ),
    ("language-model", ("predict", "a", "--top-p", "3"), "top_p: Input should be less than"),
    (
        "language-model",
        ("predict", "a", "--max-length", "0"),
        "max_length: Input should be greater than 0",
    ),
    ("classify", ("score", "a"), "score is only supported for"),
    ("language-model", ("score",), "nothing to score"),
    ("regress", ("predict", "1,2,3"), "'1,2,3': expected 2 finite numbers, separated by commas"),
    ("regress", ("predict", "1,x"), "'1,x': expected 2 finite numbers, separated by commas"),
    ("regress", ("predict", "1,nan"), "'1,nan': expected 2 finite numbers"),
    (
        "regress",
        ("predict", "--input", "DEV"),
        "regress-dev.csv line 1: 'a,b,y': expected 2 finite numbers",
    ),
    ("tag", ("predict", "--input", "nowhere.txt"), "nowhere.txt: no such file"),
    ("classify", ("evaluate", "reverse"), "reverse: built-in data for --task transduce, found"),
    ("transduce", ("evaluate", "listops"), "listops: built-in data for --task classify, found"),
]


@pytest.mark.parametrize(("task", "words", "message"), ASKED)
def test_questions_that_make_no_sense(
    command: Command, models: Any, task: str, words: tuple[str, ...], message: str
) -> None:
    name, *rest = words
    given = [str(models(task).dev) if word == "DEV" else word for word in rest]
    assert message in error_of(command(name, models(task).run, *given))


@pytest.mark.parametrize("content", [None, "", "{}", "[]", "null", '{"masked": '])
@pytest.mark.parametrize(
    ("task", "name"), [(task, "task.json") for task in TASKS] + [("regress", "input.json")]
)
def test_a_damaged_model(
    command: Command, models: Any, task: str, name: str, content: str | None
) -> None:
    path = Path(shutil.copytree(models(task).run, "model")) / "vocabulary" / name
    path.unlink() if content is None else path.write_text(content)
    for words in (("predict", "model", "1,2"), ("train", "--resume", "--out", "model")):
        message = error_of(command(*words))
        assert f"{name}: " in message and "object" not in message and "indices" not in message
