"""Partial output: an interrupted command resumes after the last complete prediction."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.exchange import auto_engine
from regard.inference.prediction import partial_file, windows
from regard.inference.prediction.prediction_warnings import PredictionWarnings
from regard.inference.predictor import Predictor

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(windows, "MIN_ITEMS", 8)
    monkeypatch.setattr(windows, "MAX_ITEMS", 32)


def lines(texts: list[str]) -> str:
    return "".join(f"{text}\n" for text in texts)


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def stopped(command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run a command that is killed after this many windows."""

    def stop(after: int, *words: str | Path) -> None:
        written = partial_file.PartialOutput.write
        count = 0

        def write(self: Any, window: Any, lines: Any) -> None:
            nonlocal count
            if count == after:  # killed while it writes: half a window, not recorded
                self.file.write(b"half of a predi")
                self.file.flush()
                raise Killed
            count += 1
            written(self, window, lines)

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(partial_file.PartialOutput, "write", write)
            command(*words)

    return stop


FORMATS = {
    "plain": ("transduce", ()),
    "nbest": ("transduce", ("--nbest", "3")),
    "json": ("transduce", ("--json", "--nbest", "2")),
    "labels": ("classify", ("--nbest", "2")),
    "written": ("language-model", ("--max-length", "5", "--nbest", "2")),
}


@pytest.mark.parametrize("name", FORMATS)
def test_an_interrupted_command_resumes_to_the_same_bytes(
    command: Command, models: Any, stopped: Any, words: list[str], name: str
) -> None:
    task, options = FORMATS[name]
    Path("in.txt").write_text(lines(words))
    args = ("predict", models(task).run, "--input", "in.txt", *options)
    assert command(*args, "--output", "whole").code == 0
    stopped(3, *args, "--output", "out")
    assert sorted(os.listdir()) == ["in.txt", "out.part", "out.part.json", "whole"]
    assert Path("out.part").read_bytes().endswith(b"half of a predi")
    said = command(*args, "--output", "out")
    assert said.code == 0 and "sources already done" in said.err
    assert Path("out").read_bytes() == Path("whole").read_bytes()
    assert sorted(os.listdir()) == ["in.txt", "out", "whole"]


def test_auto_resumes_with_the_engine_that_it_chose(
    command: Command, trained: Any, stopped: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_engine, "load_record", lambda folder: None)
    monkeypatch.setattr(auto_engine, "save_record", lambda folder, record: None)

    def choose(auto: auto_engine.AutoEngine, trial: Any) -> Any:
        chosen = auto_engine.EngineChoice("torch", "int8")
        return auto._open(chosen), chosen, "as measured"

    Path("in.txt").write_text(lines(words))
    args = ("predict", trained.run, "--input", "in.txt", "--engine", "auto")
    monkeypatch.setattr(auto_engine, "MIN_SOURCES", 8)
    with monkeypatch.context() as patch:
        patch.setattr(auto_engine.AutoEngine, "_fastest", choose)
        stopped(3, *args, "--output", "out")
        assert command(*args, "--output", "whole").code == 0
    assert json.loads(Path("out.part.json").read_text())["engine"] == ["torch", "int8"]
    monkeypatch.setattr(auto_engine.AutoEngine, "_fastest", None)  # not to be measured again
    said = command(*args, "--output", "out")
    assert said.code == 0 and "engine auto: using torch int8, as before" in said.err
    assert Path("out").read_bytes() == Path("whole").read_bytes()


def test_sentences_in_their_own_format_resume(command: Command, models: Any, stopped: Any) -> None:
    trained = models("tag")
    Path("in.conll").write_text(trained.train.read_text())
    args = ("predict", trained.run, "--input", "in.conll")
    assert command(*args, "--output", "whole").code == 0
    stopped(2, *args, "--output", "out")
    assert "already done" in command(*args, "--output", "out").err
    assert Path("out").read_bytes() == Path("whole").read_bytes()


