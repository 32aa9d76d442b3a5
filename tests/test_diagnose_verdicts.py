"""Verdicts from statistics written by hand: each fault is named, a healthy run has none."""

from typing import Any

from regard.experiments.diagnose.findings import ORDER, Finding, ranked
from regard.experiments.diagnose.verdicts_data import data_verdicts
from regard.experiments.diagnose.verdicts_fit import (
    fit_verdicts,
    generalization_ratio,
    no_better_than_baseline,
)
from regard.experiments.diagnose.verdicts_model import model_verdicts

SETTINGS = {
    "training.lr": 0.003,
    "model.encoder.width": 64,
    "model.decoder.width": 64,
    "model.encoder.dropout": 0.1,
    "model.decoder.dropout": 0.1,
    "task.source.vocab_size": None,
    "task.target.vocab_size": None,
}


def healthy() -> dict[str, Any]:
    """The statistics of a run with nothing wrong."""
    side = {"train": 2.6, "dev": 2.65, "excess": 0.02, "z_score": 1.5, "swapped": 8.0}
    known = {"unknown": 0.0, "length": 7.0}
    return {
        "metadata": {"count_model": False},
        "curve": {"steps": 900, "finished": True, "last": 0.6, "lr": 0.003}
        | {"dev_gain_at_end": 0.005, "spikes": 0, "clipped": 0.1},
        "tokens": {"examples": 6000}
        | {f"{s}_{p}": dict(known) for s in ("source", "target") for p in ("train", "dev")},
        "distribution_shift": {"source": dict(side), "target": dict(side)},
        "dependence": {"train": {"examples": 2000, "z_score": 900.0}},
        "losses": {
            "train": {"loss": 0.5, "baseline": 3.2, "accuracy": 0.9, "baseline_accuracy": 0.1},
            "dev": {"loss": 0.6, "baseline": 3.2, "accuracy": 0.85, "baseline_accuracy": 0.1},
        },
        "source": {
            part: {
                "loss": 0.5,
                "other_source": 3.0,
                "shuffled_tokens": 3.0,
                "shuffled_order": 2.0,
                "output_shift": 1.2,
            }
            for part in ("train", "dev")
        },
        "predictions": {"predictions": 100, "distinct": 99, "distinct_references": 100}
        | {"most_frequent": {"prediction": "x", "fraction": 0.02}},
        "internals": {"attention_entropy": {"a": 0.5}, "dead_units": {"b": 0.1}}
        | {"saturated_gates": {}, "gradients": {"x": 1.0, "y": 0.1}, "frozen": []},
        "trials": {"steps": 100, "trials": {}, "range": {}}
        | {"one_batch": {"before": 3.7, "after": 0.1, "baseline": 3.1, "steps": 60}},
    }


def names(stats: dict[str, Any], settings: dict[str, Any] = SETTINGS) -> list[tuple[str, str]]:
    """Severity and name of all findings, in their order."""
    found = [
        *data_verdicts(stats, settings),
        *fit_verdicts(stats, settings),
        *model_verdicts(stats),
    ]
    return [(finding.severity, finding.name) for finding in ranked(found)]


def test_a_healthy_run_has_no_findings() -> None:
    assert names(healthy()) == []


def test_missing_statistics_give_no_findings() -> None:
    assert names({}) == []
    assert names({"curve": healthy()["curve"]}) == []


def test_a_learning_rate_is_blamed_only_if_another_one_beats_the_full_run() -> None:
    stats = healthy()
    stats["trials"]["trials"] = {
        "lr": {"lr": 0.005, "loss": 1.4},
        "own": {"lr": 0.3, "loss": 4.0},
    }
    assert names(stats) == []
    stats["losses"]["train"]["loss"] = 2.7
    assert names(stats)[0] == ("problem", "learning-rate-too-high")
    stats["trials"]["trials"]["own"]["lr"] = 3e-6
    assert names(stats)[0] == ("problem", "learning-rate-too-low")
    stats["trials"]["trials"]["lr"]["loss"] = 2.5  # less than 10 % better
    assert names(stats) == []


