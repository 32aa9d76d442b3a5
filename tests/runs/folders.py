"""What whole runs leave behind, for the tests to check."""

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

FILES = {
    *("config.yaml", "run.json", "settings.json", "check.json", "version.txt"),
    *(
        "vocabulary/input.json",
        "vocabulary/source.json",
        "vocabulary/target.json",
        "vocabulary/task.json",
    ),
    *(
        "model.safetensors",
        "metrics.jsonl",
        "samples.jsonl",
        "scores.json",
        "report.html",
        "baselines.json",
    ),
    *("checkpoint/model.safetensors", "checkpoint/training.safetensors", "checkpoint/state.json"),
    "checkpoint/checksums.json",
}


def files(folder: str | Path) -> dict[str, str]:
    """A digest of each file in a folder."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def records(folder: str | Path, kind: str) -> list[dict[str, Any]]:
    """The lines of this kind in metrics.jsonl."""
    lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def written(folder: str | Path) -> list[dict[str, Any]]:
    """All lines of metrics.jsonl, without what the clock says."""
    lines = (Path(folder) / "metrics.jsonl").read_text().splitlines()
    times = ("elapsed_seconds", "tokens_per_second")
    return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]


def progress(folder: str | Path) -> dict[str, Any]:
    return json.loads((Path(folder) / "checkpoint" / "state.json").read_text())


def stop_at_7(display: Any, run: Any, record: Any, speed: float) -> None:
    """In place of a display's `step`: Ctrl-C after the seventh update."""
    if record.step == 7:
        signal.raise_signal(signal.SIGINT)
