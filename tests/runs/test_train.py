"""Whole runs: the folder they leave, how long they take, and what they say."""

import contextlib
import os
import pickle
import re
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from folders import FILES, files, progress, records

import regard
from regard.config.load import flatten
from regard.storage.weights import read_tensors

Command = Callable[..., Any]


# The run folder


def test_the_run_folder_is_complete(trained: Any) -> None:
    assert files(trained.run).keys() == FILES
    config = yaml.safe_load((trained.run / "config.yaml").read_text())
    assert None not in flatten(config["model"]).values()  # all that was chosen is written out
    assert config["task"]["source"]["tokenizer"] == "char"
    page = (trained.run / "report.html").read_text()
    for part in ("model.encoder.width", "exact_match", "<svg"):
        assert part in page
    assert not re.search(r"""(src|href)=["']?https?:""", page)


def test_metrics_are_logged(trained: Any) -> None:
    lines = records(trained.run, "train")
    assert [line["step"] for line in lines] == [10, 20, 30, 40, 50, 60]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert all(
        line["tokens_per_second"] > 0 and 0 <= line["padding_fraction"] < 1 for line in lines
    )
    assert [line["step"] for line in records(trained.run, "dev")] == [30, 60]


def test_nothing_is_a_pickle(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in trained.run.rglob("*"):
        if path.is_file():
            start = path.read_bytes()[:4]
            assert not start.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"PK")), path

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a pickle is read")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")):
        monkeypatch.setattr(module, name, never)
    monkeypatch.setattr(torch, "load", never)
    assert regard.load(trained.run).predict(["abc"])


def test_a_run_can_be_moved_and_needs_no_data(
    command: Command, train: Command, words: list[str]
) -> None:
    assert train("--steps", "5", "--out", "here").code == 0
    before = command("predict", "here", *words)
    os.remove("words.tsv")
    shutil.move("here", "else where")
    after = command("predict", "else where", *words)
    assert (after.code, after.out) == (before.code, before.out)  # stderr may show progress
    assert before.code == 0


def test_best_and_last_are_kept(train: Command) -> None:
    """With perplexity as the measure and a rate that ruins the model, the best is not the last."""
    ruin = ("--set", "training.lr=0.3", "--set", "training.schedule.kind=constant")
    measure = ("--set", "task.metric=perplexity", "--set", "training.validate_every=1")
    assert train("--steps", "12", *ruin, *measure, "--out", "run").code == 0
    scores = {r["step"]: r["scores"]["perplexity"] for r in records("run", "dev")}
    best = min(scores, key=lambda step: (scores[step], -step))
    assert best < 12 and progress("run")["best_step"] == best
    (final,) = records("run", "final")
    assert final["step"] == best and final["scores"]["perplexity"] == scores[best]
    weights = [read_tensors(Path("run") / name) for name in ("model.safetensors", LAST)]
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


LAST = "checkpoint/model.safetensors"


# How long


