"""`regard diagnose`: works for every task, is reproducible, changes nothing."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import pytest

from regard.experiments.diagnose import ceiling, trials
from regard.experiments.diagnose.findings import ORDER

TASKS = ("transduce", "tag", "classify", "regress", "language-model")
WRITTEN = {"diagnosis.json", "report.html"}


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in WRITTEN
    }


@pytest.fixture(autouse=True)
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the trials find is tested elsewhere; here they need not take long."""
    for name, steps in (("STEPS", 20), ("RANGE_STEPS", 12), ("ONE_BATCH_STEPS", 10)):
        monkeypatch.setattr(trials, name, steps)
    monkeypatch.setattr(ceiling, "MIN_STEPS", 5)
    monkeypatch.setattr(ceiling, "MAX_STEPS", 5)


@pytest.fixture
def copy(tmp_path: Path, models: Callable[[str], Any]) -> Callable[[str], Path]:
    """A copy of the small run of a task, which a test may write into."""

    def run(task: str) -> Path:
        return Path(shutil.copytree(models(task).run, tmp_path / task))

    return run


@pytest.mark.parametrize("task", TASKS)
def test_every_task_can_be_diagnosed(
    task: str, copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy(task)
    before = digests(run)
    said = command("diagnose", run, "--json")
    assert said.code in (0, 1), said.err
    found = json.loads(said.out)
    assert digests(run) == before
    assert json.loads((run / "diagnosis.json").read_text()) == found
    assert said.code == int(any(f["severity"] == "problem" for f in found["findings"]))
    assert all(f["name"] in ORDER and f["evidence"] and f["fix"] for f in found["findings"])
    probes = {
        "curve",
        "baselines",
        "tokens",
        "distribution_shift",
        "dependence",
        "losses",
        "source",
        "predictions",
    }
    probes |= {"internals", "trials", "ceiling"}
    assert found["statistics"].keys() | found["skipped"].keys() == probes
    assert not found["statistics"].keys() & found["skipped"].keys()
    assert found["statistics"]["ceiling"]["baseline"] > 0
    if task == "language-model":
        assert {"dependence", "source", "predictions"} <= found["skipped"].keys()
        assert found["statistics"]["ceiling"]["ngram"]["loss"] > 0


def test_the_same_run_gets_the_same_diagnosis(
    copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy("transduce")
    assert command("diagnose", run, "--json").out == command("diagnose", run, "--json").out


def test_quick_reads_log_and_data_only(
    copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy("tag")
    (run / "model.safetensors").unlink()
    found = json.loads(command("diagnose", run, "--quick", "--json").out)
    needs_model = {"losses", "source", "predictions", "internals", "trials", "ceiling"}
    assert needs_model == found["skipped"].keys()
    assert found["statistics"]["curve"]["steps"] == corpora.STEPS["tag"]


def test_text_and_report_name_the_findings(
    copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy("transduce")
    said = command("diagnose", run)
    findings = json.loads((run / "diagnosis.json").read_text())["findings"]
    assert findings
    page = (run / "report.html").read_text("utf-8")
    for finding in findings:
        assert f"{finding['severity']}: {finding['name']}" in said.out
        assert f'<strong translate="no">{finding["name"]}</strong>' in page
    assert "checking losses on train and dev" in said.err


def test_without_data_the_log_is_diagnosed(
    copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy("classify")
    facts = json.loads((run / "run.json").read_text())
    facts["data"]["data"] = str(run / "gone.tsv")
    (run / "run.json").write_text(json.dumps(facts))
    said = command("diagnose", run)
    assert said.code in (0, 1)
    assert "skipped: losses (the data cannot be read" in said.out


def test_an_aborted_run_is_diagnosed_without_a_model(
    tmp_path: Path, trained: Any, command: Callable[..., Any]
) -> None:
    run = Path(shutil.copytree(trained.run, tmp_path / "run"))
    shutil.rmtree(run / "checkpoint")
    for name in ("model.safetensors", "scores.json"):
        (run / name).unlink()
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(x for x in lines if '"final"' not in x))
    said = command("diagnose", run, "--json")
    assert said.code == 1
    found = json.loads(said.out)
    assert "training-aborted" in [f["name"] for f in found["findings"]]
    assert "losses" in found["skipped"] and "trials" in found["statistics"]


def test_what_cannot_be_diagnosed_is_an_error(tmp_path: Path, command: Callable[..., Any]) -> None:
    for run, words in (
        (tmp_path / "none", "no such model folder"),
        (tmp_path, "not a model folder"),
    ):
        said = command("diagnose", run)
        assert said.code == 2 and words in said.err


def test_a_run_without_a_record_is_an_error(
    copy: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = copy("regress")
    (run / "metrics.jsonl").unlink()
    said = command("diagnose", run)
    assert said.code == 2 and "nothing to diagnose" in said.err
