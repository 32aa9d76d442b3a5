"""The main loop of `regard predict` for models that make sounds: a WAV file per text."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.core import parallel
from regard.core.errors import UserError, note
from regard.data.reading.sound_media import SUFFIXES
from regard.inference.prediction.predict_job import PredictJob
from regard.inference.prediction.predict_options import PredictOptions, search_changes
from regard.inference.prediction.windows import fixed_windows
from regard.inference.predictor import Predictor
from regard.storage.run_files import read_config
from regard.tasks.batches import PredictWork
from regard.tasks.values import InputItem, Prediction

SUFFIX = ".wav"
MAX_NAME = 60  # characters of a text in the name of its file


def makes_sounds(folder: Path) -> bool:
    """Return whether the model in a folder makes sounds; False if it cannot be read."""
    try:
        found: bool = read_config(folder).task.writes_sounds
    except UserError:
        return False  # the usual path reports it
    return found


def sound_job(predictor: Predictor, options: PredictOptions) -> None:
    """Write a WAV file for each text, and print the text and the path."""
    output = _checked(options)
    options.check_model(predictor)
    changes = search_changes(options.search, options.settings)
    job = PredictJob(predictor, options, predictor.search_options(**changes))
    _check_speaker(predictor, job.search)
    names: set[str] = set()
    first = 0
    for window in fixed_windows(job.items()):
        paths = list(_paths(output, window, names, options))
        found = predictor.predict(
            [item.source for item in window],
            job.search,
            rows=options.batch_size,
            work=PredictWork(options.batch_tokens, first),
        )
        first += len(window)
        for item, path, prediction in zip(window, paths, found, strict=True):
            job.warnings.add(prediction)
            prediction.value.save(path)
            sys.stdout.write(_line(item, path, prediction, options.format.json_lines))
    job.warnings.print()


def _checked(options: PredictOptions) -> Path:
    """Return the output. Raise UserError if there is none, or options cannot be combined."""
    if options.output is None:
        raise UserError(
            "no output: this model makes sounds, which are written to files",
            help="add --output FOLDER, or --output FILE.wav for one text",
        )
    unsupported = {
        "--shard": options.shard,
        "--ensemble": options.ensemble,
        "--rescore": options.rescore,
        "--shortlist": options.shortlist,
        "--token-scores": options.format.token_scores,
        "--input-json": options.input_json,
        "several processes": parallel.world_size() > 1,
    }
    if named := [name for name, value in unsupported.items() if value]:
        raise UserError(f"{', '.join(named)}: not supported for models that make sounds")
    output = options.output
    if output.suffix.lower() == SUFFIX:
        if len(options.texts) != 1:
            raise UserError(
                f"--output {output}: one file, but several texts", help="use --output FOLDER"
            )
    elif output.suffix.lower() in SUFFIXES:
        raise UserError(
            f"--output {output}: sounds are written as WAV: expected a folder or *{SUFFIX}",
            help=f"use --output {output.with_suffix(SUFFIX)}",
        )
    elif output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: expected a folder, found a file")
    folder = output.parent if output.suffix.lower() == SUFFIX else output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--output {output}: cannot write: {error.strerror}") from error
    return output


def _check_speaker(predictor: Predictor, search: Any) -> None:
    """Print which speaker is used, if the model has several and none was selected.

    Raise UserError if the selected one is unknown.
    """
    task: Any = predictor.task
    task.speaker(search.speaker)
    if search.speaker is None and len(task.speakers) > 1:
        others = ", ".join(task.speakers[1:])
        note(f"speaker {task.speakers[0]}, the most common one; --speaker selects {others}")


def _paths(
    output: Path, window: list[InputItem], names: set[str], options: PredictOptions
) -> Iterator[Path]:
    """Yield the file of each item. names: of earlier files; those of the window are added."""
    for item in window:
        path = output
        if output.suffix.lower() != SUFFIX:
            stem, number = name_of(item.text), 2
            name = stem
            while name in names:
                name, number = f"{stem}-{number}", number + 1
            names.add(name)
            path = output / f"{name}{SUFFIX}"
        if path.exists() and not options.force:
            raise UserError(
                f"{path}: the file exists",
                help="choose another --output, or overwrite it with --force",
            )
        yield path


def name_of(text: str) -> str:
    """Return the name of the file for a text: its words, joined by hyphens."""
    return "-".join(re.findall(r"\w+", text))[:MAX_NAME] or "sound"


def _line(item: InputItem, path: Path, found: Prediction, as_json: bool) -> str:
    """Return the line that is printed for a file."""
    if not as_json:
        return f"{item.text}\t{path}\n"
    record = {"source": item.text, "file": str(path), "seconds": round(found.value.seconds, 3)}
    return json.dumps(record, ensure_ascii=False) + "\n"