def test_only_the_remaining_sources_are_predicted(
    command: Command, trained: Any, stopped: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("predict", trained.run, "--input", "in.txt", "--output", "out")
    Path("in.txt").write_text(lines(words[:100]))
    stopped(2, *args)
    record = json.loads(Path("out.part.json").read_text())
    predicted: list[str] = []
    predict = Predictor.predict

    def seen(self: Predictor, sources: list[str], *rest: Any, **more: Any) -> Any:
        predicted.extend(sources)
        return predict(self, sources, *rest, **more)

    monkeypatch.setattr(Predictor, "predict", seen)
    assert command(*args).code == 0
    assert 0 < record["done"] < 100 and predicted == words[record["done"] : 100]


def test_standard_input_resumes_too(
    command: Command, trained: Any, stopped: Any, words: list[str]
) -> None:
    expected = lines(regard.load(trained.run).predict(words[:60]))
    Path("in.txt").write_text(lines(words[:60]))
    stopped(2, "predict", trained.run, "--input", "in.txt", "--output", "out")
    said = command("predict", trained.run, "--output", "out", stdin=lines(words[:60]))
    assert "already done" in said.err and Path("out").read_text() == expected


def test_warnings_before_the_interruption_are_printed_at_the_end(
    command: Command, trained: Any, stopped: Any, words: list[str]
) -> None:
    Path("in.txt").write_text(lines(["a!", *words[:60], "b!?"]))
    args = ("predict", trained.run, "--input", "in.txt", "--output", "out")
    stopped(2, *args)
    assert "warning: 3 unknown tokens in the input (read as <unk>): '!' '?'" in command(*args).err


@pytest.fixture
def interrupted(trained: Any, stopped: Any, words: list[str]) -> tuple[str | Path, ...]:
    """An interrupted command."""
    Path("in.txt").write_text(lines(words[:100]))
    args = ("predict", trained.run, "--input", "in.txt", "--output", "out")
    stopped(2, *args)
    return args


def test_a_different_command_is_an_error_that_lists_the_differences(
    command: Command, models: Any, interrupted: Any
) -> None:
    before = Path("out.part").read_bytes()
    said = command(*interrupted, "--beam", "3", "--nbest", "2")
    assert said.code == 2
    assert "out.part: partial output of a different command:" in said.err
    assert "search.beam: 5 before, 3 now" in said.err and "nbest: 1 before, 2 now" in said.err
    assert "--force" in said.err and "model" not in said.err
    other = command("predict", models("transduce").run, *interrupted[2:])
    assert other.code == 2 and "  model: " in other.err and "search" not in other.err
    assert "shard: '1/1' before, '1/2' now" in command(*interrupted, "--shard", "1/2").err
    assert Path("out.part").read_bytes() == before


def test_the_size_of_batches_may_change(
    command: Command, trained: Any, interrupted: Any, words: list[str]
) -> None:
    said = command(*interrupted, "--batch-size", "3", "--batch-tokens", "40")
    assert said.code == 0 and "already done" in said.err
    assert Path("out").read_text() == lines(regard.load(trained.run).predict(words[:100]))


def test_a_different_input_is_an_error(
    command: Command, interrupted: Any, words: list[str]
) -> None:
    for changed in (words[1:100], words[:5]):
        Path("in.txt").write_text(lines(changed))
        said = command(*interrupted)
        assert said.code == 2 and "out.part" in said.err and "--force" in said.err
    assert "in.txt has only 5" in said.err and not Path("out").exists()


def test_appended_lines_are_predicted(
    command: Command, trained: Any, interrupted: Any, words: list[str]
) -> None:
    Path("in.txt").write_text(lines(words[:130]))
    assert command(*interrupted).code == 0
    assert Path("out").read_text() == lines(regard.load(trained.run).predict(words[:130]))


def test_force_starts_over(
    command: Command, trained: Any, interrupted: Any, words: list[str]
) -> None:
    Path("in.txt").write_text(lines(words[50:80]))
    said = command(*interrupted, "--force")
    assert said == (0, "", "")
    assert Path("out").read_text() == lines(regard.load(trained.run).predict(words[50:80]))
    assert not list(Path().glob("out.*"))


def test_a_corrupted_part_or_record_is_an_error(command: Command, interrupted: Any) -> None:
    complete = Path("out.part").read_bytes()
    Path("out.part").write_bytes(complete[:20])
    said = command(*interrupted)
    assert said.code == 2 and "bytes, found 20" in said.err and "--force" in said.err
    Path("out.part").write_bytes(complete)
    Path("out.part.json").write_text("{")
    assert "out.part.json: corrupted" in command(*interrupted).err


def test_a_part_without_a_record_is_not_resumed(
    command: Command, trained: Any, interrupted: Any, words: list[str]
) -> None:
    Path("out.part.json").unlink()
    before = Path("out.part").read_bytes()
    said = command(*interrupted)
    assert said.code == 2 and "out.part: exists without a progress record" in said.err
    assert Path("out.part").read_bytes() == before
    assert command(*interrupted, "--force").code == 0
    assert Path("out").read_text() == lines(regard.load(trained.run).predict(words[:100]))


def test_one_command_at_a_time_writes_a_file(command: Command, trained: Any) -> None:
    child = os.fork()
    if not child:
        _kept = partial_file.PartialOutput(Path("out"), {}, PredictionWarnings(), force=False)
        Path("held").touch()
        signal.pause()
    try:
        while not Path("held").exists():
            time.sleep(0.01)
        said = command("predict", trained.run, "ab", "--output", "out")
        assert said.code == 2 and "out.part: locked by another process" in said.err
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    said = command("predict", trained.run, "ab", "--output", "out", "--force")
    assert said.code == 0  # the lock is released


def test_an_interrupted_command_that_overwrites_resumes_without_force(
    command: Command, trained: Any, stopped: Any, words: list[str]
) -> None:
    Path("in.txt").write_text(lines(words))
    Path("out").write_text("old")
    args = ("predict", trained.run, "--input", "in.txt", "--output", "out")
    stopped(2, *args, "--force")
    assert Path("out").read_text() == "old"
    said = command(*args)
    assert said.code == 0 and "sources already done" in said.err
    assert Path("out").read_text() == lines(regard.load(trained.run).predict(words))
