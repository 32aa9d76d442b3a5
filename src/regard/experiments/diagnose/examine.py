"""The diagnosis: every probe that applies is made, then verdicts are found from its figures."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from regard.config.load import flatten
from regard.experiments.diagnose.data import dependence_figures, token_statistics
from regard.experiments.diagnose.distribution_shift import likeness_figures, sides, texts
from regard.experiments.diagnose.findings import Diagnosis, Figures, Finding, ranked
from regard.experiments.diagnose.losses import loss_figures, source_figures
from regard.experiments.diagnose.model_stats import inside_figures
from regard.experiments.diagnose.prediction_stats import answer_figures
from regard.experiments.diagnose.record import curve_figures
from regard.experiments.diagnose.subject import Subject, read_subject
from regard.experiments.diagnose.trials import trial_figures
from regard.experiments.diagnose.verdicts_data import data_verdicts
from regard.experiments.diagnose.verdicts_fit import fit_verdicts, nothing_learned
from regard.experiments.diagnose.verdicts_inside import other_verdicts

DEV = 5  # examples of dev that are needed to say something


class Probe(NamedTuple):
    """A look at the run. needs: without which it cannot be made, see `_lacking`."""

    name: str
    says: str
    figures: Callable[[Subject], Figures]
    needs: tuple[str, ...] = ()


PROBES = (
    Probe("curve", "the curves of training", curve_figures),
    Probe("tokens", "tokens and lengths", token_statistics, ("data",)),
    Probe("likeness", "whether dev is like training", likeness_figures, ("data", "texts")),
    Probe(
        "dependence", "whether answers depend on sources", dependence_figures, ("data", "source")
    ),
    Probe("losses", "losses on both parts", loss_figures, ("data", "model")),
    Probe("source", "what the source gives", source_figures, ("data", "model", "source")),
    Probe("answers", "answers on dev", answer_figures, ("data", "model", "source")),
    Probe("inside", "attention, gradients, dead units", inside_figures, ("data", "model", "steps")),
    Probe("trials", "short trainings from fresh weights", trial_figures, ("data", "steps")),
)


def _lacking(subject: Subject) -> dict[str, str]:
    """Why the needs of probes are not met; an empty text for those that are."""
    no_texts, steps = "", subject.config.training.optimizer.stepwise
    if not sides(subject):
        no_texts = "vectors are no texts"
    elif min(len(part) for part in texts(subject, sides(subject)[0])) < DEV:
        no_texts = f"fewer than {DEV} texts in training or dev"
    return {
        "data": subject.why_no_data,
        "texts": no_texts,
        "model": subject.why_no_model,
        "source": "" if subject.task.reads_source else "running text has no source",
        "steps": "" if steps else "the model was solved by a formula, not step by step",
    }


def examine(
    folder: Path, quick: bool = False, tell: Callable[[str], None] = lambda line: None
) -> Diagnosis:
    """Why the model of a run folder is bad. quick: from the record and the data alone."""
    subject = read_subject(folder)
    figures: dict[str, Figures] = {"facts": _facts(subject)}
    left_out: dict[str, str] = {}
    lacking = _lacking(subject)
    with torch.random.fork_rng():
        for probe in PROBES:
            why = next((lacking[need] for need in probe.needs if lacking[need]), "")
            if quick and {"model", "steps"} & {*probe.needs}:
                why = why or "--quick"
            if why:
                left_out[probe.name] = why
                continue
            tell(f"looking at {probe.says}")
            figures[probe.name] = probe.figures(subject)
    step = figures["curve"]["steps"]
    return Diagnosis(verdicts(figures, subject), figures, left_out, step)


def _facts(subject: Subject) -> Figures:
    """counted: the model knows its text by heart; running: documents are no examples."""
    return {"counted": subject.counted, "running": not subject.task.reads_source}


def verdicts(figures: dict[str, Figures], subject: Subject) -> list[Finding]:
    """The findings of these figures, the one to mend first at the top."""
    settings = flatten(subject.config.model_dump(mode="json"))
    found = [
        *data_verdicts(figures, settings),
        *fit_verdicts(figures, settings),
        *other_verdicts(figures),
    ]
    names = {finding.name for finding in found if finding.severity == "problem"}
    if names & {"dev-of-another-kind", "source-and-target-swapped"}:  # that is why dev is bad
        found = [f for f in found if f.name not in ("overfits", "too-few-examples")]
    if any(name.startswith("learning-rate") for name in names):  # explained, with better advice
        found = [f for f in found if f.name not in ("still-improving", "loss-spikes")]
    if not names:
        found += nothing_learned(figures)
    return ranked(found)
