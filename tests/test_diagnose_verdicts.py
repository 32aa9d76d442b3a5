"""Verdicts from figures made by hand: each fault is named by its own, and health by nothing."""

from typing import Any

from regard.experiments.diagnose.findings import ORDER, Finding, ranked
from regard.experiments.diagnose.verdicts_data import data_verdicts
from regard.experiments.diagnose.verdicts_fit import carried, fit_verdicts, nothing_learned
from regard.experiments.diagnose.verdicts_inside import other_verdicts

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
    """The figures of a run with nothing wrong."""
    side = {"train": 2.6, "dev": 2.65, "excess": 0.02, "sure": 1.5, "crossed": 8.0}
    known = {"unknown": 0.0, "length": 7.0}
    return {
        "facts": {"counted": False},
        "curve": {"steps": 900, "finished": True, "last": 0.6, "lr": 0.003}
        | {"dev_gain_at_end": 0.005, "spikes": 0, "clipped": 0.1},
        "tokens": {"examples": 6000}
        | {f"{s}_{p}": dict(known) for s in ("source", "target") for p in ("train", "dev")},
        "likeness": {"source": dict(side), "target": dict(side)},
        "dependence": {"train": {"examples": 2000, "sure": 900.0}},
        "losses": {
            "train": {"loss": 0.5, "same": 3.2, "right": 0.9, "same_right": 0.1},
            "dev": {"loss": 0.6, "same": 3.2, "right": 0.85, "same_right": 0.1},
        },
        "source": {
            part: {"loss": 0.5, "other": 3.0, "mixed": 3.0, "order": 2.0, "change": 1.2}
            for part in ("train", "dev")
        },
        "answers": {"answers": 100, "different": 99, "different_right": 100}
        | {"most_frequent": {"answer": "x", "share": 0.02}},
        "inside": {"attention_entropy": {"a": 0.5}, "dead_units": {"b": 0.1}}
        | {"stuck_gates": {}, "gradients": {"x": 1.0, "y": 0.1}, "frozen": []},
        "trials": {"steps": 100, "trials": {}, "range": {}}
        | {"one_batch": {"before": 3.7, "after": 0.1, "same": 3.1, "steps": 60}},
    }


def names(figures: dict[str, Any], settings: dict[str, Any] = SETTINGS) -> list[tuple[str, str]]:
    """Severity and name of all findings, in their order."""
    found = [
        *data_verdicts(figures, settings),
        *fit_verdicts(figures, settings),
        *other_verdicts(figures),
    ]
    return [(finding.severity, finding.name) for finding in ranked(found)]


def test_health_is_silent() -> None:
    assert names(healthy()) == []


def test_figures_that_are_missing_say_nothing() -> None:
    assert names({}) == []
    assert names({"curve": healthy()["curve"]}) == []


def test_a_rate_is_blamed_only_where_another_beats_the_whole_run() -> None:
    figures = healthy()
    figures["trials"]["trials"] = {
        "rate": {"lr": 0.005, "loss": 1.4},
        "own": {"lr": 0.3, "loss": 4.0},
    }
    assert names(figures) == []
    figures["losses"]["train"]["loss"] = 2.7
    assert names(figures)[0] == ("problem", "learning-rate-too-high")
    figures["trials"]["trials"]["own"]["lr"] = 3e-6
    assert names(figures)[0] == ("problem", "learning-rate-too-low")
    figures["trials"]["trials"]["rate"]["loss"] = 2.5  # less than a tenth better
    assert names(figures) == []


def test_the_change_that_mends_most_comes_first() -> None:
    figures = healthy()
    figures["losses"]["train"]["loss"] = figures["losses"]["dev"]["loss"] = 3.1
    figures["trials"]["trials"] = {
        "rate": {"lr": 0.1, "loss": 2.7},
        "wide": {"width": 64, "loss": 1.7},
        "own": {"lr": 0.003, "loss": 3.3},
    }
    found = names(figures, SETTINGS | {"model.encoder.width": 4, "model.decoder.width": 4})
    assert found == [("problem", "model-too-small"), ("hint", "learning-rate-too-low")]


def test_a_short_run_is_told_to_go_on() -> None:
    figures = healthy()
    figures["curve"]["steps"] = 40
    figures["losses"]["train"]["loss"] = figures["losses"]["dev"]["loss"] = 3.1
    trials = {"wide": {"width": 64, "loss": 0.5}, "own": {"lr": 0.003, "loss": 1.5}}
    figures["trials"]["trials"] = trials
    found = names(figures, SETTINGS | {"model.encoder.width": 32})
    assert {severity for severity, _ in found} == {"hint"}
    assert ("hint", "too-few-steps") in found
    trials["own"]["loss"] = 3.3  # its settings learn nothing in more steps either
    found = names(figures, SETTINGS | {"model.encoder.width": 32})
    assert found == [("problem", "model-too-small")]


def test_a_source_is_unused_only_where_it_could_be_used_and_something_was_learned() -> None:
    figures = healthy()
    for part in ("train", "dev"):
        figures["source"][part] |= {"other": 0.0, "mixed": 0.001, "change": 0.1}
        figures["losses"][part]["loss"] = 2.5
    assert names(figures) == [("problem", "source-not-used")]
    figures["curve"]["dev_gain_at_end"] = None  # it may come yet
    assert names(figures) == [("hint", "source-not-used")]
    figures["losses"]["train"]["loss"] = 3.15
    assert names(figures) == []
    figures["source"]["train"]["change"] = 0.0
    assert names(figures) == [("problem", "source-not-used")]
    figures["dependence"]["train"]["sure"] = 0.3
    assert names(figures) == [("problem", "targets-unrelated-to-sources")]