def test_the_most_effective_fix_comes_first() -> None:
    stats = healthy()
    stats["losses"]["train"]["loss"] = stats["losses"]["dev"]["loss"] = 3.1
    stats["trials"]["trials"] = {
        "lr": {"lr": 0.1, "loss": 2.7},
        "width": {"width": 64, "loss": 1.7},
        "own": {"lr": 0.003, "loss": 3.3},
    }
    found = names(stats, SETTINGS | {"model.encoder.width": 4, "model.decoder.width": 4})
    assert found == [("problem", "model-too-small"), ("warning", "learning-rate-too-low")]


def test_a_short_run_gets_too_few_steps() -> None:
    stats = healthy()
    stats["curve"]["steps"] = 40
    stats["losses"]["train"]["loss"] = stats["losses"]["dev"]["loss"] = 3.1
    trials = {"width": {"width": 64, "loss": 0.5}, "own": {"lr": 0.003, "loss": 1.5}}
    stats["trials"]["trials"] = trials
    found = names(stats, SETTINGS | {"model.encoder.width": 32})
    assert {severity for severity, _ in found} == {"warning"}
    assert ("warning", "too-few-steps") in found
    trials["own"]["loss"] = 3.3  # its settings learn nothing in more steps either
    found = names(stats, SETTINGS | {"model.encoder.width": 32})
    assert found == [("problem", "model-too-small")]


def test_a_source_is_ignored_only_if_it_is_informative_and_the_model_learned() -> None:
    stats = healthy()
    for part in ("train", "dev"):
        stats["source"][part] |= {
            "other_source": 0.0,
            "shuffled_tokens": 0.001,
            "output_shift": 0.1,
        }
        stats["losses"][part]["loss"] = 2.5
    assert names(stats) == [("problem", "source-ignored")]
    stats["curve"]["dev_gain_at_end"] = None  # not converged yet
    assert names(stats) == [("warning", "source-ignored")]
    stats["losses"]["train"]["loss"] = 3.15
    assert names(stats) == []
    stats["source"]["train"]["output_shift"] = 0.0
    assert names(stats) == [("problem", "source-ignored")]
    stats["dependence"]["train"]["z_score"] = 0.3
    assert names(stats) == [("problem", "targets-independent-of-sources")]


def test_nonlinear_dependence_is_not_reported() -> None:
    stats = healthy()
    stats["dependence"]["train"]["z_score"] = 0.3  # parity: no token alone says anything
    assert names(stats) == []


def test_labels_that_a_trial_learns_depend_on_the_source() -> None:
    stats = healthy()
    stats["dependence"]["train"]["z_score"] = 0.3  # as in parity, no token alone says anything
    stats["source"]["dev"] |= {"other_source": 0.0, "shuffled_tokens": 0.0}
    stats["ceiling"] = {"baseline": 0.7, "rival": {"loss": 0.2}, "continued": {"loss": None}}
    assert names(stats) == [("problem", "targets-independent-of-sources")]
    stats["metadata"]["labels"] = True
    assert names(stats) == []
    stats["ceiling"]["rival"]["loss"] = 0.69
    assert names(stats) == [("problem", "targets-independent-of-sources")]


def test_swapped_sides_come_before_distribution_shift() -> None:
    stats = healthy()
    for side in ("source", "target"):
        stats["distribution_shift"][side] |= {
            "dev": 8.0,
            "excess": 2.0,
            "z_score": 300.0,
            "swapped": 2.6,
        }
    assert names(stats) == [("problem", "source-and-target-swapped")]
    stats["distribution_shift"]["target"] |= {"swapped": 8.0}
    assert names(stats) == [("problem", "dev-distribution-shift")]
    stats["distribution_shift"]["source"] |= {"excess": 0.15}
    stats["distribution_shift"]["target"] |= {"excess": 0.15}
    assert names(stats) == [("warning", "dev-distribution-shift")]
    stats["distribution_shift"]["source"]["z_score"] = stats["distribution_shift"]["target"][
        "z_score"
    ] = 2.0
    assert names(stats) == []


