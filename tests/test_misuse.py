"""Misuse gets an answer: a line or two that start with error:, exit code 2, and nothing is lost."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.core.errors import UserError

Command = Callable[..., Any]
GOOD = "ab\tba\nabc\tcba\nfed\tdef\ncafe\tefac\n"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.tsv").write_text(GOOD)


def error_of(said: Any) -> str:
    """Return the error of a command: one or two lines at the end, and no traceback."""
    assert said.code == 2, said
    assert said.out == "" and "Traceback" not in said.err
    _, mark, message = f"\n{said.err}".partition("\nerror: ")
    assert mark and message.endswith("\n") and message.count("\n") <= 2, said.err
    return message


FILES: dict[str, tuple[str | bytes, str]] = {
    "empty.tsv": ("", "empty.tsv: the file is empty"),
    "blank.tsv": ("\n \n", "blank.tsv: the file is empty"),
    "binary.tsv": (
        b"ab\tba\n\0\1\2\n",
        "binary.tsv line 2: NUL byte: expected UTF-8 text, found a binary file",
    ),
    "sheet.csv": (
        b"PK\3\4\0\0",
        "sheet.csv line 1: NUL byte: expected UTF-8 text, found a zip archive or a spreadsheet",
    ),
    "latin.tsv": ("straße\tx\n".encode("latin1"), "latin.tsv line 1: not UTF-8: byte 0xDF"),
    "wide.tsv": (GOOD.encode("utf-16"), "wide.tsv: expected UTF-8, found UTF-16"),
    "single.tsv": ("ab\nbc\n", "single.tsv"),
    "ragged.tsv": ("ab\tba\nbc\n", "ragged.tsv line 2: expected 2 columns, found 1"),
    "one.tsv": ("ab\tba\n", "1 pair with 1 distinct source: at least 2 sources are needed"),
    "same.tsv": ("ab\tba\nab\tab\n", "2 pairs with 1 distinct source"),
    "targetless.tsv": ("ab\t\nbc\t\n", "targetless.tsv: the target is empty in all 2 pairs"),
    "sourceless.tsv": ("\tab\n\tbc\n", "sourceless.tsv: the source is empty in all 2 pairs"),
    "cut.tsv.gz": (gzip.compress(GOOD.encode())[:-9], "cut.tsv.gz: truncated gzip file"),
    "bad.jsonl": ('{"source": "a"\n', "bad.jsonl line 1: invalid JSON"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("word", ["train", "check"])
def test_data_that_cannot_be_used(command: Command, word: str, name: str) -> None:
    content, message = FILES[name]
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert message in error_of(command(word, name))
    assert not Path("runs").exists()


@pytest.mark.parametrize("word", ["train", "check"])
def test_one_example_with_a_dev_file_can_be_used(
    command: Command, word: str, tiny: list[str]
) -> None:
    Path("one.tsv").write_text("ab\tba\n")
    more = ["--steps", "1", *tiny] if word == "train" else []
    assert command(word, "one.tsv", "--dev", "good.tsv", *more).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.tsv"], "nowhere.tsv: no such file"),
        (["god.tsv"], "god.tsv: no such file; did you mean good.tsv?"),
        (["no/where.tsv"], "no/where.tsv: no such file; the folder no does not exist"),
        (
            ["revers"],
            "revers: neither a file nor a built-in dataset (g2p, reverse, copy, sort, dates, "
            "scenes, listops, listops-long, communities)",
        ),
        (["revers"], "did you mean reverse?"),
        (["."], "."),
        ([], "no data\nhelp: pass a file, a built-in dataset, or --source and --target"),
        (["good.tsv", "--source", "a"], "good.tsv: cannot be combined with --source and --target"),
        (["--source", "a"], "--target: missing; --source and --target must be"),
        (["--target", "a"], "--source: missing; --source and --target must be"),
        (["--source", "three", "--target", "four"], "three has 3 lines, four has 4"),
        (["good.tsv", "--source-column", "lemma"], "no column 'lemma'"),
        (["good.tsv", "--dev", "nowhere.tsv"], "nowhere.tsv: no such file"),
        (["good.tsv", "--dev-source", "three"], "--dev-target: missing"),
    ],
)
def test_data_that_are_not_there(command: Command, words: list[str], message: str) -> None:
    Path("three").write_text("a\nb\nc\n")
    Path("four").write_text("a\nb\nc\nd\n")
    for word in ("train", "check"):
        assert message in error_of(command(word, *words))
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "training.steps=many"], "training.steps: Input should be a valid integer"),
        (["--set", "training.lr=fast"], "training.lr: Input should be a valid number"),
        (["--set", "model.encoder.width=[1]"], "model.encoder.width: "),
        (
            ["--set", "model.encoder.kind=rnn"],
            "expected one of 'auto', 'transformer', 'recurrent'",
        ),
        (
            ["--set", "model.encoder.kind=transformer", "--set", "model.encoder.cell=gru"],
            "model.encoder.cell: not available for this kind",
        ),
        (["--set", "training.step=3"], "training.step: unknown setting; did you mean steps?"),
        (["--set", "training.steps"], "--set training.steps: expected KEY=VALUE"),
        (["--set", "training.steps.x=3"], "training.steps: Input should be a valid integer"),
        (["--budget", "soon"], "expected a duration such as 90s, 10m, 2h or 1h30m, found 'soon'"),
        (["--steps", "0"], "training.steps: Input should be greater than 0, found 0"),
        (["--seed", "-1"], "training.seed: Input should be greater than or equal to 0"),
        (["--recipe", "nowhere"], "nowhere: neither a file nor a recipe"),
        (["--recipe", "g2q"], "did you mean g2p?"),
        (["--recipe", "list.yaml"], "list.yaml: expected sections (task, model, training, ...)"),
        (["--recipe", "good.tsv"], "good.tsv line 1: invalid YAML"),
        (["--resume", "--force"], "--resume and --force exclude each other"),
        (["--resume"], "--resume: no run in runs/ (data good.tsv)"),
        (["--out", "good.tsv"], "good.tsv: expected a folder, found a file"),
        (["--out", "good.tsv/run"], "good.tsv"),
    ],
)
def test_settings_that_are_wrong(command: Command, words: list[str], message: str) -> None:
    Path("list.yaml").write_text("[1, 2]")
    limit = [] if "--steps" in words or "training.steps" in str(words) else ["--steps", "1"]
    assert message in error_of(command("train", "good.tsv", *limit, *words))
    assert (
        sorted(os.listdir()) == ["good.tsv", "list.yaml"] and Path("good.tsv").read_text() == GOOD
    )


def test_all_wrong_settings_are_reported_at_once(command: Command) -> None:
    said = command("train", "good.tsv", "--steps", "0", "--set", "search.beam=0")
    assert "training.steps" in said.err and "search.beam" in said.err


@pytest.mark.parametrize("words", [["--steps", "x"], ["--nonsense"], ["--resume=x"]])
def test_words_that_are_wrong(command: Command, words: list[str]) -> None:
    said = command("train", "good.tsv", *words)
    assert said.code == 2 and said.out == "" and "Traceback" not in said.err


def test_an_unknown_command(command: Command) -> None:
    said = command("trian", "good.tsv")
    assert said.code == 2 and "train" in said.err and "Traceback" not in said.err


# Model folders


@pytest.fixture
def model(trained: Any) -> Path:
    """A model of one's own, to be broken."""
    return Path(shutil.copytree(trained.run, "model"))


