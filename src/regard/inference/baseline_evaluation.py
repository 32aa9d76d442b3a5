"""Baselines of a trained model, scored on the data that the model is evaluated on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from regard.baselines import Baseline
from regard.data.reading.read import Example, Pair
from regard.inference.predictor import Predictor
from regard.storage.baseline_file import read_baselines
from regard.storage.run_files import run_metadata
from regard.storage.training_data import read_training_data
from regard.tasks.baselines import BaselineResults, fit_baselines, score_baselines

MAX_TRAINING_SIZE = 50 * 1024**2  # bytes of training text that are read again


@dataclass
class RunBaselines:
    """The baselines of a run that could be loaded or fitted again. notes: which could not."""

    baselines: list[Baseline] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def load_baselines(predictor: Predictor) -> RunBaselines:
    """Return the baselines of a model; raise UserError if the file in its folder is corrupted.

    Baselines that are not stored are fitted again, if the training data can still be read.
    """
    task, fits = predictor.task, predictor.task.baseline_fits()
    file = read_baselines(predictor.folder, fits)
    found = RunBaselines([] if file is None else list(file.baselines))
    sample = "" if file is None else file.sample
    missing = [one for one in fits if file is None or not one.stored]
    if missing:
        pairs, again, why = _training_sample(predictor)
        sample = sample or again
        fitted = fit_baselines(task, missing, pairs, found.notes) if pairs else []
        found.baselines += fitted
        names = [one.name for one in missing if one.name not in {each.name for each in fitted}]
        if why and names:
            found.notes.append(f"baseline {', '.join(names)}: skipped: {why.splitlines()[0]}")
    if sample and found.baselines:
        found.notes.insert(0, f"baselines: {sample}")
    return found


def evaluate_baselines(
    predictor: Predictor, loaded: RunBaselines, examples: Sequence[Example]
) -> BaselineResults:
    """Return the metrics of loaded baselines on examples, the best baseline first."""
    objective = predictor.config.objective
    return score_baselines(predictor.task, loaded.baselines, examples, objective, loaded.notes)


def _training_sample(predictor: Predictor) -> tuple[list[Pair], str, str]:
    """Return the training examples to fit baselines on, the sampling note, why they are missing."""
    facts = run_metadata(predictor.folder)
    read = partial(read_training_data, max_size=MAX_TRAINING_SIZE)
    train, _, why = read(predictor.folder, predictor.config, predictor.task, facts)
    if why:
        return [], "", why
    expected = facts.get("examples")
    then = expected.get("training") if isinstance(expected, dict) else None
    if predictor.task.reads_source and then != len(train):  # the corpus of plain text has windows
        return [], "", "the training data changed since the run"
    return *predictor.task.baseline_sample(train), ""