def test_answers_that_hang_together_in_hidden_ways_are_left_alone() -> None:
    figures = healthy()
    figures["dependence"]["train"]["sure"] = 0.3  # parity: no token alone says anything
    assert names(figures) == []


def test_swapped_sides_come_before_another_kind() -> None:
    figures = healthy()
    for side in ("source", "target"):
        figures["likeness"][side] |= {"dev": 8.0, "excess": 2.0, "sure": 300.0, "crossed": 2.6}
    assert names(figures) == [("problem", "source-and-target-swapped")]
    figures["likeness"]["target"] |= {"crossed": 8.0}
    assert names(figures) == [("problem", "dev-of-another-kind")]
    figures["likeness"]["source"] |= {"excess": 0.15}
    figures["likeness"]["target"] |= {"excess": 0.15}
    assert names(figures) == [("hint", "dev-of-another-kind")]
    figures["likeness"]["source"]["sure"] = figures["likeness"]["target"]["sure"] = 2.0
    assert names(figures) == []


def test_unknown_tokens_are_named_by_side() -> None:
    figures = healthy()
    for part in ("train", "dev"):
        figures["tokens"][f"target_{part}"]["unknown"] = 0.4
    assert names(figures) == [("problem", "target-tokens-unknown")]
    figures["tokens"]["target_train"]["unknown"] = 0.0
    assert names(figures) == [("problem", "dev-of-another-kind")]
    finding = next(iter(data_verdicts({"tokens": {"source_train": {"unknown": 0.9}}}, SETTINGS)))
    assert finding.name == "source-tokens-unknown" and "90%" in finding.evidence


def test_what_holds_on_dev_is_a_share_of_what_was_learned() -> None:
    figures = healthy()
    figures["losses"] = {
        "train": {"loss": 1.0, "same": 3.0, "right": 0.6, "same_right": 0.1},
        "dev": {"loss": 2.5, "same": 3.0, "right": 0.2, "same_right": 0.1},
    }
    assert carried(figures) == 0.25  # 0.5 of 2 nats; of right answers 0.1 of 0.5
    assert names(figures) == [("problem", "overfits")]
    figures["tokens"]["examples"] = 50
    assert names(figures) == [("problem", "too-few-examples")]
    figures["losses"]["dev"]["right"] = 0.35  # half of what was learned: overconfident, not useless
    assert names(figures) == [("hint", "too-few-examples")]
    figures["facts"]["counted"] = True  # n-grams know their text by heart
    assert names(figures) == []


def test_one_batch_counts_only_where_nothing_was_learned() -> None:
    figures = healthy()
    figures["trials"]["one_batch"]["after"] = 3.0
    assert names(figures) == []
    figures["losses"]["train"]["loss"] = figures["losses"]["dev"]["loss"] = 3.2
    assert names(figures) == [("hint", "cannot-learn-one-batch")]
    figures["trials"]["one_batch"]["after"] = 1.0
    assert names(figures) == []


def test_nothing_learnt_is_the_last_word() -> None:
    figures = healthy()
    figures["losses"]["train"]["loss"] = 3.2
    assert [f.severity for f in nothing_learned(figures)] == ["problem"]
    figures["curve"]["dev_gain_at_end"] = 0.4
    assert [f.severity for f in nothing_learned(figures)] == ["hint"]
    assert list(nothing_learned(healthy())) == []


def test_curves_answers_and_the_inside_give_hints() -> None:
    figures = healthy()
    figures["curve"] |= {"dev_gain_at_end": 0.2, "spikes": 2, "clipped": 1.0}
    figures["answers"] |= {"different": 2, "empty": 0.5, "cut": 0.1, "repeating": 0.6}
    figures["answers"]["repeating_right"] = 0.5  # as the right ones do
    figures["inside"]["attention_entropy"] = {"a": 0.99, "b": 0.995}
    figures["inside"]["dead_units"] = {"c": 0.8}
    figures["inside"]["gradients"] = {"x": 1.0, "y": 1e-9}
    found = names(figures)
    assert {name for _, name in found} == {
        *("still-improving", "loss-spikes", "gradient-always-clipped"),
        *("answers-collapsed", "answers-empty"),
        *("attention-uniform", "units-dead", "gradient-vanishes"),
    }
    assert "problem" not in {severity for severity, _ in found}
    figures["inside"]["frozen"] = ["y"]
    assert ("hint", "gradient-vanishes") not in names(figures)


def test_problems_come_first_and_causes_before_effects() -> None:
    findings = [
        Finding("answers-collapsed", "problem", "", ""),
        Finding("still-improving", "hint", "", ""),
        Finding("overfits", "problem", "", ""),
        Finding("source-tokens-unknown", "hint", "", ""),
    ]
    assert [f.name for f in ranked(findings)] == [
        *("overfits", "answers-collapsed", "source-tokens-unknown", "still-improving"),
    ]
    assert len(set(ORDER)) == len(ORDER)
