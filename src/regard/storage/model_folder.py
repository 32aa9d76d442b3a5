"""What to say about a folder that was named as a model and is none."""

import difflib
from pathlib import Path

SHOWN = 5  # folders that are named


def not_a_model_message(folder: Path) -> str:
    """Why this is no folder of a model, and what to give instead."""
    if folder.is_file():
        return f"{folder}: a file, where the folder of a model is expected, such as runs/words-1"
    if not folder.is_dir():
        names = [path.name for path in _models_in(folder.parent)]
        near = difflib.get_close_matches(folder.name, names, 1)
        meant = f"did you mean {folder.parent / near[0]}?" if near else "regard runs lists them"
        return f"{folder}: no such model folder; {meant}"
    here = f"{folder}: not a model folder (no config.yaml in it)"
    if found := [str(path) for path in _models_in(folder)]:
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        return f"{here}; there are models in it: {', '.join(found[:SHOWN])}{more}"
    return f"{here}; regard train makes one, regard runs lists them"


def _models_in(folder: Path) -> list[Path]:
    """The folders of models right in a folder."""
    if not folder.is_dir():
        return []
    return sorted(path.parent for path in folder.glob("*/config.yaml"))
