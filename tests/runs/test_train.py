"""Whole runs: the folder they leave, stopping, going on, and what is never deleted."""

import contextlib
import hashlib
import json
import math
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import regard
from regard.config import flatten
from regard.display import Plain
from regard.training.checkpoint import read_tensors

Command = Callable[..., Any]
FILES = {
    *("config.yaml", "run.json", "settings.json", "check.json", "version.txt"),
    *("vocabulary/source.json", "vocabulary/target.json", "vocabulary/task.json"),
    *("model.safetensors", "metrics.jsonl", "samples.jsonl", "scores.json", "report.html"),
    *("last/model.safetensors", "last/training.safetensors", "last/progress.json"),
}
STEPS = ("--steps", "100", "--set", "training.validate_every=40")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in words[:120]))


@pytest.fixture
def train(command: Command, tiny: list[str]) -> Command:
    """`train words.tsv` with a tiny model."""
    return lambda *words, **more: command("train", "words.tsv", *tiny, *words, **more)


def files(folder: str | Path) -> dict[str, str]:
    """A digest of each file in a folder."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def records(folder: str | Path, kind: str) -> list[dict[str, Any]]:
    """The lines of this kind in metrics.jsonl."""
    lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def progress(folder: str | Path) -> dict[str, Any]:
    return json.loads((Path(folder) / "last" / "progress.json").read_text())


# The run folder


def test_the_run_folder_is_complete(trained: Any) -> None:
    assert files(trained.run).keys() == FILES
    config = yaml.safe_load((trained.run / "config.yaml").read_text())
    assert None not in flatten(config["model"]).values()  # all that was chosen is written out
    assert config["task"]["source"]["symbols"] == "char"
    page = (trained.run / "report.html").read_text()
    for part in ("model.encoder.width", "exact", "<svg"):
        assert part in page
    assert not re.search(r"""(src|href)=["']?https?:""", page)


def test_metrics_are_logged(trained: Any) -> None:
    lines = records(trained.run, "train")
    assert [line["step"] for line in lines] == [10, 20, 30, 40, 50, 60]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert all(line["tokens_per_second"] > 0 and 0 <= line["padding"] < 1 for line in lines)
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
    assert command("predict", "else where", *words) == before
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


LAST = "last/model.safetensors"


# How long


def test_a_budget_is_kept_and_the_rate_ends_near_zero(train: Command) -> None:
    assert train("--budget", "3s", "--out", "run").code == 0
    (final,) = records("run", "final")
    assert 3 <= final["seconds"] < 5
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
    assert done["finished"] and done["stale"] == 2 and done["step"] < 300
    assert done["best_step"] == done["step"] - 4


# Numbers that are none


