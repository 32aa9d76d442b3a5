"""The end of a run: which model is kept, and which search it is used with."""

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from folders import progress, records

from regard.core.errors import UserError
from regard.metrics.metric_names import best_of
from regard.storage.run_files import read_config
from regard.training import search_tuning, validation
from regard.views.report import html_parts

Command = Callable[..., Any]
LINE = "auto: search.length_penalty="


# The search


@pytest.fixture
def dev(words: list[str]) -> tuple[str, ...]:
    """A dev set that is large enough to tune on."""
    Path("dev.tsv").write_text("".join(f"{word}\t{word[::-1]}\n" for word in words[120:180]))
    return ("--dev", "dev.tsv", "--steps", "15", "--out", "run")


@pytest.fixture
def any_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best other length penalty is always taken."""
    monkeypatch.setattr(search_tuning, "MIN_GAIN_RERANKED", -1e9)
    monkeypatch.setattr(search_tuning, "MIN_GAIN_EXAMPLES", -1e9)
    monkeypatch.setattr(search_tuning, "standard_error", lambda *_: 1.0)


def search() -> dict[str, Any]:
    return yaml.safe_load(Path("run/config.yaml").read_text())["search"]


def settings() -> dict[str, Any]:
    return json.loads(Path("run/settings.json").read_text())


def tuned() -> list[dict[str, Any]]:
    return [
        one for one in settings()["auto"] if one["key"] in ("search.length_penalty", "search.beam")
    ]


def final_scores() -> dict[str, float]:
    return json.loads(Path("run/scores.json").read_text())["scores"]


def test_without_a_clear_gain_the_search_stays(train: Command, dev: tuple[str, ...]) -> None:
    said = train(*dev)
    assert said.code == 0 and LINE not in said.err and "auto: search.beam" not in said.err
    assert (search()["beam"], search()["length_penalty"]) == (5, 0.75)
    assert not tuned() and "search.length_penalty" not in settings()["changed"]


@pytest.mark.usefixtures("any_gain")
def test_a_clear_gain_is_the_default_of_the_run(
    command: Command, train: Command, dev: tuple[str, ...]
) -> None:
    said = train(*dev)
    assert said.code == 0 and said.err.count(LINE) == 1, said.err
    penalty = search()["length_penalty"]
    assert penalty != 0.75 and f"{LINE}{penalty} (dev " in said.err
    assert "with the default 0.75; 60 examples)" in said.err
    (entry,) = tuned()
    assert (entry["value"], entry["default"]) == (penalty, 0.75)
    assert settings()["changed"]["search.length_penalty"] == [0.75, penalty]
    assert entry["reason"] in Path("run/report.html").read_text()
    evaluated = json.loads(command("evaluate", "run", "dev.tsv", "--json").out)["metrics"]
    assert evaluated == pytest.approx(final_scores(), abs=1e-3)


@pytest.mark.usefixtures("any_gain")
@pytest.mark.parametrize("penalty", [0.75, 0.6])
def test_what_the_user_sets_stays(train: Command, dev: tuple[str, ...], penalty: float) -> None:
    said = train(*dev, "--set", f"search.length_penalty={penalty}")
    assert said.code == 0 and LINE not in said.err
    assert search()["length_penalty"] == penalty and not tuned()


@pytest.mark.usefixtures("any_gain")
def test_what_a_recipe_sets_stays(train: Command, dev: tuple[str, ...]) -> None:
    Path("recipe.yaml").write_text("search: {length_penalty: 0.75}")
    assert train(*dev, "--recipe", "recipe.yaml").code == 0
    assert search()["length_penalty"] == 0.75 and not tuned()


@pytest.mark.usefixtures("any_gain")
def test_few_examples_tune_nothing(train: Command) -> None:
    said = train("--steps", "5", "--out", "run")
    assert said.code == 0 and LINE not in said.err and not tuned()


def test_greedy_search_if_it_is_clearly_better(
    train: Command, dev: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_tuning, "MIN_GAIN_SEARCHED", -1e9)
    monkeypatch.setattr(search_tuning, "MIN_GAIN_RERANKED", 1e9)
    monkeypatch.setattr(search_tuning, "MIN_GAIN_EXAMPLES", -1e9)
    monkeypatch.setattr(search_tuning, "standard_error", lambda *_: 1.0)
    said = train(*dev)
    assert said.code == 0 and "auto: search.beam=1 (dev " in said.err
    assert (search()["beam"], search()["length_penalty"]) == (1, 0.75)
    assert train(*dev, "--force", "--set", "search.beam=5").code == 0
    assert search()["beam"] == 5 and not tuned()


@pytest.mark.parametrize("again", ["clear", "unclear"])
def test_a_run_killed_while_it_is_tuned_is_tuned_again(
    train: Command, dev: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """It was killed after the configuration was written: the default is what others must beat."""
    before = {}
    with monkeypatch.context() as patch:
        patch.setattr(search_tuning, "MIN_GAIN_RERANKED", -1e9)
        patch.setattr(search_tuning, "MIN_GAIN_EXAMPLES", -1e9)
        patch.setattr(search_tuning, "standard_error", lambda *_: 1.0)
        assert train(*dev).code == 0
        before = {"search": search(), "settings": settings(), "scores": final_scores()}
        write = validation.write_json

        def killed(path: Path, value: Any) -> None:
            if path.name == "scores.json":
                raise KeyboardInterrupt
            write(path, value)

        patch.setattr(validation, "write_json", killed)
        assert train(*dev, "--force").code == 130
        assert search() == before["search"] and not Path("run/scores.json").exists()
        patch.setattr(validation, "write_json", write)
        if again == "clear":
            said = train("--resume", "--out", "run", "--dev", "dev.tsv")
            assert said.code == 0 and "with the default 0.75;" in said.err, said.err
            assert before == {
                "search": search(),
                "settings": settings(),
                "scores": final_scores(),
            }
    if again == "unclear":
        said = train("--resume", "--out", "run", "--dev", "dev.tsv")
        assert said.code == 0 and LINE not in said.err
        assert search()["length_penalty"] == 0.75 and not tuned()
        assert "search.length_penalty" not in settings()["changed"]
    assert len(records("run", "final")) == 1


@pytest.mark.usefixtures("any_gain")
def test_a_run_that_is_finished_stays_as_it_is(train: Command, dev: tuple[str, ...]) -> None:
    assert train(*dev).code == 0
    before = Path("run/config.yaml").read_bytes(), settings()
    assert train("--resume", "--out", "run", "--dev", "dev.tsv").code == 0
    assert (Path("run/config.yaml").read_bytes(), settings()) == before


@pytest.mark.usefixtures("any_gain")
def test_a_model_started_from_a_tuned_one_is_tuned_by_itself(
    train: Command, dev: tuple[str, ...]
) -> None:
    assert train(*dev).code == 0
    said = train("--dev", "dev.tsv", "--steps", "5", "--out", "next", "--init-from", "run")
    assert said.code == 0 and "with the default 0.75;" in said.err
    assert read_config(Path("next")).search.length_penalty != 0.75


# The model


@pytest.fixture
def scored(train: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A run of six steps whose validations, after two steps each, have these scores."""

    def run(metric: str, *scores: float) -> Any:
        evaluate, left = validation.evaluate, [*scores]

        def pretend(*given: Any) -> Any:
            result = evaluate(*given)
            score = left.pop(0) if left else scores[-1]
            return replace(result, scores=result.scores | {metric: score})

        monkeypatch.setattr(validation, "evaluate", pretend)
        every = ("--set", "training.validate_every=2", "--set", f"task.metric={metric}")
        said = train("--steps", "6", *every, "--out", "run", "--dev", "words.tsv")
        assert said.code == 0, said.err
        return said

    return run