def test_unknown_tokens_are_named_by_side() -> None:
    stats = healthy()
    for part in ("train", "dev"):
        stats["tokens"][f"target_{part}"]["unknown"] = 0.4
    assert names(stats) == [("problem", "target-oov")]
    stats["tokens"]["target_train"]["unknown"] = 0.0
    assert names(stats) == [("problem", "dev-distribution-shift")]
    finding = next(iter(data_verdicts({"tokens": {"source_train": {"unknown": 0.9}}}, SETTINGS)))
    assert finding.name == "source-oov" and "90%" in finding.evidence


def test_generalization_is_a_fraction_of_the_gain() -> None:
    stats = healthy()
    stats["losses"] = {
        "train": {"loss": 1.0, "baseline": 3.0, "accuracy": 0.6, "baseline_accuracy": 0.1},
        "dev": {"loss": 2.5, "baseline": 3.0, "accuracy": 0.2, "baseline_accuracy": 0.1},
    }
    assert generalization_ratio(stats) == 0.25  # 0.5 of 2 nats; of right answers 0.1 of 0.5
    assert names(stats) == [("problem", "overfitting")]
    stats["tokens"]["examples"] = 50
    assert names(stats) == [("problem", "too-little-data")]
    stats["losses"]["dev"]["accuracy"] = 0.35  # half of the gain carries over
    assert names(stats) == [("warning", "too-little-data")]
    stats["metadata"]["count_model"] = True  # n-grams memorize their text
    assert names(stats) == []


def test_one_batch_counts_only_if_nothing_was_learned() -> None:
    stats = healthy()
    stats["trials"]["one_batch"]["after"] = 3.0
    assert names(stats) == []
    stats["losses"]["train"]["loss"] = stats["losses"]["dev"]["loss"] = 3.2
    assert names(stats) == [("warning", "cannot-overfit-one-batch")]
    stats["trials"]["one_batch"]["after"] = 1.0
    assert names(stats) == []


def test_no_better_than_baseline_comes_last() -> None:
    stats = healthy()
    stats["losses"]["train"]["loss"] = 3.2
    assert [f.severity for f in no_better_than_baseline(stats)] == ["problem"]
    stats["curve"]["dev_gain_at_end"] = 0.4
    assert [f.severity for f in no_better_than_baseline(stats)] == ["warning"]
    assert list(no_better_than_baseline(healthy())) == []


def test_curves_predictions_and_internals_give_warnings() -> None:
    stats = healthy()
    stats["curve"] |= {"dev_gain_at_end": 0.2, "spikes": 2, "clipped": 1.0}
    stats["predictions"] |= {"distinct": 2, "empty": 0.5, "truncated": 0.1, "repetitive": 0.6}
    stats["predictions"]["repetitive_references"] = 0.5  # as the references do
    stats["internals"]["attention_entropy"] = {"a": 0.99, "b": 0.995}
    stats["internals"]["dead_units"] = {"c": 0.8}
    stats["internals"]["gradients"] = {"x": 1.0, "y": 1e-9}
    found = names(stats)
    assert {name for _, name in found} == {
        *("not-converged", "loss-spikes", "gradient-always-clipped"),
        *("predictions-collapsed", "predictions-empty"),
        *("uniform-attention", "dead-units", "vanishing-gradients"),
    }
    assert "problem" not in {severity for severity, _ in found}
    stats["internals"]["frozen"] = ["y"]
    assert ("warning", "vanishing-gradients") not in names(stats)


def test_less_than_one_epoch_is_a_warning() -> None:
    stats = healthy()
    stats["curve"] |= {"epochs": 0.4, "steps": 80}
    assert names(stats) == [("warning", "less-than-one-epoch")]
    (finding,) = model_verdicts(stats)
    assert "40%" in finding.evidence and "--steps 1000" in finding.fix  # 200 steps per epoch
    stats["curve"]["epochs"] = 1.0
    assert names(stats) == []


def test_problems_come_first_and_causes_before_effects() -> None:
    findings = [
        Finding("predictions-collapsed", "problem", "", ""),
        Finding("not-converged", "warning", "", ""),
        Finding("overfitting", "problem", "", ""),
        Finding("source-oov", "warning", "", ""),
    ]
    assert [f.name for f in ranked(findings)] == [
        *("overfitting", "predictions-collapsed", "source-oov", "not-converged"),
    ]
    assert len(set(ORDER)) == len(ORDER)