def test_a_budget_is_kept_and_the_rate_ends_near_zero(
    train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        """Continues by a hundredth of a second whenever one attends to it."""

        seconds = 0.0

        @classmethod
        def monotonic(cls) -> float:
            cls.seconds += 0.01
            return cls.seconds

    for module in ("run", "validation"):
        monkeypatch.setattr(f"regard.training.{module}.time", Clock)
    assert train("--budget", "3s", "--out", "run").code == 0
    (final,) = records("run", "final")
    assert 3 <= final["elapsed_seconds"] < 3.2
    rates = [line["lr"] for line in records("run", "train")]
    assert max(rates) > 0.5 * 0.02 and rates[-1] < 0.1 * 0.02
    assert rates.index(max(rates)) < len(rates) / 2


def test_epochs(train: Command) -> None:
    assert train("--epochs", "2", "--out", "run").code == 0
    assert records("run", "train")[-1]["epoch"] == 2
    assert progress("run")["epoch"] == 2 and progress("run")["position"] == 0


def test_patience_ends_a_run_that_gets_worse(train: Command) -> None:
    ruin = ("--set", "training.lr=0.3", "--set", "training.schedule.kind=constant")
    measure = ("--set", "task.metric=perplexity", "--set", "training.validate_every=2")
    patience = ("--set", "training.patience=2")
    said = train("--steps", "300", *ruin, *measure, *patience, "--out", "run")
    assert said.code == 0 and "done: " in said.err
    done = progress("run")
    assert done["finished"] and done["validations_without_gain"] == 2 and done["step"] < 300
    assert done["best_step"] == done["step"] - 4


# Numbers that are none


@pytest.mark.parametrize("often", ["1", "100"])
def test_a_loss_that_is_no_number_stops_without_a_bad_model(
    command: Command, train: Command, often: str
) -> None:
    wild = ("--set", "training.lr=1e30", "--set", "training.clip_norm=0")
    every = ("--set", f"training.validate_every={often}")
    said = train("--steps", "8", *wild, *every, "--out", "run")
    assert said.code == 2 and said.out == "" and "Traceback" not in said.err
    (message,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert "is not finite" in message or "training diverged" in message
    assert "help: try --set training.lr=" in said.err
    assert "training.clip_norm=1 (now 0)" in said.err
    assert not Path("run/model.safetensors").exists() and not Path("run/scores.json").exists()
    assert command("predict", "run", "ab").code == 2


def test_the_last_update_is_checked_too(train: Command) -> None:
    wild = ("--set", "training.lr=1e30", "--set", "training.clip_norm=0")
    said = train("--steps", "1", *wild, "--out", "run")
    assert said.code == 2 and "training diverged (dev loss" in said.err
    assert not Path("run/model.safetensors").exists()


# What is reported


def test_texts_are_shown_as_they_are(command: Command, tiny: list[str]) -> None:
    Path("marks.tsv").write_text("[b]\t:100:\n[/b]\t:smile:\n[i]\t[red]\n\\[\t[/]\n")
    Path("dev.tsv").write_text("[b]\t:100:\n:b:\t[red]:smile:\n")
    said = command("train", "marks.tsv", "--dev", "dev.tsv", "--steps", "1", *tiny)
    assert said.code == 0
    assert "expected: :100:" in said.err and "expected: [red]:smile:" in said.err


def test_what_is_skipped_or_unknown_is_counted(command: Command, tiny: list[str]) -> None:
    Path("odd.tsv").write_text("ab\tba\nabc\tcba\nabcdef\tfedcba\ngone\t\n")
    Path("dev.tsv").write_text("ax\txa\n")
    limit = ("--set", "task.max_length=4")
    said = command("train", "odd.tsv", "--dev", "dev.tsv", "--steps", "1", *limit, *tiny)
    assert said.code == 0
    assert "skipped: 1 pairs with an empty source or target" in said.err
    assert "skipped: 1 pairs longer than 4 tokens" in said.err
    assert "warning: 1 of 2 dev source tokens are out of vocabulary (50.00%)" in said.err


def test_in_a_terminal_there_is_a_line_that_moves(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the cursor comes back, also when training fails."""
    wild = ("--set", "training.lr=1e30", "--set", "training.clip_norm=0")
    for words, last in ((("--steps", "20"), "next: "), ((*wild, "--steps", "9"), "error: ")):
        shown = in_terminal(["train", "words.tsv", *tiny, *words], monkeypatch)
        assert "tokens/s" in shown or "loss " in shown
        assert "padding " in shown and " left" in shown and "%" in shown
        hidden, back = shown.rindex("\x1b[?25l"), shown.rindex("\x1b[?25h")
        assert hidden < back < shown.rindex(last)


def in_terminal(words: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command writes to stderr where that is a terminal."""
    from regard.cli import main

    theirs, ours = os.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        try:
            while piece := os.read(theirs, 4096):
                pieces.append(piece)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, open(ours, "w") as terminal:
        patch.setattr(sys, "argv", ["regard", *words])
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "200")
        with contextlib.suppress(SystemExit):
            main()
    reader.join(120)
    os.close(theirs)
    return b"".join(pieces).decode()
