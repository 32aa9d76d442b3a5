"""What a run folder says of itself: its configuration, its version, its data."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config.load import Config, check_config, read_yaml
from regard.core.errors import UserError
from regard.core.files import read_json
from regard.data.sources.builtin import is_builtin
from regard.data.sources.open import DataSpec
from regard.storage.model_folder import not_a_model_message

FORMAT = 3  # of the run folder: one with another number is not understood


def _check_version(folder: Path) -> None:
    """Refuses a run folder of another regard, whose settings and files have other names."""
    path = folder / "run.json"
    facts = read_json(path) if path.exists() else {}
    form, made = facts.get("format", FORMAT), f"{folder}: made by regard {facts.get('version')}"
    if form > FORMAT:
        raise UserError(f"{made}, which is newer than this one; update with pip install -U regard")
    if form < FORMAT:
        raise UserError(
            f"{made}, whose settings and files have other names (format {form}, {FORMAT} expected);"
            " use it with that version, or train it again"
        )


def trained_on(folder: Path) -> dict[str, Any]:
    """Where the training data of a run lay, and its columns, as far as that is known."""
    path = folder / "run.json"
    return (read_json(path).get("data") or {}) if path.exists() else {}


def trained_columns(place: DataSpec, folder: Path) -> DataSpec:
    """The place with the columns that a run was trained on, where the user names none."""
    named = place.source_column or place.target_column
    if named or place.data is None or is_builtin(place.data):
        return place
    trained = trained_on(folder)
    source, target = trained.get("source_column"), trained.get("target_column")
    return replace(place, source_column=source, target_column=target)


def read_config(folder: Path) -> Config:
    """The filled configuration of a run folder; refused where it is of another version."""
    path = folder / "config.yaml"
    if not path.is_file():
        raise UserError(not_a_model_message(folder))
    _check_version(folder)
    tree = read_yaml(path)
    if not tree:
        raise UserError(f"{path}: empty, so the model folder is damaged; copy it anew")
    return check_config(tree, str(path))
