"""The error message for a path that is not a model folder."""

import difflib
from pathlib import Path

MAX_SHOWN = 5  # folders in the message


def not_a_model_message(folder: Path) -> str:
    """Return why a path is not a model folder, and which model folders to use instead."""
    if folder.is_file():
        return f"{folder}: expected a model folder such as runs/words-1, found a file"
    if not folder.is_dir():
        names = [path.name for path in _models_in(folder.parent)]
        near = difflib.get_close_matches(folder.name, names, 1)
        hint = f"did you mean {folder.parent / near[0]}?" if near else "regard runs lists all runs"
        return f"{folder}: no such model folder; {hint}"
    message = f"{folder}: not a model folder (contains no config.yaml)"
    if found := [str(path) for path in _models_in(folder)]:
        more = f" and {len(found) - MAX_SHOWN:,} more" if len(found) > MAX_SHOWN else ""
        return f"{message}; model folders inside: {', '.join(found[:MAX_SHOWN])}{more}"
    return f"{message}; regard runs lists all runs"


def _models_in(folder: Path) -> list[Path]:
    """Return the model folders directly inside a folder."""
    if not folder.is_dir():
        return []
    return sorted(path.parent for path in folder.glob("*/config.yaml"))
