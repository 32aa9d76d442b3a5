"""Configuration, version and data of a run folder."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config.load import Config, check_config, read_yaml
from regard.core.errors import UserError
from regard.core.files import corrupted, read_object, shorten
from regard.data.reading.image_arrays import is_npz
from regard.data.sources.builtin import is_builtin
from regard.data.sources.open import DataSpec
from regard.storage.model_folder import not_a_model_message

FORMAT_VERSION = 4  # of the run folder; other versions are not supported


def _check_version(folder: Path) -> None:
    """Raise UserError if a run folder has another format version."""
    metadata = run_metadata(folder)
    found = metadata.get("format", FORMAT_VERSION)
    if isinstance(found, bool) or not isinstance(found, int):
        raise corrupted(folder / "run.json", f"format: expected a number, found {shorten(found)}")
    created = f"{folder}: created by regard {metadata.get('version')}"
    if found > FORMAT_VERSION:
        raise UserError(f"{created}, which is newer", help="pip install -U regard")
    if found < FORMAT_VERSION:
        raise UserError(
            f"{created}: expected run folder format {FORMAT_VERSION}, found {found}",
            help="use it with that version, or train it again",
        )


def run_metadata(folder: Path) -> dict[str, Any]:
    """Return the content of `run.json`, or {} if it does not exist."""
    path = folder / "run.json"
    return read_object(path) if path.exists() else {}


def trained_on(folder: Path) -> dict[str, Any]:
    """Return the paths and columns of a run's training data, or {} if they are unknown."""
    data = run_metadata(folder).get("data")
    return data if isinstance(data, dict) else {}


def trained_columns(spec: DataSpec, folder: Path) -> DataSpec:
    """Return the data spec with the columns of the training data, unless the spec names columns.

    The column of splits is used if the spec names a split or the training data itself.
    """
    if spec.data is None or is_builtin(spec.data):
        return spec
    trained = trained_on(folder)
    names = ["id_column", "graph_column", "speaker_column"]
    if spec.split or os.path.abspath(spec.data) == trained.get("data"):
        names.append("split_column")
    same = is_npz(spec.data) == is_npz(trained.get("data") or "")  # columns or names of arrays
    if same and not (spec.source_column or spec.target_column):
        names += ["source_column", "target_column"]
    found: dict[str, Any] = {name: getattr(spec, name) or trained.get(name) for name in names}
    return replace(spec, **found)


def read_config(folder: Path) -> Config:
    """Return the complete configuration of a run folder."""
    path = folder / "config.yaml"
    if not path.exists():
        raise UserError(not_a_model_message(folder))
    _check_version(folder)
    tree = read_yaml(path)
    if not tree:
        raise UserError(f"{path}: empty", help="the model folder is corrupted; copy it again")
    return check_config(tree, str(path))