@pytest.mark.parametrize("often", ["1", "100"])
def test_a_loss_that_is_no_number_stops_without_a_bad_model(
    command: Command, train: Command, often: str
) -> None:
    wild = ("--set", "training.lr=1e30", "--set", "training.clip=0")
    every = ("--set", f"training.validate_every={often}")
    said = train("--steps", "8", *wild, *every, "--out", "run")
    assert said.code == 2 and said.out == "" and "Traceback" not in said.err
    (message,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert "not a finite number" in message or "training has diverged" in message
    assert "training.lr" in message and "training.clip=1 (now 0)" in message
    assert not Path("run/model.safetensors").exists() and not Path("run/scores.json").exists()
    assert command("predict", "run", "ab").code == 2


def test_the_last_update_is_looked_at_too(train: Command) -> None:
    wild = ("--set", "training.lr=1e30", "--set", "training.clip=0")
    said = train("--steps", "1", *wild, "--out", "run")
    assert said.code == 2 and "training has diverged, and this model was not kept" in said.err
    assert not Path("run/model.safetensors").exists()


# What is said


def test_texts_are_shown_as_they_are(command: Command, tiny: list[str]) -> None:
    Path("marks.tsv").write_text("[b]\t:100:\n[/b]\t:smile:\n[i]\t[red]\n\\[\t[/]\n")
    Path("dev.tsv").write_text("[b]\t:100:\n:b:\t[red]:smile:\n")
    said = command("train", "marks.tsv", "--dev", "dev.tsv", "--steps", "1", *tiny)
    assert said.code == 0
    assert "wanted: :100:" in said.err and "wanted: [red]:smile:" in said.err


def test_what_is_left_out_or_unknown_is_counted(command: Command, tiny: list[str]) -> None:
    Path("odd.tsv").write_text("ab\tba\nabc\tcba\nabcdef\tfedcba\ngone\t\n")
    Path("dev.tsv").write_text("ax\txa\n")
    limit = ("--set", "task.max_length=4")
    said = command("train", "odd.tsv", "--dev", "dev.tsv", "--steps", "1", *limit, *tiny)
    assert said.code == 0
    assert "1 pairs with an empty side are left out of training" in said.err
    assert "1 pairs longer than task.max_length=4 symbols are left out of training" in said.err
    assert "! source symbols in dev that are not in the vocabulary: 1 of 2 (50.00%)" in said.err


def test_in_a_terminal_there_is_a_line_that_moves(
    command: Command, tiny: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the cursor comes back, also when training fails."""
    wild = ("--set", "training.lr=1e30", "--set", "training.clip=0")
    for words, last in ((("--steps", "20"), "use it: "), ((*wild, "--steps", "9"), "error: ")):
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
    reader.join(5)
    os.close(theirs)
    return b"".join(pieces).decode()


# Stopping and going on


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, command: Command, tiny: list[str], words: list[str]
) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    data = folder / "words.tsv"
    data.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words[:120]))
    assert command("train", data, *tiny, *STEPS, "--out", folder / "run").code == 0
    return folder / "run"


def same_weights(one: Path, other: Path) -> bool:
    return all(
        (one / name).read_bytes() == (other / name).read_bytes()
        for name in ("model.safetensors", LAST)
    )


def start(*words: str | Path) -> subprocess.Popen[str]:
    """A process that trains; one thread, so that numbers repeat."""
    where = {"PYTHONPATH": str(Path(regard.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "regard", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(run, env=os.environ | where, stdout=pipe, stderr=pipe, text=True)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.002)


def test_ctrl_c_saves_and_says_how_to_go_on(command: Command, tiny: list[str], whole: Path) -> None:
    process = start("train", "words.tsv", *tiny, *STEPS, "--out", "my run")
    wait_for(Path("my run/metrics.jsonl"), process)  # ten steps are done
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and "Traceback" not in err
    (said,) = re.findall(r"stopped at step (\d+); everything is saved in my run\. (.*)\n", err)
    assert 10 <= int(said[0]) < 100 and progress("my run")["step"] == int(said[0])

    assert command("predict", "my run", "abc").code == 0  # it can be used as it is
    assert "not finished" in Path("my run/report.html").read_text()
    _, *words = shlex.split(said[1].removeprefix("Go on with: "))
    resumed = command(*words)
    assert resumed.code == 0 and f"resumed at step {said[0]}" in resumed.err
    assert progress("my run")["step"] == 100 and same_weights(Path("my run"), whole)
    assert files("my run").keys() == FILES


def test_a_killed_run_goes_on_from_its_checkpoint(
    command: Command, tiny: list[str], whole: Path
) -> None:
    often = ("--set", "training.checkpoint_every=5")
    process = start("train", "words.tsv", *tiny, *STEPS, *often, "--out", "run")
    wait_for(Path("run/last/progress.json"), process)
    time.sleep(0.1)
    process.kill()
    process.communicate(timeout=60)
    assert progress("run")["step"] < 100
    assert command("train", "--resume", "--out", "run").code == 0
    assert progress("run")["step"] == 100 and same_weights(Path("run"), whole)


def test_what_came_after_the_checkpoint_is_logged_once(
    command: Command, train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ("--steps", "30", "--set", "training.validate_every=10")
    assert train(*every, "--out", "whole").code == 0

    class Killed(BaseException):
        pass

    def die(display: Plain, run: Any, record: Any, speed: float) -> None:
        if record.step == 29:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Plain, "step", die)
        train(*every, "--out", "run")
    assert [record["step"] for record in records("run", "train")] == [10, 20, 29]
    with open("run/metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # cut off in the middle of a line
    assert command("train", "--resume", "--out", "run").code == 0
    for kind in ("train", "dev"):
        losses = [(r["step"], r["loss"]) for r in records("run", kind)]
        assert losses == [(r["step"], r["loss"]) for r in records("whole", kind)]
    assert Path("run/samples.jsonl").read_text() == Path("whole/samples.jsonl").read_text()


@pytest.fixture
def interrupted(train: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of 30 steps that Ctrl-C ended after step 12."""
    with monkeypatch.context() as patch:
        patch.setattr(Plain, "step", interrupt_at_12)
        assert train("--steps", "30", "--out", "run").code == 130
    assert progress("run")["step"] == 12
    return Path("run")


def interrupt_at_12(display: Plain, run: Any, record: Any, speed: float) -> None:
    if record.step == 12:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--steps", "40"], "training.steps is 30 in run, 40 was asked for"),
        (["--seed", "7"], "training.seed is 1 in run, 7 was asked for"),
        (["--budget", "1m"], "training.budget is None in run, 60.0 was asked for"),
        (["--set", "model.encoder.layers=4"], "model.encoder.layers is "),
        (["--set", "training.lr=0.1"], "training.lr is 0.02 in run, 0.1 was asked for"),
        (["--recipe", "recipe.yaml"], "search.beam is 5 in run, 2 was asked for"),
    ],
)
def test_resume_keeps_its_settings(
    command: Command, interrupted: Path, words: list[str], key: str
) -> None:
    Path("recipe.yaml").write_text("search: {beam: 2}\n")
    before = files("run")
    said = command("train", "--resume", "--out", "run", *words)
    assert said.code == 2 and said.err.startswith(f"error: --resume: {key}")
    assert files("run") == before


