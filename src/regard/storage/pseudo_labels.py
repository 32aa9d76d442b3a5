"""Pseudo-labeled examples (labeled by a teacher model) in a run folder."""

import json
from pathlib import Path
from typing import Any

from regard.core.files import corrupted, read_json_lines, write_text
from regard.data.reading.read import Pair
from regard.storage.output_folder import PSEUDO_LABELS

MAX_PSEUDO_LABELS = 1024**3  # bytes


def write_pseudo_labels(folder: Path, examples: list[tuple[Pair, float]]) -> None:
    """Write examples and their confidence as JSON lines, for inspection and for resuming."""
    rows = [
        {"source": pair.source, "target": pair.target, "confidence": round(confidence, 6)}
        for pair, confidence in examples
    ]
    write_text(
        folder / PSEUDO_LABELS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    )


def read_pseudo_labels(folder: Path) -> list[Pair]:
    """Return the examples that `write_pseudo_labels` wrote, or [] if the file does not exist."""
    path = folder / PSEUDO_LABELS
    rows = read_json_lines(path, MAX_PSEUDO_LABELS)
    try:
        return [Pair(_side(row["source"]), tuple(row["target"]), 0) for row in rows]
    except (KeyError, TypeError) as error:
        raise corrupted(path, str(error)) from error


def _side(value: Any) -> Any:
    return value if isinstance(value, str) else tuple(value)
