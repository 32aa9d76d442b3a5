"""Baselines of trained models: in the run folder, `regard evaluate`, the report and diagnosis."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.experiments.diagnose.baseline_stats import baseline_verdicts
from regard.views.report import write_report

Command = Callable[..., Any]
NAMES = {
    "transduce": {"copying the source", "affix rules", "nearest neighbor"},
    "tag": {"most frequent tag", "most frequent tag per word"},
    "classify": {"most frequent label", "nearest neighbor"},
    "regress": {"mean of the training targets"},
    "language-model": {"unigram"},
}


@pytest.fixture
def copy(tmp_path: Path, trained: Any) -> Path:
    return Path(shutil.copytree(trained.run, tmp_path / "run"))


def scores_file(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "scores.json").read_text())
    return content


@pytest.mark.parametrize("task", NAMES)
def test_training_stores_and_shows_baselines(
    task: str, models: Callable[[str], Any], command: Command
) -> None:
    """The same numbers at the end of training, by `evaluate --json`, in words and in the report."""
    model = models(task)
    final = scores_file(model.run)
    assert {one["name"] for one in final["baselines"]} <= NAMES[task]
    assert final["baselines"] and final["baseline_notes"] == []
    stored = json.loads((model.run / "baselines.json").read_text())
    assert stored["format"] == 1 and len(stored["baselines"]) >= 1
    best = final["baselines"][0]
    assert f"({best['name']})\n" in model.said.err
    said = command("evaluate", model.run, model.dev, "--json")
    assert json.loads(said.out)["baselines"] == final["baselines"]
    said = command("evaluate", model.run, model.dev)
    assert f"baseline: {best['name']} (" in said.out and "   baseline: " in said.out
    page = (model.run / "report.html").read_text("utf-8")
    assert f"Baseline: {best['name']}" in page and '<th class="number">baseline</th>' in page


def test_the_first_baseline_is_the_best(trained: Any) -> None:
    found = [one["scores"]["exact_match"] for one in scores_file(trained.run)["baselines"]]
    assert len(found) == 3 and found == sorted(found, reverse=True)


def test_without_the_data_the_neighbor_is_skipped(
    command: Command, copy: Path, trained: Any
) -> None:
    facts = json.loads((copy / "run.json").read_text())
    facts["data"]["data"] = str(copy / "gone.tsv")
    (copy / "run.json").write_text(json.dumps(facts))
    said = command("evaluate", copy, trained.dev, "--json")
    names = {one["name"] for one in json.loads(said.out)["baselines"]}
    assert names == {"copying the source", "affix rules"}
    assert "note: baseline nearest neighbor: skipped: the data cannot be read" in said.err


def test_changed_data_is_not_used(
    command: Command, copy: Path, trained: Any, tmp_path: Path
) -> None:
    (tmp_path / "train.tsv").write_text(trained.train.read_text() + "zz\tzz\n")
    facts = json.loads((copy / "run.json").read_text())
    facts["data"]["data"] = str(tmp_path / "train.tsv")
    (copy / "run.json").write_text(json.dumps(facts))
    said = command("evaluate", copy, trained.dev, "--json")
    assert "skipped: the training data changed since the run" in said.err and said.code == 0


def test_a_folder_without_the_file_fits_them_again(
    command: Command, copy: Path, trained: Any
) -> None:
    (copy / "baselines.json").unlink()
    said = command("evaluate", copy, trained.dev, "--json")
    assert json.loads(said.out)["baselines"] == scores_file(copy)["baselines"]


HOSTILE = [
    "{",
    "[]",
    "null",
    "[" * 100_000,
    '{"format": 2, "baselines": []}',
    '{"format": 1}',
    '{"format": 1, "baselines": "copy_source"}',
    '{"format": 1, "baselines": [{"kind": "pickle"}]}',
    '{"format": 1, "baselines": [{"kind": "copy_source", "code": "x"}]}',
    '{"format": 1, "baselines": [{"kind": "unigram", "counts": [1]}]}',
    '{"format": 1, "baselines": [{"kind": "mean_target", "values": [NaN]}]}',
    '{"format": 1, "baselines": [{"kind": "unigram", "counts": [-1]}]}',
    '{"format": 1, "baselines": [{"kind": "affix_rules", "word_field": "all", "rules": [],'
    ' "endings": {"": {"": 7}}}]}',
    '{"format": 1, "baselines": [{"kind": "affix_rules", "word_field": "all", "rules": [["a"]],'
    ' "endings": {}}]}',
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_a_corrupted_file_is_a_user_error(
    content: str, command: Command, copy: Path, trained: Any
) -> None:
    (copy / "baselines.json").write_text(content)
    said = command("evaluate", copy, trained.dev)
    assert said.code == 2 and "Traceback" not in said.err
    assert f"error: {copy / 'baselines.json'}: c" in said.err  # corrupted, or cannot read


def test_an_export_has_the_baselines_too(command: Command, trained: Any, tmp_path: Path) -> None:
    words = ("--to", "regard", "--quantize", "int8", "--out", tmp_path / "int8")
    said = command("export", trained.run, *words)
    assert said.code == 0, said.err
    assert (tmp_path / "int8" / "baselines.json").exists()


def test_in_python(trained: Any) -> None:
    model: Any = regard.load(trained.run)
    pairs = [line.split("\t") for line in trained.dev.read_text().splitlines()]
    found = model.evaluate_baselines([tuple(pair) for pair in pairs])
    assert found == {one["name"]: one["scores"] for one in scores_file(trained.run)["baselines"]}


# Report and comparison


def test_a_report_survives_broken_baselines(copy: Path) -> None:
    lines = [json.loads(line) for line in (copy / "metrics.jsonl").read_text().splitlines()]
    for broken in ("x", [1, None], [{"name": 1}], [{"name": "<b>", "scores": {"bleu": "x"}}], {}):
        for line in lines:
            if line["kind"] == "final":
                line["baselines"], line["baseline_notes"] = broken, broken
        (copy / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        page = write_report(copy).read_text("utf-8")
        assert "<b>" not in page
        assert "Baseline: " not in page.partition("<script")[0]  # scripts have the translations


def test_compared_runs_show_their_baseline(
    command: Command, trained: Any, copy: Path, tmp_path: Path
) -> None:
    out = tmp_path / "compare.html"
    assert command("report", trained.run, copy, "--out", out).code == 0
    best = scores_file(trained.run)["baselines"][0]["scores"]["exact_match"]
    page = out.read_text("utf-8")
    assert page.count(f'data-label="baseline">{best:.2f}</td>') == 2


# Diagnosis


def stats(metric: str, score: float, base: float) -> dict[str, Any]:
    found = {"metric": metric, "score": score, "baseline": "copying", "baseline_score": base}
    return {"baselines": found}


@pytest.mark.parametrize(
    ("metric", "score", "base", "is_problem"),
    [
        ("exact_match", 50.0, 40.0, False),
        ("exact_match", 40.0, 40.0, True),
        ("exact_match", 30.0, 40.0, True),
        ("exact_match", 100.0, 100.0, False),  # it cannot be better
        ("ser", 20.0, 30.0, False),
        ("ser", 40.0, 30.0, True),
        ("perplexity", 9.0, 8.0, True),
        ("r2", -0.5, -0.1, True),
    ],
)
def test_verdict(metric: str, score: float, base: float, is_problem: bool) -> None:
    found = list(baseline_verdicts(stats(metric, score, base)))
    assert [f.severity for f in found] == ["problem"] * is_problem
    assert all(f.name == "dev-no-better-than-baseline" and f.fix for f in found)


@pytest.mark.parametrize(
    ("metric", "score", "base", "is_problem"),
    [
        ("exact_match", 1.2, 0.0, True),
        ("exact_match", 6.0, 0.0, False),
        ("exact_match", 91.0, 90.8, False),  # good baselines are hard to beat
        ("ser", 88.0, 90.0, True),
        ("ser", 60.0, 90.0, False),
        ("perplexity", 99.0, 100.0, False),  # has no best possible score
    ],
)
def test_verdict_barely_better(metric: str, score: float, base: float, is_problem: bool) -> None:
    found = [(f.severity, f.name) for f in baseline_verdicts(stats(metric, score, base))]
    assert found == [("problem", "barely-better-than-baseline")] * is_problem


def test_verdict_of_a_run_that_still_improves() -> None:
    found = stats("bleu", 1.0, 2.0) | {"curve": {"dev_gain_at_end": 0.5}}
    (finding,) = baseline_verdicts(found)
    assert "dev bleu 1.00, baseline 2.00 (copying)" in finding.evidence
    assert finding.fix.startswith("train longer") and "still falling" in finding.fix
    assert list(baseline_verdicts({})) == []


def test_diagnose_prints_both_numbers(command: Command, copy: Path) -> None:
    final = scores_file(copy)
    best = final["baselines"][0]
    said = command("diagnose", copy, "--quick")
    score, base = (one["exact_match"] for one in (final["scores"], best["scores"]))
    line = f"dev exact_match {score:.2f}, baseline {base:.2f} ({best['name']})"
    assert said.out.splitlines()[0] == line
    lines = [json.loads(one) for one in (copy / "metrics.jsonl").read_text().splitlines()]
    for record in lines:
        if record["kind"] == "final":
            record["baselines"][0]["scores"]["exact_match"] = 99.0
    (copy / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    said = command("diagnose", copy, "--quick")
    assert said.code == 1 and "problem: dev-no-better-than-baseline" in said.out


def test_an_unfinished_run_has_no_baseline_to_compare(command: Command, copy: Path) -> None:
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(x for x in lines if '"final"' not in x))
    said = command("diagnose", copy, "--quick", "--json")
    assert json.loads(said.out)["skipped"]["baselines"] == "the run is not finished"
