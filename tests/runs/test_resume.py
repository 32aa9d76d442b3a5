"""Runs that are stopped, killed and taken up again."""

import json
import math
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import FILES, files, progress, records, written
from forks import Forks, forks_of_command
from holding import held_at, wait_until_held

import regard
from regard.data.sources.open import DataSpec
from regard.storage.output_folder import run_lock
from regard.training import session
from regard.training.display import PlainDisplay
from regard.training.train_folder import TrainArgs, choose_folder

Command = Callable[..., Any]
LAST = "checkpoint/model.safetensors"
STEPS = ("--steps", "100", "--set", "training.validate_every=40")


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


def train_args() -> TrainArgs:
    place = DataSpec("words.tsv")
    return TrainArgs(place, DataSpec(), None, [], None, False, False)


def same_weights(one: Path, other: Path) -> bool:
    return all(
        (one / name).read_bytes() == (other / name).read_bytes()
        for name in ("model.safetensors", LAST)
    )


def held_at_12(*words: str | Path) -> Forks:
    """A process that trains, and stands still at step 12."""
    process = forks_of_command(*words, **held_at("step", 12, Path("mark")))
    wait_until_held(Path("mark"), process)
    return process


def test_ctrl_c_saves_and_says_how_to_resume(
    command: Command, tiny: list[str], whole: Path
) -> None:
    process = held_at_12("train", "words.tsv", *tiny, *STEPS, "--out", "my run")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.poll() == 130 and out == "" and "Traceback" not in err
    (said,) = re.findall(r"interrupted at step (\d+); checkpoint saved in my run\n(.*)\n", err)
    assert said[0] == "12" and progress("my run")["step"] == 12

    assert command("predict", "my run", "abc").code == 0  # it can be used as it is
    assert ">not finished<" in Path("my run/report.html").read_text()
    _, *words = shlex.split(said[1].removeprefix("help: resume with "))
    resumed = command(*words)
    assert resumed.code == 0 and "resumed at step 12" in resumed.err
    assert progress("my run")["step"] == 100 and same_weights(Path("my run"), whole)
    assert written("my run") == written(whole)
    assert files("my run").keys() == FILES


def test_a_killed_run_resumes_from_its_checkpoint(
    command: Command, tiny: list[str], whole: Path
) -> None:
    often = ("--set", "training.checkpoint_every=5")
    process = held_at_12("train", "words.tsv", *tiny, *STEPS, *often, "--out", "run")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert progress("run")["step"] == 10
    assert command("train", "--resume", "--out", "run").code == 0
    assert progress("run")["step"] == 100 and same_weights(Path("run"), whole)


