"""Event files for TensorBoard hold what the logs hold, each point once."""

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import files, records
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import regard
from regard.core.errors import UserError
from regard.training.display import PlainDisplay
from regard.training.tensorboard import Tail, TensorBoard, curves, table

Command = Callable[..., Any]
WANTED = ("--set", "training.tensorboard=true", "--set", "training.validate_every=15")


def events(run: str | Path) -> EventAccumulator:
    """Everything in a run's event files, as TensorBoard reads it."""
    everything = {"scalars": 0, "tensors": 0}
    found = EventAccumulator(str(Path(run) / "tensorboard"), size_guidance=everything)
    found.Reload()
    return found


def points(run: str | Path) -> dict[str, list[tuple[int, float]]]:
    found = events(run)
    names = found.Tags()["scalars"]
    return {name: [(p.step, p.value) for p in found.Scalars(name)] for name in names}


def logged(run: str | Path) -> dict[str, list[tuple[int, float]]]:
    """The points that metrics.jsonl asks for."""
    wanted: dict[str, list[tuple[int, float]]] = {}
    for kind in ("train", "dev", "final"):
        for line in records(run, kind):
            names = (
                "loss",
                "nll",
                "lr",
                "grad_norm",
                "grad_noise_scale",
                "padding_fraction",
                "tokens_per_second",
            )
            values = {f"{kind}/{name}": line.get(name) for name in names}
            values |= {f"{kind}/{name}": value for name, value in line.get("scores", {}).items()}
            values |= {
                f"grad_norm/{part}": value for part, value in line.get("grad_norms", {}).items()
            }
            for name, value in values.items():
                if value is not None:
                    wanted.setdefault(name, []).append((line["step"], value))
    return wanted


def texts(run: str | Path, name: str) -> dict[int, str]:
    found = events(run).Tensors(f"{name}/text_summary")
    return {event.step: event.tensor_proto.string_val[0].decode() for event in found}


def assert_same(run: str | Path) -> None:
    got, wanted = points(run), logged(run)
    assert got.keys() == wanted.keys()
    for name in wanted:
        assert [step for step, _ in got[name]] == [step for step, _ in wanted[name]], name
        values = [value for _, value in wanted[name]]
        assert [value for _, value in got[name]] == pytest.approx(values, rel=1e-6), name


def test_the_points_are_those_of_the_log(train: Command) -> None:
    said = train("--steps", "25", *WANTED, "--out", "run")
    assert said.code == 0, said.err
    assert_same("run")
    assert [step for step, _ in points("run")["train/loss"]] == [10, 15, 20, 25]
    wanted = {
        "dev/exact_match",
        "dev/perplexity",
        "dev/loss",
        "final/exact_match",
        "train/lr",
        "train/grad_norm",
    }
    assert wanted <= points("run").keys()
    assert any(name.startswith("grad_norm/") for name in points("run"))
    samples = [json.loads(line) for line in Path("run/samples.jsonl").read_text().splitlines()]
    shown = texts("run", "samples")
    assert shown.keys() == {sample["step"] for sample in samples}
    assert all(f"| {s['source']} | {s['prediction']} |" in shown[s["step"]] for s in samples)
    assert Path("run/config.yaml").read_text() in texts("run", "settings")[0]


def test_times_are_those_of_training(train: Command) -> None:
    assert train("--steps", "20", *WANTED, "--out", "run").code == 0
    times = [point.wall_time for point in events("run").Scalars("train/loss")]
    seconds = [line["elapsed_seconds"] for line in records("run", "train")]
    assert times[1] - times[0] == pytest.approx(seconds[1] - seconds[0], abs=1e-5)


def test_without_the_setting_nothing_is_written(train: Command) -> None:
    assert train("--steps", "2", "--out", "run").code == 0
    assert not Path("run/tensorboard").exists()


class Killed(BaseException):
    pass


def die_at_25(display: PlainDisplay, run: Any, record: Any, speed: float) -> None:
    if record.step == 25:  # after a checkpoint of step 15 and a line of the log of step 20
        raise Killed


