"""Commands with sounds: train, evaluate, diagnose, and tasks that do not read them."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest

from regard.experiments.diagnose import ceiling, trials

Command = Callable[..., Any]
SMALL = (
    *("--set", "model.encoder.width=16", "--set", "model.encoder.layers=1"),
    *("--set", "training.lr=0.02", "--set", "training.batch_tokens=400"),
)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, steps in (("STEPS", 6), ("RANGE_STEPS", 6), ("ONE_BATCH_STEPS", 5)):
        monkeypatch.setattr(trials, name, steps)
    monkeypatch.setattr(ceiling, "MIN_STEPS", 5)
    monkeypatch.setattr(ceiling, "MAX_STEPS", 5)


def train(command: Command, *words: str) -> list[str | Path]:
    """Train `run` on tones; return the words that name the dev set."""
    table, dev = corpora.spoken(Path(), 24), corpora.spoken(Path(), 8, first=24)
    said = command("train", table, "--dev", dev, *corpora.SPOKEN, *SMALL, *words, "--out", "run")
    assert said.code == 0, said.err
    return [dev, *corpora.SPOKEN]


def statistics() -> dict[str, Any]:
    """What was diagnosed."""
    return json.loads(Path("run/diagnosis.json").read_text())["statistics"]


def test_classify_evaluate_and_diagnose(command: Command) -> None:
    held = train(command, "--task", "classify", "--steps", "30")
    found = json.loads(command("evaluate", "run", *held, "--json").out)
    assert found["metrics"]["accuracy"] == 100 and found["examples"] == 8
    assert [one["name"] for one in found["baselines"]] == ["most frequent label"]
    said = command("evaluate", "run", *held)
    assert "sounds: 8 files, paths relative to the folder of the table" in said.err
    assert "rows: expected, columns: predicted\n      down  up\n" in said.out
    said = command("diagnose", "run")
    assert said.code == 0, said.out
    assert "no problems found" in said.out and "(no text side)" in said.out
    assert statistics()["predictions"]["most_frequent"]["prediction"] in ("'down'", "'up'")


def test_ctc_is_trained_evaluated_and_diagnosed(command: Command) -> None:
    held = train(command, "--recipe", "speech-ctc", "--steps", "8")
    found = json.loads(command("evaluate", "run", *held, "--json").out)
    assert {"wer", "cer"} <= found["metrics"].keys() and found["examples"] == 8
    said = command("diagnose", "run")
    assert said.code in (0, 1) and "Traceback" not in said.err, said.err
    losses = statistics()["losses"]
    assert losses["dev"]["loss"] > 0 and losses["dev"]["accuracy"] is None  # frames are no tokens


@pytest.mark.parametrize("limit", [(), ("--budget", "60s")], ids=["steps", "budget"])
def test_the_recipe_needs_no_further_options(command: Command, limit: tuple[str, ...]) -> None:
    """Frames are many, so each position is one; targets are spelled."""
    table = corpora.spoken(Path(), 12)
    words = ("train", table, *corpora.SPOKEN, "--recipe", "speech-ctc", *limit)
    said = command(*words, "--steps", "1", "--out", "run")
    assert said.code == 0, said.err
    assert "model.decoder.upsample=1 (sounds have many positions)" in said.err
    assert "skipped" not in said.err


@pytest.mark.parametrize("task", ["tag", "language-model"])
@pytest.mark.parametrize("form", ["table", "folder", "file"])
def test_tasks_that_do_not_read_sounds_are_named(command: Command, task: str, form: str) -> None:
    table = corpora.spoken(Path(), 2)
    words = {"table": [table, *corpora.SPOKEN], "folder": ["."], "file": ["0.wav"]}[form]
    for name in ("train", "check"):
        said = command(name, *words, "--task", task)
        assert said.code == 2, said.out
        assert (
            f"{words[0]}: the sources are sound files: not supported for --task {task}" in said.err
        )
        assert "help: use --task classify (labels), regress (numbers) or transduce" in said.err
    assert not Path("runs").exists()


def test_numbers_of_sounds(command: Command) -> None:
    table = corpora.spoken(Path(), 12)
    text = table.read_text().replace("\tdown", "\t0.5").replace("\tup", "\t1.5")
    table.write_text(text)
    words = (table, "--task", "regress", *corpora.SPOKEN, *SMALL)
    said = command("train", *words, "--steps", "2", "--out", "run")
    assert said.code == 0, said.err
    value = float(command("predict", "run", "0.wav").out.split("\t")[1])
    assert math.isfinite(value)


def test_predictions_for_a_table_know_its_speakers(command: Command) -> None:
    """As evaluation does: features are normalized by the mean over the speaker's recordings."""
    table = corpora.spoken(Path(), 24)
    rows = table.read_text().splitlines()
    voices = ["speaker", *(f"s{n % 3}" for n in range(24))]
    spoken = Path("spoken.tsv")
    spoken.write_text("".join(f"{a}\t{b}\n" for a, b in zip(rows, voices, strict=True)))
    words = ("--task", "classify", *corpora.SPOKEN, "--speaker-column", "speaker", *SMALL)
    said = command("train", spoken, "--dev", spoken, *words, "--steps", "12", "--out", "run")
    assert said.code == 0, said.err
    found = json.loads(command("evaluate", "run", spoken, "--json").out)["metrics"]["accuracy"]
    said = command("predict", "run", "--input", spoken)
    assert "3 speakers (--speaker-column speaker of the training data)" in said.err
    labels = [row.split("\t")[1] for row in rows[1:]]
    predicted = [line.split("\t")[1] for line in said.out.splitlines()]
    right = sum(a == b for a, b in zip(labels, predicted, strict=True))
    assert found == pytest.approx(100 * right / 24)
    said = command("predict", "run", "--input", table)
    assert said.code == 0 and "unknown speakers" in said.err and "no column" in said.err, said.err
    spoken.write_text(spoken.read_text().replace("\ts1\n", "\t\n", 1))
    said = command("predict", "run", "--input", spoken)
    assert said.code == 0 and "expected a speaker, found nothing" in said.err, said.err