def test_a_default_is_a_changed_setting_too(command: Command, train: Command) -> None:
    assert train("--steps", "3", "--seed", "5", "--out", "run").code == 0
    said = command("train", "--resume", "--out", "run", "--seed", "1")
    assert said.code == 2 and "training.seed is 5 in run, 1 was asked for" in said.err


def test_resume_with_the_same_settings_and_data(train: Command, interrupted: Path) -> None:
    said = train("--steps", "30", "--out", "run", "--resume")
    assert said.code == 0 and "resumed at step 12" in said.err and progress("run")["step"] == 30
    before = files("run")
    again = train("--steps", "30", "--out", "run", "--resume")
    assert again == (0, "", "run: finished after 30 steps; nothing is left to do\n")
    assert files("run") == before


def test_resume_finds_the_newest_run_of_the_data(train: Command, command: Command) -> None:
    for _ in range(2):
        assert train("--steps", "2").code == 0
    shutil.copytree("runs/words-1", "runs/words-old-1")
    said = command("train", "words.tsv", "--resume")
    assert said.err == "runs/words-2: finished after 2 steps; nothing is left to do\n"


def test_resume_with_other_data_is_refused(command: Command, interrupted: Path) -> None:
    with open("words.tsv", "a") as file:
        file.write("new\twen\n")
    before = files("run")
    said = command("train", "--resume", "--out", "run")
    assert said.code == 2 and "the training data are not those this run began with" in said.err
    assert files("run") == before


def test_resume_of_a_run_from_python_asks_for_the_data(command: Command) -> None:
    pairs = [("ab", "ba"), ("cd", "dc"), ("ef", "fe")]
    regard.Transducer(steps=1, out="run").fit(pairs)
    said = command("train", "--resume", "--out", "run")
    assert said.code == 2 and said.err.startswith("error: no data: name a file")


def test_a_run_killed_before_its_first_checkpoint_begins_anew(
    command: Command, train: Command
) -> None:
    assert train("--steps", "4", "--out", "run").code == 0
    weights = (Path("run") / LAST).read_bytes()
    shutil.rmtree("run/last")
    assert command("train", "--resume", "--out", "run").code == 0
    assert (Path("run") / LAST).read_bytes() == weights


def test_a_run_killed_while_it_was_scored_is_scored(command: Command, train: Command) -> None:
    assert train("--steps", "4", "--out", "run").code == 0
    scores = Path("run/scores.json").read_bytes()
    os.remove("run/scores.json")
    assert command("train", "--resume", "--out", "run").code == 0
    wanted, got = json.loads(scores), json.loads(Path("run/scores.json").read_bytes())
    assert got["scores"] == wanted["scores"] and math.isfinite(got["scores"]["perplexity"])


# Folders that are there already


def test_an_existing_run_is_kept_unless_forced(train: Command) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    before = files("run")
    said = train("--steps", "3", "--out", "run")
    assert said.code == 2 and files("run") == before
    assert said.err.startswith("error: run: holds a run already; go on with it (--resume), replace")

    assert train("--steps", "3", "--out", "run", "--force").code == 0
    assert progress("run")["step"] == 3 and files("run").keys() == FILES
    assert records("run", "train")[-1]["step"] == 3


def test_force_deletes_nothing_before_the_new_run_can_begin(
    command: Command, train: Command
) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    before = files("run")
    assert command("train", "nowhere.tsv", "--out", "run", "--force").code == 2
    assert train("--set", "training.lr=fast", "--out", "run", "--force").code == 2
    assert files("run") == before


@pytest.mark.parametrize("names", [["thesis.tex"], ["config.yaml"], ["config.yaml", "run.py"]])
def test_force_deletes_no_folder_that_is_not_a_run(train: Command, names: list[str]) -> None:
    Path("mine").mkdir()
    for name in names:
        Path("mine", name).write_text("precious")
    said = train("--steps", "1", "--out", "mine", "--force")
    assert said.code == 2 and "not empty and not a run folder" in said.err
    assert files("mine").keys() == set(names)


def test_force_deletes_nothing_that_training_did_not_write(train: Command) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    Path("run/notes.txt").write_text("precious")
    before = files("run")
    said = train("--steps", "3", "--out", "run", "--force")
    assert said.code == 2 and "--force would delete notes.txt" in said.err
    assert files("run") == before


def test_an_empty_folder_can_be_used(train: Command) -> None:
    Path("run").mkdir()
    assert train("--steps", "1", "--out", "run").code == 0
