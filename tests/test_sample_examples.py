"""task.examples: a nested random sample of the training set, the same on resume."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config.configs import CONFIGS
from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.sources import textfile
from regard.data.sources.large import PairSubset, large_base
from regard.data.sources.open import DataSpec
from regard.data.sources.sample import sample_pairs
from regard.experiments.diagnose.diagnosed_run import read_run

PAIRS = [Pair(f"source {i}", f"target {i}", i + 1) for i in range(200)]


def test_samples_are_nested_and_keep_the_order() -> None:
    samples = [sample_pairs(PAIRS, count, seed=1) for count in (10, 20, 40, 80, 160)]
    assert [len(set(sample)) for sample in samples] == [10, 20, 40, 80, 160]
    for smaller, larger in itertools.pairwise(samples):
        assert set(smaller) < set(larger)
    for sample in samples:
        assert list(sample) == sorted(sample, key=lambda pair: pair.line)
    assert samples[0] == sample_pairs(PAIRS, 10, seed=1) != sample_pairs(PAIRS, 10, seed=2)
    assert samples[0] != PAIRS[:10]


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_task_samples(kind: str) -> None:
    def options(*settings: str) -> Any:
        return load_config(None, [f"task.kind={kind}", *settings]).task

    assert options().sample(PAIRS, 1) == (PAIRS, [])
    sample, notes = options("task.examples=30").sample(PAIRS, 1)
    assert sample == sample_pairs(PAIRS, 30, 1)
    assert notes == [
        "note: task.examples=30: 30 of 200 training examples, sampled with training.seed=1"
    ]
    sample, notes = options("task.examples=300").sample(PAIRS, 1)
    assert sample is PAIRS
    assert notes == [
        "note: task.examples=300: the training set has only 200 examples, all are used"
    ]
    with pytest.raises(UserError, match=r"task\.examples"):
        options("task.examples=0")


def test_large_files_are_sampled_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(textfile, "BLOCK", 500)
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS))
    samples, opened = {}, {}
    for limit in ("1GB", "1KB"):
        monkeypatch.setenv("REGARD_MEMORY", limit)
        task = load_config(None, ["task.examples=20"]).task
        for dev in (DataSpec(option="--dev-"), DataSpec(str(path), option="--dev-")):
            data = task.open(DataSpec(str(path)), dev)
            opened[limit, dev.data] = data
            samples[limit, dev.data], _ = task.sample(data.train, 3)
    assert large_base(opened["1KB", None].train) is not None
    for dev_file in (None, str(path)):
        assert samples["1GB", dev_file] == samples["1KB", dev_file]  # the small one is in memory
        assert opened["1GB", dev_file].dev == opened["1KB", dev_file].dev
    many = sample_pairs(opened["1KB", None].train, 150, 3)
    assert isinstance(many, PairSubset) and len(many) == 150  # above the limit it stays on disk
    assert list(many) == sample_pairs(opened["1GB", None].train, 150, 3)


@pytest.fixture(scope="module")
def data(made_once: Callable[..., Path], words: list[str]) -> Path:
    """The folder of training data and dev data."""

    def make(folder: Path) -> None:
        for name, part in (("train", words[:260]), ("dev", words[260:])):
            rows = "".join(f"{word}\t{word[::-1]}\n" for word in part)
            (folder / f"{name}.tsv").write_text(rows)

    return made_once("sampled", make)


def test_training_resume_and_diagnosis_use_the_sample(
    data: Path, tmp_path: Path, command: Callable[..., Any], tiny: list[str]
) -> None:
    files = ("train", data / "train.tsv", "--dev", data / "dev.tsv", "--out", tmp_path / "run")
    steps = ("--steps", "6", "--set", "training.validate_every=3", *tiny)
    said = command(*files, *steps, "--set", "task.examples=50")
    assert said.code == 0, said.err
    note = "note: task.examples=50: 50 of 260 training examples, sampled with training.seed=1"
    assert note in said.err.splitlines()
    assert "train 50 pairs" in said.err
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert facts["examples"] == {"training": 50, "dev": 40}
    lines = (data / "train.tsv").read_text().splitlines()
    pairs = [Pair(*row.split("\t"), line) for line, row in enumerate(lines, 1)]
    subject = read_run(tmp_path / "run")
    assert set(subject.train) == set(sample_pairs(pairs, 50, 1)) and subject.examples == 50
    (tmp_path / "run" / "scores.json").unlink()  # as if the run was killed
    resumed = command(*files, "--resume")
    assert resumed.code == 0, resumed.err
    changed = command(*files, "--resume", "--set", "task.examples=51")
    assert changed.code == 2 and "task.examples is 50" in changed.err
    checked = command("check", data / "train.tsv", "--set", "task.examples=50")
    assert checked.code == 0 and "note:" not in checked.out
    assert checked.out == command("check", data / "train.tsv").out


def test_estimators_sample(capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    settings = {"task.examples": 30, "model.encoder.width": 8, "model.decoder.width": 8}
    pairs = [(word, word[::-1]) for word in words[:60]]
    dev = [(word, word[::-1]) for word in words[60:70]]
    model = regard.Transducer(steps=2, settings=settings, verbose=True).fit(pairs, dev=dev)
    assert "note: task.examples=30: 30 of 60 training examples" in capfd.readouterr().err
    facts = json.loads((model.folder_ / "run.json").read_text())
    assert facts["examples"] == {"training": 30, "dev": 10}