def broken_weights(model: Path) -> str:
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    return "model/model.safetensors: corrupted or truncated"


def no_weights(model: Path) -> str:
    (model / "model.safetensors").unlink()
    return "model/model.safetensors: no such file; the model folder is incomplete"


def other_weights(model: Path) -> str:
    config = (model / "config.yaml").read_text()
    (model / "config.yaml").write_text(config.replace("width: 32", "width: 16"))
    return "model/model.safetensors: the weights do not match config.yaml"


def newer(model: Path) -> str:
    facts = json.loads((model / "run.json").read_text())
    facts |= {"format": 99, "version": "9.0"}
    (model / "run.json").write_text(json.dumps(facts))
    (model / "config.yaml").write_text("telepathy: {kind: strong}\n")
    return "model: created by regard 9.0, which is newer"


def empty_folder(model: Path) -> str:
    shutil.rmtree(model)
    model.mkdir()
    return "model: not a model folder (contains no config.yaml)"


def no_folder(model: Path) -> str:
    shutil.rmtree(model)
    return "model: no such model folder"


def a_file(model: Path) -> str:
    shutil.rmtree(model)
    model.write_text("hello")
    return "model: expected a model folder such as"


def broken_config(model: Path) -> str:
    (model / "config.yaml").write_text("task: [")
    return "model/config.yaml line 1: invalid YAML"