def test_a_resumed_run_has_each_point_once(
    command: Command, train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(PlainDisplay, "step", die_at_25)
        train("--steps", "30", *WANTED, "--out", "run")
    assert [step for step, _ in points("run")["train/loss"]] == [10, 15, 20]
    assert command("train", "--resume", "--out", "run").code == 0
    assert [step for step, _ in points("run")["train/loss"]] == [10, 15, 20, 30]
    assert_same("run")
    assert list(texts("run", "samples")) == [15, 30]


def test_one_who_looks_on_forgets_what_is_done_again(
    command: Command, train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(PlainDisplay, "step", die_at_25)
        train("--steps", "30", *WANTED, "--out", "run")
    looking = events("run")
    assert command("train", "--resume", "--out", "run").code == 0
    looking.Reload()
    assert [point.step for point in looking.Scalars("train/loss")] == [10, 15, 20, 30]


def stop_at_20(display: PlainDisplay, run: Any, record: Any, speed: float) -> None:
    if record.step == 20:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupted_run_is_written_to_its_last_line(
    train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainDisplay, "step", stop_at_20)
    assert train("--steps", "40", *WANTED, "--out", "run").code == 130
    assert [step for step, _ in points("run")["train/loss"]] == [10, 15, 20]
    assert_same("run")


def test_force_replaces_the_event_files_too(train: Command) -> None:
    for _ in range(2):
        assert train("--steps", "10", *WANTED, "--out", "run", "--force").code == 0
    assert_same("run")
    assert len(list(Path("run/tensorboard").iterdir())) == 1


def test_without_the_package_nothing_begins(
    train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    said = train("--steps", "2", *WANTED, "--out", "run")
    assert said.code == 2 and "pip install 'regard[tensorboard]'" in said.err
    assert not Path("run").exists()
    model = regard.Transducer(steps=1, out="run", settings={"training.tensorboard": True})
    with pytest.raises(UserError, match="pip install"):
        model.fit([("ab", "ba"), ("cd", "dc"), ("ef", "fe")])
    assert not Path("run").exists()


def test_from_python(words: list[str]) -> None:
    settings = {"training.tensorboard": True}
    regard.Transducer(steps=10, out="run", settings=settings).fit([(w, w[::-1]) for w in words])
    assert_same("run")


def test_nothing_is_shown_but_what_can_be_a_curve() -> None:
    line = {
        "kind": "dev",
        "step": 3,
        "elapsed_seconds": 1.0,
        "examples": 7,
        "loss": 2,
        "details": {"a": 1},
    }
    assert list(curves(line | {"scores": {"exact_match": 50.0}})) == [
        ("dev/loss", 2),
        ("dev/exact_match", 50),
    ]


def test_texts_cannot_break_the_table() -> None:
    sample = {"source": "a|b\n<i>", "prediction": ["X", "*"], "references": ["`", "y"]}
    row = table([sample]).splitlines()[-1]
    assert row == "| a&#124;b<br>&#60;i&#62; | X &#42; | &#96; or y |"
    written = [{"kind": "generated", "text": "# one"}, {"kind": "generated", "text": "two"}]
    assert table(written) == "&#35; one\n\n---\n\ntwo"


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "log.jsonl")
    assert list(tail.new()) == []
    tail.path.write_text('{"a": 1}\n{"a":')
    assert list(tail.new()) == [{"a": 1}]
    assert list(tail.new()) == []
    with open(tail.path, "a") as file:
        file.write(" 2}\n")
    assert list(tail.new()) == [{"a": 2}]


def test_closing_before_the_start_is_no_error() -> None:
    TensorBoard().close()


def test_resuming_without_changes_leaves_the_files(train: Command, command: Command) -> None:
    assert train("--steps", "10", *WANTED, "--out", "run").code == 0
    before = files("run")
    assert command("train", "--resume", "--out", "run").code == 0
    assert files("run") == before
