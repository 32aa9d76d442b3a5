"""Pseudo-labeled examples (labeled by a teacher model) in a run folder."""

import json
from pathlib import Path
from typing import Any

from regard.core.files import read_json_lines, write_text
from regard.data.reading.read import Pair
from regard.storage.output_folder import PSEUDO_LABELS


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
    rows = read_json_lines(folder / PSEUDO_LABELS)
    return [Pair(_side(row["source"]), tuple(row["target"]), 0) for row in rows]


def _side(value: Any) -> Any:
    return value if isinstance(value, str) else tuple(value)
