"""The content of a run folder as plain data. Files may be missing if the run was killed."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.load import MAX_YAML
from regard.core.errors import UserError
from regard.core.files import parse_json, read_bytes

MAX_LOG = 256 * 1024**2  # bytes of metrics.jsonl or samples.jsonl

Record = dict[str, Any]


@dataclass(frozen=True)
class RunFolder:
    """The readable parts of a run folder; `notes` lists what could not be read."""

    facts: Record  # run.json
    train: list[Record]  # metrics.jsonl, by kind
    dev: list[Record]
    final: Record
    samples: list[Record]  # samples.jsonl, of the latest step only
    check: Record
    settings: Record
    diagnosis: Record
    config: str
    notes: list[str]

    def most(self, key: str) -> float | None:
        """Return the largest number stored under a key in metrics.jsonl, such as the last step."""
        return max(numbers([*self.train, *self.dev, self.final], key), default=None)


def read_folder(folder: Path) -> RunFolder:
    """Return the content of a run folder. Missing files are empty; corrupted files add a note."""
    if not folder.is_dir():
        raise UserError(f"{folder}: no such run folder")
    notes: list[str] = []
    metrics = _read_lines(folder / "metrics.jsonl", notes)
    samples = _read_lines(folder / "samples.jsonl", notes)
    steps = [number(sample.get("step")) or 0.0 for sample in samples]
    latest = max(steps, default=0.0)
    finals = [line for line in metrics if line.get("kind") == "final"]
    return RunFolder(
        facts=_read_object(folder / "run.json", notes),
        train=[line for line in metrics if line.get("kind") == "train"],
        dev=[line for line in metrics if line.get("kind") == "dev"],
        final=finals[-1] if finals else {},
        samples=[one for one, step in zip(samples, steps, strict=True) if step == latest],
        check=_read_object(folder / "check.json", notes),
        settings=_read_object(folder / "settings.json", notes),
        diagnosis=_read_object(folder / "diagnosis.json", notes),
        config=_read_config(folder / "config.yaml", notes),
        notes=notes,
    )


def number(value: object) -> float | None:
    """Return the value as a finite number, or None: NaN and infinity cannot be plotted."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def numbers(records: list[Record], key: str) -> list[float]:
    """Return the finite numbers that the records store under a key."""
    return [value for record in records if (value := number(record.get(key))) is not None]


def points(records: list[Record], *path: str, over: str = "step") -> list[tuple[float, float]]:
    """Return (step, value) of each record that stores a finite number under the nested keys `path`.

    over: key of the x-value to use instead of the step.
    """
    found = []
    for record in records:
        value: Any = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        step, height = number(record.get(over)), number(value)
        if step is not None and height is not None:
            found.append((step, height))
    return found


def _read_config(path: Path, notes: list[str]) -> str:
    if not path.exists():
        return ""
    try:
        return read_bytes(path, MAX_YAML).decode("utf-8", errors="replace")
    except OSError as error:
        notes.append(f"{path.name} could not be read: {error.strerror}.")
        return ""


def _read_object(path: Path, notes: list[str]) -> Record:
    if not path.exists():
        return {}
    try:
        content = parse_json(read_bytes(path).decode("utf-8"))
    except (ValueError, OSError):
        content = None
    if not isinstance(content, dict):
        notes.append(f"{path.name} could not be read.")
        return {}
    return content


def _read_lines(path: Path, notes: list[str]) -> list[Record]:
    if not path.exists():
        return []
    try:
        content = read_bytes(path, MAX_LOG)
    except OSError as error:
        notes.append(f"{path.name} could not be read: {error.strerror}.")
        return []
    records, broken = [], 0
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            records.append(record)
        else:
            broken += 1
    if broken:
        notes.append(f"{path.name}: {broken} unreadable lines skipped.")
    return records
