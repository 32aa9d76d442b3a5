"""The data that a run was trained on, read again from the files that `run.json` names."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.config.load import Config
from regard.core.errors import UserError
from regard.core.formatting import size
from regard.data.reading.media_folder import list_files
from regard.data.reading.read import Pair
from regard.data.sources.open import DataSpec
from regard.data.sources.textfile import text_size
from regard.storage.pseudo_labels import read_pseudo_labels
from regard.tasks.task import Task


def data_size(path: str, limit: int) -> int:
    """Return the size of a file of text, uncompressed, or of all files in a folder, in bytes."""
    if os.path.isdir(path):
        return sum(os.path.getsize(file) for file in list_files(path) if file.is_file())
    return text_size(path, limit)


class TrainingData(NamedTuple):
    """The training and dev examples of a run. why_missing: why both are empty, if they are."""

    train: Sequence[Pair] = ()
    dev: Sequence[Pair] = ()
    why_missing: str = ""


def read_training_data(
    folder: Path,
    config: Config,
    task: Task,
    facts: Mapping[str, Any],
    max_size: int | None = None,
) -> TrainingData:
    """Return the examples that a run was trained on.

    facts: the content of `run.json`. max_size: larger files are not read; in bytes of text.
    """
    try:
        spec, dev = (DataSpec.from_record(facts.get(part) or {}) for part in ("data", "dev"))
    except UserError:
        spec = dev = DataSpec()
    if not spec.is_given():
        return TrainingData(why_missing="run.json does not name the data files")
    if spec.data == "-":
        return TrainingData(why_missing="the data came from standard input")
    paths = [path for path in (spec.data, spec.source, spec.target) if path]
    known = os.path.isfile, os.path.isdir
    if any(os.path.exists(path) and not any(one(path) for one in known) for path in paths):
        return TrainingData(why_missing="the data is not a file")  # but a pipe or a device
    try:
        if max_size is not None and sum(data_size(path, max_size) for path in paths) > max_size:
            return TrainingData(why_missing=f"the training data has more than {size(max_size)}")
        data = config.task.open(spec, dev)
        sample, _ = config.task.sample(data.train, config.training.seed)
        labeled = read_pseudo_labels(folder)
        train, _ = config.task.trainable([*sample, *labeled] if labeled else sample, task)
    except (UserError, OSError) as error:
        return TrainingData(why_missing=f"the data cannot be read: {error}")
    return TrainingData(train, data.dev)
