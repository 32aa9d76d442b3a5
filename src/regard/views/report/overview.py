"""Several runs beside each other: where they lie, what each came to, and what sets them apart."""

import datetime
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from regard.core.errors import UserError
from regard.core.options import flatten
from regard.storage.run_folder import Record, RunFolder, number, numbers, read_folder
from regard.views.report.score_table import Headline, headline

SIGNS = ("run.json", "config.yaml", "metrics.jsonl", "model.safetensors", "version.txt")
QUIET_SECONDS = 60.0  # without a new line in its log, a run that is not finished has stopped


@dataclass(frozen=True)
class Summary:
    """A run in short. `settings` are all of them; `changed` names those that are no default."""

    folder: Path
    run: RunFolder
    state: str  # finished, running, stopped, imported, damaged
    data: str
    started: datetime.datetime
    settings: Record
    changed: set[str]
    best: Headline | None
    notes: list[str]

    @property
    def task(self) -> str:
        """The kind of the task."""
        return str(self.run.facts.get("task") or "")

    @property
    def metric(self) -> str:
        """The name of the main measure."""
        return self.best.metric if self.best else str(self.run.facts.get("metric") or "")

    @property
    def parameters(self) -> float | None:
        """How many numbers were trained."""
        return number(self.run.facts.get("parameters"))

    def most(self, key: str) -> float | None:
        """The largest number under a key in the log, such as the last step."""
        return self.run.most(key)

    @property
    def speed(self) -> float | None:
        """Target tokens a second, of training only."""
        counted = [
            (tokens, tokens / rate)
            for line in self.run.train
            if (tokens := number(line.get("tokens")))
            and (rate := number(line.get("tokens_per_second")))
        ]
        return sum(t for t, _ in counted) / sum(s for _, s in counted) if counted else None


def summarize(folder: Path) -> Summary:
    """What a run folder says about its run."""
    run = read_folder(folder)
    notes = list(run.notes)
    settings = _settings(run.config, notes)
    for name, content in (("run.json", run.facts), ("config.yaml", run.config.strip())):
        if not content and not any(note.startswith(name) for note in notes):
            notes.append(f"{name} is missing or empty.")
    damaged = not run.facts or not settings
    changed = run.settings.get("changed")
    return Summary(
        folder=folder,
        run=run,
        state="damaged" if damaged else _state(folder, run),
        data=_data(run.facts),
        started=_started(folder, run.facts),
        settings=settings,
        changed=set(changed) if isinstance(changed, dict) else set(settings),
        best=headline(run),
        notes=notes,
    )


def find_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """The run folders in a folder, however deep, and the folders in it that hold no run."""
    if not folder.is_dir():
        what = "a file, where a folder of runs" if folder.exists() else "no such folder; one"
        raise UserError(f"{folder}: {what} is expected")
    if is_run(folder):
        return [folder], []
    found: list[Path] = []
    strange: list[Path] = []
    for child in _folders(folder):
        below = list(_runs_in(child))
        found += below
        strange += [] if below else [child]
    return found, strange


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, even a damaged one: two of the files that each run has."""
    return sum((folder / name).is_file() for name in SIGNS) >= 2


def differing(runs: Sequence[Summary]) -> list[str]:
    """The settings that are not the same in all runs, kinds first.

    What only one kind of a part has is told by the kind; it counts where runs of that kind differ.
    A setting that is missing for no such reason counts where another run changed it: a run may
    come from a version that had no such setting yet.
    """
    whole = [run for run in runs if run.settings]
    keys = dict.fromkeys(key for run in whole for key in run.settings)
    kinds = {key for key in keys if key.endswith(".kind") and _values(whole, key) > 1}
    found = []
    for key in keys:
        having = [run for run in whole if key in run.settings]
        parents = {f"{key[:end]}.kind" for end, sign in enumerate(key) if sign == "."} - {key}
        lacking = len(having) < len(whole) and not parents & kinds
        if _values(having, key) > 1 or (lacking and any(key in run.changed for run in having)):
            found.append(key)
    return sorted(found, key=lambda key: not key.endswith(".kind"))


def _values(runs: Sequence[Summary], key: str) -> int:
    return len({repr(run.settings[key]) for run in runs if key in run.settings})


def short_names(keys: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """For each key the fewest of its last parts that mean no other known key."""
    names = {}
    for key in keys:
        parts = key.split(".")
        for count in range(2 if parts[-1] == "kind" else 1, len(parts) + 1):
            names[key] = ".".join(parts[-count:])
            if sum(f".{other}".endswith(f".{names[key]}") for other in {*known, key}) == 1:
                break
    return names


def plain(value: Any) -> str:
    """A setting as text."""
    if isinstance(value, float):
        return f"{value:g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return ",".join(map(plain, value)) if isinstance(value, list) else str(value)


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder; hidden ones and links that lead to no run are left alone."""
    children = sorted(path for path in folder.iterdir() if path.is_dir())
    seen = [path for path in children if not path.name.startswith(".")]
    return [path for path in seen if not path.is_symlink() or is_run(path)]


def _runs_in(folder: Path) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    for child in _folders(folder):
        yield from _runs_in(child)


def _settings(config: str, notes: list[str]) -> Record:
    try:
        tree = yaml.safe_load(config)
    except yaml.YAMLError:
        tree = "broken"
    if tree is not None and not isinstance(tree, dict):
        notes.append("config.yaml could not be read and was left out.")
    return flatten(tree) if isinstance(tree, dict) else {}


def _state(folder: Path, run: RunFolder) -> str:
    """Imported if never trained here; finished if it has its final scores; running if its log
    grew not long ago."""
    if run.facts.get("imported"):
        return "imported"
    if run.final:
        return "finished"
    times = numbers(run.train, "elapsed_seconds")
    gaps = [after - before for before, after in itertools.pairwise(times)]
    written = [
        path.stat().st_mtime
        for name in ("metrics.jsonl", "run.json", "checkpoint")
        if (path := folder / name).exists()
    ]
    quiet = time.time() - max(written)
    return "running" if quiet < max([QUIET_SECONDS, *(3 * gap for gap in gaps)]) else "stopped"


def _data(facts: Record) -> str:
    """The names of the data files, without their folders."""
    place = facts.get("data")
    if not isinstance(place, dict):
        return ""
    files = [place.get("data")] if place.get("data") else [place.get("source"), place.get("target")]
    return " ".join(Path(str(name)).name for name in files if name)


def _started(folder: Path, facts: Record) -> datetime.datetime:
    """When the run began; where it does not say so, when its folder was last changed."""
    try:
        return datetime.datetime.fromisoformat(str(facts.get("started"))).astimezone()
    except ValueError:
        return datetime.datetime.fromtimestamp(folder.stat().st_mtime).astimezone()