def test_what_came_after_the_checkpoint_is_logged_once(
    command: Command, train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = ("--steps", "30", "--set", "training.validate_every=10")
    assert train(*every, "--out", "whole").code == 0

    class Killed(BaseException):
        pass

    def die(display: PlainDisplay, run: Any, record: Any, speed: float) -> None:
        if record.step == 29:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(PlainDisplay, "step", die)
        train(*every, "--out", "run")
    assert [record["step"] for record in records("run", "train")] == [10, 20]
    with open("run/metrics.jsonl", "a") as file:
        file.write('{"kind": "train", "st')  # cut off in the middle of a line
    assert command("train", "--resume", "--out", "run").code == 0
    assert written("run") == written("whole")
    assert Path("run/samples.jsonl").read_text() == Path("whole/samples.jsonl").read_text()


@pytest.fixture
def interrupted(train: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of 30 steps that Ctrl-C ended after step 12."""
    with monkeypatch.context() as patch:
        patch.setattr(PlainDisplay, "step", interrupt_at_12)
        assert train("--steps", "30", "--out", "run").code == 130
    assert progress("run")["step"] == 12
    return Path("run")


def interrupt_at_12(display: PlainDisplay, run: Any, record: Any, speed: float) -> None:
    if record.step == 12:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--steps", "40"], "training.steps is 30 in run, got 40"),
        (["--seed", "7"], "training.seed is 1 in run, got 7"),
        (["--budget", "1m"], "training.budget is None in run, got 60.0"),
        (["--set", "model.encoder.layers=4"], "model.encoder.layers is "),
        (["--set", "training.lr=0.1"], "training.lr is 0.02 in run, got 0.1"),
        (["--recipe", "recipe.yaml"], "search.beam is 5 in run, got 2"),
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
    assert said.code == 2 and "training.seed is 5 in run, got 1" in said.err


def test_resume_with_the_same_settings_and_data(train: Command, interrupted: Path) -> None:
    said = train("--steps", "30", "--out", "run", "--resume")
    assert said.code == 0 and "resumed at step 12" in said.err and progress("run")["step"] == 30
    before = files("run")
    again = train("--steps", "30", "--out", "run", "--resume")
    assert again == (0, "", "run: already finished (30 steps)\n")
    assert files("run") == before


def test_resume_begins_where_there_is_no_run_yet(train: Command, command: Command) -> None:
    """So that one command, given again and again, starts a run and continues with it."""
    said = train("--steps", "2", "--out", "run", "--resume")
    assert said.code == 0 and said.err.startswith("run: no run to resume; starting a new one\n")
    assert progress("run")["step"] == 2
    said = command("train", "--resume", "--out", "nowhere")
    assert said.code == 2 and said.err.startswith("error: --resume: no run in nowhere")
    shutil.copytree("run", "half")
    os.remove("half/run.json")  # killed while an older run was deleted, or before it was described
    Path("half/.check.json.7.new").write_text("{")
    for how in ("--resume", "--force"):
        shutil.copytree("half", f"half{how}")
        assert train("--steps", "2", "--out", f"half{how}", how).code == 0
        assert same_weights(Path(f"half{how}"), Path("run"))
        assert written(f"half{how}") == written("run") and files(f"half{how}").keys() == FILES


@pytest.mark.parametrize("how", ["--resume", "--force"])
def test_a_folder_of_the_user_is_not_taken_for_a_run(train: Command, how: str) -> None:
    Path("mine").mkdir()
    Path("mine/config.yaml").write_text("precious")
    said = train("--steps", "2", "--out", "mine", how)
    assert said.code == 2 and "not empty and not a run folder" in said.err
    assert Path("mine/config.yaml").read_text() == "precious"


def test_only_one_process_trains_in_a_folder(train: Command, interrupted: Path) -> None:
    with run_lock(interrupted):
        before = files("run")
        for how in ("--resume", "--force"):
            said = train("--steps", "30", "--out", "run", how)
            assert said.code == 2 and "run: locked by another training process" in said.err
        assert files("run") == before


def test_runs_begun_at_the_same_time_have_folders_of_their_own(train: Command) -> None:
    one, other = (choose_folder(train_args(), False)[0] for _ in range(2))
    assert (one, other) == (Path("runs/words-1"), Path("runs/words-2"))
    assert train("--set", "training.lr=fast").code == 2
    assert not Path("runs/words-3").exists()  # nothing was put into it


def test_resume_finds_the_newest_run_of_the_data(train: Command, command: Command) -> None:
    for _ in range(2):
        assert train("--steps", "2").code == 0
    shutil.copytree("runs/words-1", "runs/words-old-1")
    said = command("train", "words.tsv", "--resume")
    assert said.err == "runs/words-2: already finished (2 steps)\n"


def test_resume_with_other_data_is_an_error(command: Command, interrupted: Path) -> None:
    with open("words.tsv", "a") as file:
        file.write("new\twen\n")
    before = files("run")
    said = command("train", "--resume", "--out", "run")
    assert said.code == 2 and "the training data changed since this run started" in said.err
    assert files("run") == before


def test_resume_of_a_run_from_python_asks_for_the_data(command: Command) -> None:
    pairs = [("ab", "ba"), ("cd", "dc"), ("ef", "fe")]
    regard.Transducer(steps=1, out="run").fit(pairs)
    said = command("train", "--resume", "--out", "run")
    assert said.code == 2 and said.err.startswith("error: no data")


def test_a_run_killed_before_its_first_checkpoint_starts_over(
    command: Command, train: Command
) -> None:
    assert train("--steps", "4", "--out", "run").code == 0
    weights = (Path("run") / LAST).read_bytes()
    shutil.rmtree("run/checkpoint")
    assert command("train", "--resume", "--out", "run").code == 0
    assert (Path("run") / LAST).read_bytes() == weights


def test_ctrl_c_in_the_last_validation_is_heard(
    command: Command, train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train("--steps", "4", "--out", "whole").code == 0
    validate = session.validate

    def impatient(*given: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return validate(*given)

    with monkeypatch.context() as patch:
        patch.setattr(session, "validate", impatient)
        said = train("--steps", "4", "--set", "training.validate_every=9", "--out", "run")
    assert said.code == 130 and "interrupted at step 4; checkpoint saved" in said.err
    assert not Path("run/scores.json").exists()
    assert command("train", "--resume", "--out", "run").code == 0
    assert Path("run/scores.json").exists() and same_weights(Path("run"), Path("whole"))


def test_a_run_killed_while_it_was_scored_is_scored(command: Command, train: Command) -> None:
    assert train("--steps", "4", "--out", "run").code == 0
    scores = Path("run/scores.json").read_bytes()
    os.remove("run/scores.json")
    assert command("train", "--resume", "--out", "run").code == 0
    wanted, got = json.loads(scores), json.loads(Path("run/scores.json").read_bytes())
    assert got["scores"] == wanted["scores"] and math.isfinite(got["scores"]["perplexity"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", '{"format": 4}', "data"),
        ("run.json", '{"format": 1, "version": "0.0.9"}', "created by regard 0.0.9: expected"),
        ("checkpoint/state.json", '{"stepp": 3}', "state.json: checksum mismatch"),
        ("checkpoint/checksums.json", "[1", "checksums.json: cannot read"),
    ],
)
def test_a_corrupted_run_is_not_resumed(
    train: Command, interrupted: Path, name: str, content: str, message: str
) -> None:
    (interrupted / name).write_text(content)
    shutil.rmtree(interrupted / "checkpoint.prev")
    said = train("--resume", "--out", interrupted)
    assert said.code == 2 and "Traceback" not in said.err
    assert "\nerror: " in f"\n{said.err}" and message in said.err


def test_a_line_of_the_log_that_cannot_be_read_is_dropped(
    train: Command, interrupted: Path
) -> None:
    path = interrupted / "metrics.jsonl"
    path.write_text('{"kind": "tra\n' + path.read_text("utf-8"))
    assert train("--resume", "--out", interrupted).code == 0
    assert all(json.loads(line) for line in path.read_text("utf-8").splitlines())
