"""Far below what the data allows: verdicts from statistics written by hand, and the rivals."""

from dataclasses import replace
from typing import Any

import pytest

from regard.config.defaults import fill_defaults
from regard.config.load import check_config, load_config
from regard.core.data_stats import DataStats
from regard.experiments.diagnose.ceiling import is_solved, trial_steps
from regard.experiments.diagnose.findings import Finding, ranked
from regard.experiments.diagnose.rival import choose_rival, ngram_options
from regard.experiments.diagnose.verdicts_ceiling import ceiling_verdicts

STATS = DataStats(5000, 150_000, 30, False, inputs=30, target_tokens=75_000, budget=6.0)


def trial(loss: float | None, accuracy: float | None = None, **more: Any) -> dict[str, Any]:
    return {"steps": 300, "lr": 0.003, "loss": loss, "accuracy": accuracy, **more}


def found(settings: dict[str, Any] | None = None, **trials: Any) -> list[Finding]:
    """The findings for a run with a dev loss of 1 and an accuracy of 60 %."""
    ceiling = {"run": trial(1.0, 0.6), "baseline": 3.0, **trials}
    stats = {"curve": {"steps": 200, "epochs": 2.0}, "ceiling": ceiling}
    return ranked(list(ceiling_verdicts(stats, settings or {})))


def names(**trials: Any) -> list[tuple[str, str]]:
    return [(finding.severity, finding.name) for finding in found(**trials)]


def rival(kind: str, *trial_scores: float) -> dict[str, Any]:
    changes = [["model.encoder.kind", "linear", "recurrent"]]
    return trial(*trial_scores, kind=kind, changes=changes)


def test_a_run_that_more_steps_do_not_improve_is_clean() -> None:
    assert names() == []
    assert names(continued=trial(0.99, 0.61)) == []
    assert names(continued=trial(1.2, 0.58)) == []
    assert names(continued=trial(None)) == []


def test_more_steps_that_improve_much_name_a_run_that_stopped_too_early() -> None:
    (finding,) = found(continued=trial(0.7, 0.75))
    assert (finding.severity, finding.name) == ("problem", "stopped-too-early")
    for number in ("300 more steps", "0.70 instead of 1.00", "75% instead of 60%", "200 steps"):
        assert number in finding.evidence
    assert "--steps 1500" in finding.fix
    (finding,) = found({"training.budget": 20.0}, continued=trial(0.7, 0.75))
    assert finding.fix == "train longer: --budget 100s"


def test_a_small_improvement_is_a_warning() -> None:
    assert names(continued=trial(0.92, 0.62)) == [("warning", "stopped-too-early")]


def test_a_lower_loss_with_fewer_correct_predictions_is_no_improvement() -> None:
    assert names(continued=trial(0.7, 0.59)) == []


def test_a_lower_loss_than_a_tiny_one_is_no_finding() -> None:
    ceiling = {"run": trial(0.03, 0.98), "baseline": 3.0, "continued": trial(0.01, 0.99)}
    assert list(ceiling_verdicts({"ceiling": ceiling}, {})) == []


@pytest.mark.parametrize("kind", ["architecture", "settings"])
def test_a_rival_must_beat_the_run_and_its_continuation(kind: str) -> None:
    (finding,) = found(continued=trial(0.99, 0.6), rival=rival(kind, 0.5, 0.8))
    assert (finding.severity, finding.name) == ("problem", f"unsuited-{kind}")
    assert "--set model.encoder.kind=recurrent" in finding.fix and "linear" in finding.fix
    assert "0.50 instead of 1.00" in finding.evidence
    assert names(continued=trial(0.5, 0.8), rival=rival(kind, 0.49, 0.8)) == [
        ("problem", "stopped-too-early")
    ]
    assert names(continued=trial(0.99, 0.6), rival=rival(kind, 1.4, 0.5)) == []


def test_the_trial_with_the_larger_gain_comes_first() -> None:
    both = names(continued=trial(0.7, 0.7), rival=rival("architecture", 0.5, 0.8))
    assert both == [("problem", "unsuited-architecture"), ("problem", "stopped-too-early")]
    less = names(continued=trial(0.85, 0.7), rival=rival("architecture", 0.3, 0.8))
    assert less == [("problem", "unsuited-architecture"), ("warning", "stopped-too-early")]


def test_a_language_model_must_beat_ngrams() -> None:
    flat = trial(1.0, 0.6)
    assert names(continued=flat, ngram=trial(0.8, order=5)) == [("problem", "worse-than-ngram")]
    assert names(continued=flat, ngram=trial(0.98, order=5)) == [("warning", "worse-than-ngram")]
    assert names(continued=flat, ngram=trial(1.1, order=5)) == []


def test_a_solved_dev_set_needs_no_trials() -> None:
    assert is_solved({"run": trial(0.2, 0.995), "baseline": 3.0})
    assert is_solved({"run": trial(0.01), "baseline": 3.0})
    assert is_solved({"run": trial(None), "baseline": 3.0})
    assert not is_solved({"run": trial(0.2, 0.9), "baseline": 3.0})


def filled(*settings: str, stats: DataStats = STATS) -> Any:
    """The configuration of a run with these settings, as `regard train` stores it."""
    return fill_defaults(load_config(settings=list(settings)), stats)[0]


def test_the_rival_of_automatic_settings_is_the_other_kind() -> None:
    config = filled("training.budget=6")
    assert config.model.encoder.kind == "recurrent"
    other = choose_rival(config, STATS)
    assert other is not None and other.kind == "architecture"
    assert other.config.model.encoder.kind == other.config.model.decoder.kind == "transformer"
    assert [key for key, _, _ in other.changes] == ["model.encoder.kind", "model.decoder.kind"]


def test_only_settings_that_differ_are_changes() -> None:
    """Not zeros, which are no larger in the rival."""
    stats = replace(STATS, frames=True, source="sound", labels=True)
    config = filled("task.kind=classify", "training.lr=1e-6", stats=stats)
    assert config.model.frontend.deltas == 0
    other = choose_rival(config, stats)
    assert other is not None and [key for key, _, _ in other.changes] == ["training.lr"]


@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        ("architecture", "model.encoder.kind", "linear"),
        ("architecture", "model.decoder.cell", "rnn"),
        ("settings", "training.lr", "1e-6"),
        ("settings", "model.encoder.dropout", "0.9"),
        ("settings", "model.encoder.width", "4"),
    ],
)
def test_the_rival_of_unusual_settings_has_automatic_ones(
    kind: str, setting: str, value: str
) -> None:
    config = filled("training.budget=6", "model.decoder.width=128", f"{setting}={value}")
    other = choose_rival(config, STATS)
    assert other is not None and other.kind == kind
    assert setting in [key for key, _, _ in other.changes]
    fix = [f"{key}={new}" for key, _, new in other.changes]
    assert check_config(load_config(settings=fix).model_dump(mode="json"), "the fix")


def test_only_models_of_the_next_token_compete_with_ngrams() -> None:
    text = "task.kind=language-model"
    assert ngram_options(load_config(settings=[text])) is not None
    assert ngram_options(load_config(settings=[text, "model.kind=ngram"])) is None
    assert ngram_options(load_config()) is None


def test_larger_models_have_shorter_trials() -> None:
    small, large = (
        filled(f"model.encoder.width={w}", f"model.decoder.width={w}") for w in (32, 1024)
    )
    assert trial_steps(small, STATS) > trial_steps(large, STATS) >= 1
    assert trial_steps(small, replace(STATS, budget=1.0)) == trial_steps(small, STATS)