@pytest.mark.parametrize(
    ("metric", "scores", "step", "best", "mark"),
    [
        # Half a standard error of 50 % of 120 examples is 2.28.
        ("exact_match", (50.0, 49.0, 47.8), 6, 47.8, "final model, within half a"),
        ("exact_match", (50.0, 49.0, 47.6), 2, 50.0, ""),
        ("exact_match", (40.0, 50.0, 50.0), 6, 50.0, "best so far"),
        ("ser", (52.0, 50.0, 52.2), 6, 52.2, "final model, within half a"),
        ("ser", (52.0, 50.0, 52.4), 4, 50.0, ""),
        ("perplexity", (50.0, 49.0, 49.01), 4, 49.0, ""),
    ],
)
def test_the_last_model_is_kept_unless_an_earlier_one_is_clearly_better(
    scored: Command, metric: str, scores: tuple[float, ...], step: int, best: float, mark: str
) -> None:
    said = scored(metric, *scores)
    state = progress("run")
    assert (state["best_step"], state["best_score"]) == (step, best)
    assert state["validations_without_gain"] == 3 - best_of(metric)(
        (1, 2), key=lambda number: scores[number - 1]
    )  # an equal or tolerated score is no gain
    lines = [line for line in said.err.splitlines() if line.startswith("step 6: dev")]
    assert len(lines) == 1 and (f"({mark}" in lines[0] if mark else "(" not in lines[0])
    weights = [Path("run") / name for name in ("model.safetensors", "checkpoint/model.safetensors")]
    assert (weights[0].read_bytes() == weights[1].read_bytes()) == (step == 6)
    (final,) = records("run", "final")
    assert final["step"] == step


# The report


def test_a_report_that_cannot_be_written_does_not_end_the_run(
    train: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk: the run is finished all the same."""

    def full(path: Path, content: bytes) -> None:
        raise UserError(f"{path}: cannot write: {os.strerror(errno.ENOSPC)}")

    monkeypatch.setattr(html_parts, "write_bytes", full)
    said = train("--steps", "4", "--out", "run")
    assert said.code == 0, said.err
    assert "warning: no report: run/report.html: cannot write: No space left" in said.err
    assert "help: write it later: regard report run" in said.err
    assert "report: run/report.html\n" not in said.err.replace("no report: ", "")
    assert json.loads(Path("run/run.json").read_text()) and final_scores()
