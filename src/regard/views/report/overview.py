"""Summaries of runs: find run folders, read states and scores, compare settings."""

import datetime
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.yaml_text import InvalidYaml, parse_yaml
from regard.core.errors import UserError
from regard.core.options import flatten
from regard.storage.run_folder import Record, RunFolder, number, numbers, read_folder
from regard.views.report.score_table import Headline, headline

RUN_FILES = ("run.json", "config.yaml", "metrics.jsonl", "model.safetensors", "version.txt")
MAX_IDLE_SECONDS = 60.0  # an unfinished run without a new log line for longer has stopped


@dataclass(frozen=True)
class RunSummary:
    """A summary of a run. changed: names of settings with another value than their default."""

    folder: Path
    run: RunFolder
    state: str  # finished, running, stopped, imported or corrupted
    data: str
    started: datetime.datetime
    settings: Record
    changed: set[str]
    best: Headline | None
    notes: list[str]

    @property
    def task(self) -> str:
        """The kind of task, such as `tag`; empty if unknown."""
        return str(self.run.facts.get("task") or "")

    @property
    def metric(self) -> str:
        """The name of the main metric; empty if unknown."""
        return self.best.metric if self.best else str(self.run.facts.get("metric") or "")

    @property
    def parameters(self) -> float | None:
        """The number of model parameters; None if unknown."""
        return number(self.run.facts.get("parameters"))

    def most(self, key: str) -> float | None:
        """Return the largest value of a key in the log, such as the last step."""
        return self.run.most(key)

    @property
    def speed(self) -> float | None:
        """The mean target tokens per second in training; None if unknown."""
        counted = [
            (tokens, tokens / rate)
            for line in self.run.train
            if (tokens := number(line.get("tokens")))
            and (rate := number(line.get("tokens_per_second")))
        ]
        return sum(t for t, _ in counted) / sum(s for _, s in counted) if counted else None


def summarize(folder: Path) -> RunSummary:
    """Return the summary of a run folder."""
    run = read_folder(folder)
    notes = list(run.notes)
    settings = _settings(run.config, notes)
    for name, content in (("run.json", run.facts), ("config.yaml", run.config.strip())):
        if not content and not any(note.startswith(name) for note in notes):
            notes.append(f"{name} is missing or empty.")
    corrupted = not run.facts or not settings
    changed = run.settings.get("changed")
    return RunSummary(
        folder=folder,
        run=run,
        state="corrupted" if corrupted else _state(folder, run),
        data=_data(run.facts),
        started=_started(folder, run.facts),
        settings=settings,
        changed=set(changed) if isinstance(changed, dict) else set(settings),
        best=headline(run),
        notes=notes,
    )


def find_runs(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return all run folders in a folder, and the direct subfolders that contain no run."""
    if not folder.is_dir():
        what = "expected a folder, found a file" if folder.exists() else "no such folder"
        raise UserError(f"{folder}: {what}")
    if is_run(folder):
        return [folder], []
    runs: list[Path] = []
    others: list[Path] = []
    for child in _folders(folder):
        below = list(_runs_in(child))
        runs += below
        others += [] if below else [child]
    return runs, others


def is_run(folder: Path) -> bool:
    """Return whether a folder is a run, perhaps a corrupted one: it has two of `RUN_FILES`."""
    return sum((folder / name).is_file() for name in RUN_FILES) >= 2


def differing_settings(runs: Sequence[RunSummary]) -> list[str]:
    """Return the names of settings that differ between runs, those that end in `.kind` first.

    Settings of one kind, such as of a Transformer, are compared among the runs of that kind. A
    setting may be missing for another reason, such as an older version of regard. Then it differs
    if a run changed it from its default.
    """
    readable = [run for run in runs if run.settings]
    keys = dict.fromkeys(key for run in readable for key in run.settings)
    kinds = {key for key in keys if key.endswith(".kind") and _values(readable, key) > 1}
    found = []
    for key in keys:
        having = [run for run in readable if key in run.settings]
        parents = {f"{key[:end]}.kind" for end, char in enumerate(key) if char == "."} - {key}
        lacking = len(having) < len(readable) and not parents & kinds
        if _values(having, key) > 1 or (lacking and any(key in run.changed for run in having)):
            found.append(key)
    return sorted(found, key=lambda key: not key.endswith(".kind"))


def _values(runs: Sequence[RunSummary], key: str) -> int:
    return len({repr(run.settings[key]) for run in runs if key in run.settings})


def short_names(keys: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the shortest unambiguous suffix of each dotted key. known: all keys."""
    names = {}
    for key in keys:
        parts = key.split(".")
        for count in range(2 if parts[-1] == "kind" else 1, len(parts) + 1):
            names[key] = ".".join(parts[-count:])
            if sum(f".{other}".endswith(f".{names[key]}") for other in {*known, key}) == 1:
                break
    return names


def format_setting(value: Any) -> str:
    """Return a setting as text."""
    if isinstance(value, float):
        return f"{value:g}"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return ",".join(map(format_setting, value)) if isinstance(value, list) else str(value)


def _folders(folder: Path) -> list[Path]:
    """Return the subfolders that are not hidden; links only if they point to a run."""
    children = sorted(path for path in folder.iterdir() if path.is_dir())
    visible = [path for path in children if not path.name.startswith(".")]
    return [path for path in visible if not path.is_symlink() or is_run(path)]


def _runs_in(folder: Path) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    for child in _folders(folder):
        yield from _runs_in(child)


def _settings(config: str, notes: list[str]) -> Record:
    try:
        tree = parse_yaml(config)
    except InvalidYaml:
        tree = "broken"
    if tree is not None and not isinstance(tree, dict):
        notes.append("config.yaml could not be read and is ignored.")
    return flatten(tree) if isinstance(tree, dict) else {}


def _state(folder: Path, run: RunFolder) -> str:
    """Return the state of a run.

    - `imported`: the model was not trained by regard.
    - `finished`: the log has a final record.
    - `running`: the log was updated recently.
    - `stopped`: otherwise.
    """
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
    idle = time.time() - max(written)
    return "running" if idle < max([MAX_IDLE_SECONDS, *(3 * gap for gap in gaps)]) else "stopped"


def _data(facts: Record) -> str:
    """Return the names of the data files, without their folders."""
    data = facts.get("data")
    if not isinstance(data, dict):
        return ""
    files = [data.get("data")] if data.get("data") else [data.get("source"), data.get("target")]
    return " ".join(Path(str(name)).name for name in files if name)


def _started(folder: Path, facts: Record) -> datetime.datetime:
    """Return the start time of the run; if unknown, when its folder was last modified."""
    try:
        return datetime.datetime.fromisoformat(str(facts.get("started"))).astimezone()
    except ValueError:
        return datetime.datetime.fromtimestamp(folder.stat().st_mtime).astimezone()
