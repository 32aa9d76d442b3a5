"""The folder that a run is written to: its name, its files and its lock."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import stem

PSEUDO_LABELS = "pseudo_labels.jsonl"  # examples with labels and confidence of a teacher
TENSORBOARD = "tensorboard"
BASELINES = "baselines.json"  # fitted baselines
RUN_FILES = (  # all files that training writes; the first one marks a run
    *("run.json", "config.yaml", "settings.json", "check.json", "vocabulary"),
    *("model.safetensors", "checkpoint", "checkpoint.tmp", "checkpoint.prev"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html", PSEUDO_LABELS, TENSORBOARD),
    BASELINES,
    "diagnosis.json",  # by regard diagnose
    "shortlist.safetensors",  # by regard shortlist
    "version.txt",  # written first and deleted last: marks a folder of regard
)
RUNS = Path("runs")
TEMPORARY = r"\..+\.new"


def next_run_folder(name: str) -> Path:
    """Create and return the next free folder under runs/."""
    number = 1
    while True:
        folder = RUNS / f"{stem(name)}-{number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


def is_abandoned(folder: Path) -> bool:
    """Return whether a folder has only files of a run that was killed before its first step."""
    names = {entry.name for entry in folder.iterdir()}
    marked = "version.txt" in names or all(re.fullmatch(TEMPORARY, name) for name in names)
    return marked and not foreign_files(folder)


def foreign_files(folder: Path) -> list[str]:
    """Return the names of files in a run folder that regard did not create."""
    names = sorted(entry.name for entry in folder.iterdir())
    return [n for n in names if n not in RUN_FILES and not re.fullmatch(TEMPORARY, n)]


def delete_run(folder: Path) -> None:
    """Delete the files of an earlier run, starting with `run.json`, which marks a run."""
    if folder.is_dir():
        temporary = [e.name for e in folder.iterdir() if re.fullmatch(TEMPORARY, e.name)]
        for path in [folder / name for name in (*RUN_FILES, *temporary)]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Lock the folder inside the block; raise UserError if another process has locked it.

    A folder that is new and still empty after the block is removed. The system releases the lock
    when the process ends, even if it is killed.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    if folder.parent == RUNS:  # created by next_run_folder
        created = [folder, RUNS]
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UserError(f"{folder}: locked by another training process") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)
        for path in created:
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()
