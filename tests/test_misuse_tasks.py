"""Misuse of every task gets an answer in words, exit code 2 and no traceback."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
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


@pytest.fixture
def train(command: Command) -> Command:
    return lambda *words: command("train", *words, "--steps", "2", "--out", "run")


FILES = {
    "tag": [
        (
            "a b\tX Y\nc d e\tX Y\n",
            "data.tsv line 2: 3 tokens but 2 tags: expected one tag per token",
        ),
        (
            "a b\tX X\nc\tX\nd\tX\n",
            "expected at least two tags, found one: every word has the tag 'X'",
        ),
    ],
    "classify": [
        ("a\tx\nb\tx\nc\tx\n", "expected at least two classes, found one: all labels are 'x'"),
        ("a\tx\nb\t\n", "data.tsv line 2: expected a label, found nothing"),
        ("1\t2\tx\n1\t\ty\n", "data.tsv line 2: column 2: expected a finite number, found nothing"),
    ],
    "regress": [
        (
            "fine\tgood\ndull\tbad\n",
            "line 1: column 2: expected a finite number, found 'good'",
        ),
        (
            "a\tb\ty\n1\t2\t3\n1\t\t3\n",
            "line 3: column b: expected a finite number, found nothing",
        ),
        (
            "a\tb\ty\n1\t2\t3\n1\t2\tx\n",
            "line 3: column y: expected a finite number, found 'x'",
        ),
        ("1\t2\t3\n1\t4\t3\n2\t4\t3\n", "expected different targets, found [3.0]"),
        (
            "1\t2\t3\n" * 9 + "x\t2\t3\n",
            "line 10: column 1: expected a finite number, found 'x'",
        ),
    ],
    "language-model": [("a", "1 characters are too few to hold out a dev set")],
}


@pytest.mark.parametrize("word", ["train", "check"])
@pytest.mark.parametrize(
    ("task", "text", "message"), [(task, *row) for task in FILES for row in FILES[task]]
)
def test_data_that_cannot_be_used(
    command: Command, word: str, task: str, text: str, message: str
) -> None:
    Path("data.tsv").write_text(text)
    assert message in error_of(command(word, "data.tsv", "--task", task))
    assert not Path("runs").exists()


@pytest.mark.parametrize("task", TASKS)
def test_data_that_are_not_there(command: Command, train: Command, task: str) -> None:
    Path("empty.txt").write_text("\n")
    for word in ("train", "check"):
        assert "empty.txt: the file is empty" in error_of(
            command(word, "empty.txt", "--task", task)
        )
        assert "nowhere.txt: no such file" in error_of(command(word, "nowhere.txt", "--task", task))
        assert "no data\nhelp: pass a file" in error_of(command(word, "--task", task))
        assert "reverse: " in error_of(command(word, "reverse", "--task", task))
    sides = ("--source", "empty.txt", "--target", "empty.txt")
    assert "--source, --target: not supported for this task" in error_of(
        train(*sides, "--task", task)
    )


def test_a_label_that_is_unknown(command: Command, train: Command) -> None:
    """A warning, not a crash; evaluation counts it as wrong."""
    data, _ = corpora.write("classify", Path())
    Path("dev.tsv").write_text("fine tree\tgood\ndull dog\tweird\n")
    said = train(data, "--task", "classify", "--dev", "dev.tsv")
    assert said.code == 0
    assert "warning: dev labels that never occur in train (always wrong): weird (1)" in said.err
    found = json.loads(command("evaluate", "run", "dev.tsv", "--json").out)["metrics"]
    assert found["accuracy"] <= 50
    Path("none.tsv").write_text("dull dog\tweird\n")
    found = json.loads(command("evaluate", "run", "none.tsv", "--json").out)["metrics"]
    assert found["accuracy"] == 0
    said = command("train", data, "--task", "classify", "--dev", "none.tsv")
    assert "no label of the dev set occurs in the training set, which has bad" in error_of(said)


def test_a_tag_that_is_unknown(command: Command, train: Command) -> None:
    data, _ = corpora.write("tag", Path())
    Path("dev.conll").write_text("Anna X X B-PER\nsees X X O\nMars X X B-STAR\n\n")
    said = train(data, "--task", "tag", "--dev", "dev.conll")
    assert said.code == 0 and "B-STAR" in said.err.partition("auto:")[0]
    found = json.loads(command("evaluate", "run", "dev.conll", "--json").out)
    assert found["metrics"]["accuracy"] < 70
    row = next(row for row in found["details"]["classes"] if row["label"] == "B-STAR")
    assert row["count"] == 1 and row["recall"] == 0


SETTINGS = [
    (
        "clasify",
        (),
        "task: expected one of transduce, tag, classify, regress, language-model, synthesize, "
        "found 'clasify'",
    ),
    ("clasify", (), "did you mean classify?"),
    ("tag", ("model.decoder.kind=transformer",), "model.decoder: unknown setting"),
    ("tag", ("search.beam=3",), "search.beam: unknown setting; available: kind, threshold"),
    ("classify", ("task.target.tokenizer=char",), "task.target: unknown setting"),
    ("classify", ("task.metric=f1",), "task.metric=f1: not available for single-label data"),
    (
        "classify",
        ("training.optimizer.kind=closed_form",),
        "training.optimizer.kind=closed_form: only supported for linear",
    ),
    (
        "tag",
        ("training.optimizer.kind=closed_form",),
        "training.optimizer.kind=closed_form: only supported for linear",
    ),
    ("classify", ("training.freeze=[nope]",), "training.freeze: no weight name starts with 'nope'"),
    ("classify", ("training.freeze=[frontend,encoder,head]",), "training.freeze: all weights are"),
    ("classify", ("training.freeze=encoder",), "training.freeze: Input should be a valid list"),
    (
        "language-model",
        ("task.context_length=8", "task.eval_overlap=8"),
        "eval_overlap 8 must be less than",
    ),
    (
        "language-model",
        ("task.window_order=sequential", "model.decoder.kind=transformer"),
        "\n  task.window_order=sequential: a Transformer has no state; use shuffled",
    ),
    (
        "language-model",
        ("task.tokenizer=word_char",),
        "task.tokenizer=word_char: only supported for model.kind=masked",
    ),
    (
        "language-model",
        ("model.kind=ngram", "objective.kind=masked"),
        "objective masked: requires a model that outputs masked",
    ),
    (
        "language-model",
        ("model.kind=ngram", "training.optimizer.kind=adamw"),
        "not supported for a count-based",
    ),
    (
        "language-model",
        ("model.kind=ngram", "training.freeze=[x]"),
        "no weight name starts with 'x'",
    ),
    (
        "tag",
        ("objective.label_smoothing=0.1", "model.head=crf"),
        "label_smoothing: not supported with",
    ),
    (
        "classify",
        ("model.encoder.kind=linear", "model.pooling=last"),
        "position does not depend on the rest of the text",
    ),
]


@pytest.mark.parametrize(("task", "settings", "message"), SETTINGS)
def test_settings_that_do_not_fit(
    train: Command, task: str, settings: tuple[str, ...], message: str
) -> None:
    data, _ = corpora.write(task if task in TASKS else "classify", Path())
    words = [word for setting in settings for word in ("--set", setting)]
    assert message in error_of(train(data, "--task", task, *words))


# --init-from, --unlabeled, --resume, check


def test_models_that_cannot_be_started_from(train: Command, models: Any) -> None:
    Path("folder").mkdir()
    for task, origin, message in (
        ("tag", "language-model", "--init-from: a tagger starts from a tagger, or from a"),
        ("tag", "classify", "--init-from: a tagger starts from a tagger"),
        ("classify", "tag", "--init-from: the pretrained model does not read texts like this task"),
        (
            "classify",
            "regress",
            "--init-from: the pretrained model does not read texts like this task",
        ),
        ("classify", "language-model", "no weight matches this model"),
        (
            "regress",
            "classify",
            "--init-from: the pretrained model does not read vectors of 2 numbers",
        ),
        ("classify", None, "folder: not a model folder (contains no config.yaml)"),
    ):
        data, _ = corpora.write(task, Path())
        folder = models(origin).run if origin else "folder"
        assert message in error_of(train(data, "--task", task, "--init-from", folder))
    words = ("--init-from", models("classify").run, "--set", "task.source.tokenizer=word")
    said = train(corpora.write("classify", Path())[0], "--task", "classify", *words)
    assert "--init-from: expected tokenizer word, found char" in error_of(said)


def test_unlabeled_examples_where_they_are_of_no_use(train: Command, models: Any) -> None:
    for task in ("regress", "language-model", "transduce"):
        data, _ = corpora.write(task, Path())
        said = train(data, "--task", task, "--unlabeled", data)
        assert "only supported for tasks tag and classify" in error_of(said)
    data, _ = corpora.write("classify", Path())
    said = train(data, "--task", "classify", "--unlabeled", "nowhere.txt")
    assert "nowhere.txt: no such file" in error_of(said)
    said = train(data, "--task", "classify", "--teacher", models("classify").run)
    assert "--teacher: requires --unlabeled FILE" in error_of(said)
    assert not list(Path().glob("run*"))  # no teacher was trained in vain


def test_a_run_of_another_task_is_not_resumed(command: Command, models: Any) -> None:
    shutil.copytree(models("tag").run, "run")
    said = command("train", "--resume", "--out", "run", "--task", "classify")
    assert "--resume: task.kind is tag in run, got classify" in error_of(said)
    said = command("train", models("classify").train, "--resume", "--out", "run")
    assert "3 tokens but 1 tag" in error_of(said)


def test_what_check_cannot_do(command: Command, models: Any) -> None:
    said = command("check", models("classify").train, "--task", "classify", "--plot", "zipf.svg")
    assert "--plot: only supported for --task language-model" in error_of(said)
    assert not Path("zipf.svg").exists()
    said = command("check", models("tag").train, "--task", "tag", "--max-length", "3")
    assert "--max-length: only supported for --task transduce" in error_of(said)
