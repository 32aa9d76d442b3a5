"""`regard train --resume`: continue a run from its newest intact checkpoint."""

import json
import math
from pathlib import Path
from typing import Any

from regard.config.load import Config, flatten, load_config, put, read_recipe
from regard.core import parallel
from regard.core.errors import UserError, info
from regard.core.files import read_json, write_text
from regard.data.sources.open import DataSpec
from regard.storage.pseudo_labels import read_pseudo_labels
from regard.storage.run_files import read_config
from regard.training.run import Run, TrainingState
from regard.training.search_tuning import restore_settings
from regard.training.start import resume_run
from regard.training.train_folder import TrainArgs
from regard.views.report import update_report


def resume(args: TrainArgs, print_config: bool) -> Run | None:
    """Return the run in `args.out`, restored from its checkpoint, or None if it is finished.

    With print_config, print the configuration and return None.
    """
    folder = args.out
    assert folder is not None
    config = read_config(folder)
    metadata = read_json(folder / "run.json")
    if metadata.get("imported"):
        raise UserError(
            f"--resume: {folder} was imported and has no training state",
            help=f"train it further with --init-from {folder}",
        )
    _check_settings(args, folder, config, metadata.get("processes", 1))
    _check_inputs(args, folder, metadata)
    if print_config:
        if parallel.is_main_process():
            print(config.dump(), end="")
        return None
    train = args.data if args.data.is_given() else DataSpec.from_record(metadata.get("data", {}))
    dev = args.dev if args.dev.is_given() else DataSpec.from_record(metadata.get("dev", {}))
    data = parallel.main_process_first(lambda: config.task.open(train, dev))
    data.train, _ = config.task.sample(data.train, config.training.seed)
    pseudo_labels = read_pseudo_labels(folder)
    run = resume_run(
        folder, [*data.train, *pseudo_labels] if pseudo_labels else data.train, data.dev
    )
    if run.state.finished and (folder / "scores.json").exists():
        info(f"{folder}: already finished ({run.state.step} steps)")
        if parallel.is_main_process():
            update_report(folder)  # the run may have been killed before writing it
        return None
    restore_settings(run)
    if parallel.is_main_process():
        for temporary in folder.glob(".*.new"):
            temporary.unlink()
        for name in ("metrics.jsonl", "samples.jsonl"):
            _truncate_log(folder / name, run.state)
    return run


def _check_inputs(args: TrainArgs, folder: Path, metadata: dict[str, Any]) -> None:
    """Raise UserError if --init-from or --unlabeled differ from what the run started with."""
    options = {"init_from": args.init_from and str(args.init_from), "unlabeled": args.unlabeled}
    for name, option in (("init_from", "--init-from"), ("unlabeled", "--unlabeled")):
        if options[name] and options[name] != metadata.get(name):
            raise UserError(
                f"--resume: {folder} started with {option} {metadata.get(name)}, "
                f"got {options[name]}",
                help="start a new run with another --out",
            )


def _truncate_log(path: Path, state: TrainingState) -> None:
    """Drop the log lines written after the checkpoint; the resumed run writes them again."""
    text = path.read_text("utf-8") if path.exists() else ""
    lines = text.split("\n")[:-1]  # text after the last newline is an incomplete line
    kept = "".join(f"{line}\n" for line in lines if _step(line) <= _last(line, state))
    if kept != text:
        write_text(path, kept)


def _last(line: str, state: TrainingState) -> int:
    """Return the last step whose lines to keep: that of the checkpoint, or the previous step.

    The checkpoint may have been saved before the line of its step was written.
    """
    is_train = '"kind": "train"' in line
    is_logged = not state.log_window if is_train else state.validated_step == state.step
    return state.step if is_logged else state.step - 1


def _step(line: str) -> float:
    """Return the step of a log line; infinite for final scores and unreadable lines."""
    try:
        record = json.loads(line)
        return math.inf if record.get("kind") == "final" else float(record["step"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return math.inf


def _check_settings(args: TrainArgs, folder: Path, config: Config, processes: int) -> None:
    """Raise UserError if a setting differs from the saved setting of the run.

    Only training.accumulation_steps may change. Its product with the number of processes, the
    batches per update, must stay the same. processes: their number at the start of the run.
    """
    requested = flatten(load_config(args.recipe, args.settings).model_dump(mode="json"))
    named = read_recipe(args.recipe) if args.recipe else {}
    for setting in args.settings:
        put(named, setting)
    saved = flatten(config.model_dump(mode="json"))
    for key in flatten(named):
        value = requested.get(key)
        if key == "training.budget" and args.unlabeled and not args.teacher and value:
            value /= 2  # the teacher used the other half
        if key == "training.accumulation_steps" and value:
            value = value * parallel.world_size() / processes
        if value not in (None, "auto") and saved.get(key) != value:
            raise UserError(
                f"--resume: {key} is {saved.get(key)} in {folder}, got {value}; settings cannot "
                "change on resume",
                help="start a new run with another --out",
            )
