"""The diagnosis of a run: compute statistics with probes, then derive findings from them.

A probe is a function that computes one group of statistics, such as the loss curves.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.load import flatten
from regard.core.errors import UserError
from regard.experiments.diagnose.baseline_stats import (
    baseline_statistics,
    baseline_verdicts,
    why_no_baseline,
)
from regard.experiments.diagnose.ceiling import SECONDS, ceiling_statistics
from regard.experiments.diagnose.curves import curve_statistics
from regard.experiments.diagnose.data import dependence_statistics, token_statistics
from regard.experiments.diagnose.diagnosed_run import DiagnosedRun, read_run
from regard.experiments.diagnose.distribution_shift import shift_statistics, sides, texts
from regard.experiments.diagnose.findings import Diagnosis, Finding, Statistics, ranked
from regard.experiments.diagnose.losses import loss_statistics, source_statistics
from regard.experiments.diagnose.model_stats import internal_statistics
from regard.experiments.diagnose.prediction_stats import prediction_statistics
from regard.experiments.diagnose.trials import trial_statistics
from regard.experiments.diagnose.verdicts_ceiling import ceiling_verdicts
from regard.experiments.diagnose.verdicts_data import data_verdicts
from regard.experiments.diagnose.verdicts_fit import fit_verdicts, no_better_than_baseline
from regard.experiments.diagnose.verdicts_model import model_verdicts

DEV = 5  # minimum texts per set to measure a distribution shift


class Probe(NamedTuple):
    """A function that computes statistics of a run. needs: prerequisites, keys of `_missing`."""

    name: str
    description: str
    statistics: Callable[[DiagnosedRun], Statistics]
    needs: tuple[str, ...] = ()


PROBES = (
    Probe("curve", "training curves", curve_statistics),
    Probe("baselines", "baselines on dev", baseline_statistics, ("baselines",)),
    Probe("tokens", "tokens and lengths", token_statistics, ("data",)),
    Probe(
        "distribution_shift",
        "distribution shift of dev",
        shift_statistics,
        ("data", "texts"),
    ),
    Probe("dependence", "dependence of targets", dependence_statistics, ("data", "source")),
    Probe("losses", "losses on train and dev", loss_statistics, ("data", "model")),
    Probe(
        "source",
        "use of the source",
        source_statistics,
        ("data", "model", "source"),
    ),
    Probe("predictions", "predictions on dev", prediction_statistics, ("data", "model", "source")),
    Probe(
        "internals",
        "attention and gradients",
        internal_statistics,
        ("data", "model", "steps"),
    ),
    Probe("trials", "short trials from random initialization", trial_statistics, ("data", "steps")),
    Probe(
        "ceiling",
        f"what more steps and other settings reach (2 trials of about {SECONDS:.0f} s)",
        ceiling_statistics,
        ("data", "model", "steps"),
    ),
)


def _missing(subject: DiagnosedRun) -> dict[str, str]:
    """Return why each prerequisite is missing, or an empty string if it is met."""
    no_texts, steps = "", subject.config.training.optimizer.stepwise
    if not sides(subject):
        no_texts = "no text side"
    elif min(len(part) for part in texts(subject, sides(subject)[0])) < DEV:
        no_texts = f"fewer than {DEV} texts in train or dev"
    return {
        "baselines": why_no_baseline(subject),
        "data": subject.why_no_data,
        "texts": no_texts,
        "model": subject.why_no_model,
        "source": "" if subject.task.reads_source else "plain text has no source",
        "steps": "" if steps else "closed-form solution: no gradient steps",
    }


def examine(
    folder: Path, quick: bool = False, notify: Callable[[str], None] = lambda line: None
) -> Diagnosis:
    """Diagnose a run folder. quick: skip probes that need the model or train one."""
    subject = read_run(folder)
    if subject.config.task.writes_sounds:
        raise UserError(
            f"{folder}: diagnosis is not supported for task {subject.task.kind}",
            help="use regard evaluate and regard plot synthesis",
        )
    stats: dict[str, Statistics] = {"metadata": _metadata(subject)}
    skipped: dict[str, str] = {}
    missing = _missing(subject)
    with torch.random.fork_rng():
        for probe in PROBES:
            why = next((missing[need] for need in probe.needs if missing[need]), "")
            if quick and {"model", "steps"} & {*probe.needs}:
                why = why or "--quick"
            if why:
                skipped[probe.name] = why
                continue
            notify(f"checking {probe.description}")
            stats[probe.name] = probe.statistics(subject)
    step = stats["curve"]["steps"]
    return Diagnosis(verdicts(stats, subject), stats, skipped, step)


def _metadata(subject: DiagnosedRun) -> Statistics:
    """Return whether the model has counts (n-grams), the data is plain text, targets are labels."""
    return {
        "count_model": subject.is_count_model,
        "plain_text": not subject.task.reads_source,
        "labels": subject.task.output_tokenizer is None,
    }


def verdicts(stats: dict[str, Statistics], subject: DiagnosedRun) -> list[Finding]:
    """Return the findings, most urgent first, without those that another finding explains."""
    settings = flatten(subject.config.model_dump(mode="json"))
    found = [
        *data_verdicts(stats, settings),
        *fit_verdicts(stats, settings),
        *model_verdicts(stats),
        *ceiling_verdicts(stats, settings),
    ]
    names = {finding.name for finding in found if finding.severity == "problem"}
    if names & {
        "dev-distribution-shift",
        "source-and-target-swapped",
    }:
        found = [f for f in found if f.name not in ("overfitting", "too-little-data")]
    if any(name.startswith("learning-rate") for name in names):  # it explains both
        found = [f for f in found if f.name not in ("not-converged", "loss-spikes")]
    if any(f.name == "stopped-too-early" for f in found):  # it has the better evidence
        explained = ("not-converged", "too-few-steps", "less-than-one-epoch")
        found = [f for f in found if f.name not in explained]
    if not names:
        found += no_better_than_baseline(stats)
    return ranked([*found, *baseline_verdicts(stats)])
