"""The folder that a run is written into: a free one, which nobody else writes into, and clean."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import stem

PSEUDO_LABELS = "pseudo_labels.jsonl"  # what a teacher labeled, and how surely
TENSORBOARD = "tensorboard"
RUN_FILES = (  # all that training writes; the first one says that a run is there
    *("run.json", "config.yaml", "settings.json", "check.json", "vocabulary"),
    *("model.safetensors", "checkpoint", "checkpoint.tmp", "checkpoint.prev"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html", PSEUDO_LABELS, TENSORBOARD),
    "diagnosis.json",  # of regard diagnose
    "shortlist.safetensors",  # of regard shortlist
    "version.txt",  # the first that is written and the last that is deleted: the folder is ours
)
RUNS = Path("runs")
HALF_WRITTEN = r"\..+\.new"


def next_run_folder(name: str) -> Path:
    """The next free folder under runs/, made at once, so that no other run takes it."""
    number = 1
    while True:
        folder = RUNS / f"{stem(name)}-{number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


def is_abandoned(folder: Path) -> bool:
    """Whether all that lies in a folder is certainly what an unfinished start left there."""
    names = {entry.name for entry in folder.iterdir()}
    marked = "version.txt" in names or all(re.fullmatch(HALF_WRITTEN, name) for name in names)
    return marked and not foreign_files(folder)


def foreign_files(folder: Path) -> list[str]:
    """What lies in a run folder that training did not write."""
    names = sorted(entry.name for entry in folder.iterdir())
    return [n for n in names if n not in RUN_FILES and not re.fullmatch(HALF_WRITTEN, n)]


def delete_run(folder: Path) -> None:
    """Deletes all that an earlier run left; first what says that a run is there."""
    if folder.is_dir():
        halves = [e.name for e in folder.iterdir() if re.fullmatch(HALF_WRITTEN, e.name)]
        for path in [folder / name for name in (*RUN_FILES, *halves)]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Only this process writes into the folder; a new one that nothing was put into goes away.

    The system lets go of it when the process ends, however it ends.
    """
    fresh = [place for place in (folder, *folder.parents) if not place.exists()]
    if folder.parent == RUNS:  # made when its number was chosen
        fresh = [folder, RUNS]
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UserError(f"{folder}: another process is training in it; wait for its end") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)
        for place in fresh:
            with contextlib.suppress(OSError):  # something lies in it
                place.rmdir()