def cut_config(model: Path) -> str:
    (model / "config.yaml").write_text("")
    return "model/config.yaml"


def half_config(model: Path) -> str:
    lines = (model / "config.yaml").read_text().splitlines()
    (model / "config.yaml").write_text("\n".join(lines[: lines.index("model:") + 6]))
    return "model/config.yaml: corrupted or truncated: model."


def broken_facts(model: Path) -> str:
    (model / "run.json").write_text('{"format": ')
    return "model/run.json: cannot read; the model folder is corrupted"


def no_vocabulary(model: Path) -> str:
    (model / "vocabulary" / "source.json").unlink()
    return "model/vocabulary/source.json: missing vocabulary"


def broken_vocabulary(model: Path) -> str:
    path = model / "vocabulary" / "target.json"
    path.write_text(path.read_text()[:20])
    return "model/vocabulary/target.json: corrupted vocabulary"


def broken_task(model: Path) -> str:
    (model / "vocabulary" / "task.json").write_text("{}")
    return "model/vocabulary/task.json"


BREAKERS = [
    *(broken_weights, no_weights, other_weights, newer, empty_folder, no_folder, a_file),
    *(cut_config, half_config, broken_facts, no_vocabulary, broken_vocabulary),
    *(broken_config, broken_task),
]


@pytest.mark.parametrize("spoil", BREAKERS, ids=lambda spoil: spoil.__name__)
def test_a_model_folder_that_cannot_be_used(command: Command, model: Path, spoil: Any) -> None:
    message = spoil(model)
    assert message in error_of(command("predict", model, "ab"))
    assert message in error_of(command("evaluate", model, "good.tsv"))
    with pytest.raises(UserError, match="model"):
        regard.load(model)


@pytest.mark.parametrize(
    "spoil",
    [newer, empty_folder, no_folder, cut_config, broken_facts, no_vocabulary],
    ids=lambda spoil: spoil.__name__,
)
def test_a_run_that_cannot_be_resumed(command: Command, model: Path, spoil: Any) -> None:
    spoil(model)
    error_of(command("train", "--out", model, "--resume"))


# Predict


def test_nothing_is_answered_twice(command: Command, trained: Any) -> None:
    said = command("predict", trained.run, "ab", "--input", "good.tsv")
    assert error_of(said) == "texts and --input cannot be combined\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"\xff\xfe\0", "standard input: expected UTF-8, found UTF-16"),
        (b"a\0b\n", "standard input line 1: NUL byte"),
        (b"\xe4\n", "standard input line 1: not UTF-8"),
    ],
)
def test_input_that_is_no_text(command: Command, trained: Any, given: bytes, message: str) -> None:
    assert message in error_of(command("predict", trained.run, stdin=given))


def test_input_that_is_not_there(command: Command, trained: Any) -> None:
    said = command("predict", trained.run, "--input", "god.tsv")
    assert error_of(said) == "god.tsv: no such file; did you mean good.tsv?\n"
    assert "not UTF-8" in error_of(command("predict", trained.run, "a\udce4"))


@pytest.mark.parametrize("option", ["--beam", "--nbest", "--batch-size"])
def test_counts_begin_at_one(command: Command, trained: Any, option: str) -> None:
    assert command("predict", trained.run, "ab", option, "0").code == 2


# --debug


def test_debug_shows_where(command: Command, trained: Any) -> None:
    with pytest.raises(UserError, match=r"nowhere\.tsv: no such file"):
        command("train", "nowhere.tsv", "--debug")
    with pytest.raises(UserError, match="cannot be combined"):
        command("predict", trained.run, "ab", "--input", "good.tsv", "--debug")


def test_debug_shows_the_traceback() -> None:
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1])}
    run = [sys.executable, "-m", "regard", "train", "nowhere.tsv", "--debug"]
    done = subprocess.run(run, env=os.environ | where, capture_output=True, text=True)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("UserError: nowhere.tsv: no such file\n")
