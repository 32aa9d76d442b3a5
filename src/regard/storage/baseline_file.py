"""The fitted baselines of a run in its folder: `baselines.json`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from regard.baselines import Baseline, BaselineFit, StoredBaselines
from regard.core.errors import UserError
from regard.core.files import read_json, write_json
from regard.core.options import Options
from regard.storage.output_folder import BASELINES


class BaselineFile(Options):
    """The content of the file. sample: which part of the training set was used; empty: all."""

    format: Literal[1] = 1
    sample: str = ""
    baselines: tuple[StoredBaselines, ...]


def write_baselines(folder: Path, baselines: Iterable[Baseline], sample: str) -> None:
    """Write the baselines that are small enough to be stored. sample: see `BaselineFile`."""
    stored = tuple(one for one in baselines if one.stored)
    content = BaselineFile.model_validate({"sample": sample, "baselines": stored})
    write_json(folder / BASELINES, content.model_dump(mode="json"))


def read_baselines(folder: Path, fits: Sequence[BaselineFit]) -> BaselineFile | None:
    """Return the stored baselines, or None without a file; raise UserError if it is corrupted.

    fits: the baselines of the task. Others are an error.
    """
    path = folder / BASELINES
    if not path.exists():
        return None
    tree = read_json(path)
    try:
        found = BaselineFile.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise _corrupted(path, f"{where}: {first['msg']}") from error
    known = {one.name for one in fits if one.stored}
    for one in found.baselines:
        if one.name not in known:
            raise _corrupted(path, f"{one.kind} is not a baseline of this task")
    return found


def _corrupted(path: Path, reason: str) -> UserError:
    return UserError(f"{path}: corrupted: {reason}", help="copy the model folder again")
