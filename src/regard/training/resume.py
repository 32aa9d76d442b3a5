"""`regard train --resume`: a run goes on from its newest whole checkpoint."""

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
from regard.training.start import resume_run
from regard.training.train_folder import TrainArgs
from regard.views.report import write_report


def resume(args: TrainArgs, print_config: bool) -> Run | None:
    """The run of a folder, as it was saved; None where it is finished."""
    folder = args.out
    assert folder is not None
    config = read_config(folder)
    facts = read_json(folder / "run.json")
    if facts.get("imported"):
        raise UserError(
            f"--resume: {folder} was imported, not trained here, so there is nothing to go on "
            f"with; train it further with --init-from {folder}"
        )
    _refuse_changes(args, folder, config, facts.get("processes", 1))
    _refuse_others(args, folder, facts)
    if print_config:
        if parallel.is_main_process():
            print(config.dump(), end="")
        return None
    place = args.place if args.place.is_given() else DataSpec(**facts.get("data", {}))
    dev = args.dev if args.dev.is_given() else DataSpec(**facts.get("dev", {}))
    data = parallel.main_process_first(lambda: config.task.open(place, dev))
    surely = read_pseudo_labels(folder)
    run = resume_run(folder, [*data.train, *surely] if surely else data.train, data.dev)
    if run.state.finished and (folder / "scores.json").exists():
        info(f"{folder}: finished after {run.state.step} steps; nothing is left to do")
        if parallel.is_main_process():
            write_report(folder)  # it may have been killed before that
        return None
    if parallel.is_main_process():
        for half in folder.glob(".*.new"):
            half.unlink()
        for name in ("metrics.jsonl", "samples.jsonl"):
            _forget(folder / name, run.state)
    return run


def _refuse_others(args: TrainArgs, folder: Path, facts: dict[str, Any]) -> None:
    """A resumed run started from what it started from."""
    asked = {"init_from": args.init_from and str(args.init_from), "unlabeled": args.unlabeled}
    for name, option in (("init_from", "--init-from"), ("unlabeled", "--unlabeled")):
        if asked[name] and asked[name] != facts.get(name):
            raise UserError(
                f"--resume: {folder} began {option} {facts.get(name)}, {asked[name]} was asked "
                "for. Start anew with another --out to change that"
            )


def _forget(path: Path, state: TrainingState) -> None:
    """Drops the lines of a log after a checkpoint: a killed run does that part again."""
    text = path.read_text("utf-8") if path.exists() else ""
    whole = text.split("\n")[:-1]  # what follows the last line end was cut short
    kept = "".join(f"{line}\n" for line in whole if _step(line) <= _last(line, state))
    if kept != text:
        write_text(path, kept)


def _last(line: str, state: TrainingState) -> int:
    """The last step whose line of this kind was there when the checkpoint was written."""
    trains = '"kind": "train"' in line
    there = not state.log_window if trains else state.validated_step == state.step
    return state.step if there else state.step - 1


def _step(line: str) -> float:
    """The step of a line of a log; infinite for one that cannot be read, and for final scores."""
    try:
        record = json.loads(line)
        return math.inf if record.get("kind") == "final" else float(record["step"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return math.inf


def _refuse_changes(args: TrainArgs, folder: Path, config: Config, processes: int) -> None:
    """A resumed run keeps its settings: those the user names must be the same.

    Only the batches of one process in an update may change where the number of processes does.
    """
    wanted = flatten(load_config(args.recipe, args.settings).model_dump(mode="json"))
    named = read_recipe(args.recipe) if args.recipe else {}
    for setting in args.settings:
        put(named, setting)
    ours = flatten(config.model_dump(mode="json"))
    for key in flatten(named):
        value = wanted.get(key)
        if key == "training.budget" and args.unlabeled and not args.teacher and value:
            value /= 2  # the other half was the teacher's
        if key == "training.accumulation_steps" and value:
            value = value * parallel.world_size() / processes
        if value not in (None, "auto") and ours.get(key) != value:
            raise UserError(
                f"--resume: {key} is {ours.get(key)} in {folder}, {value} was asked for; a resumed "
                "run keeps its settings. Start anew with another --out to change them"
            )
