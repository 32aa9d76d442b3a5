"""The folder of a run: which one, that nobody else writes into it, and that it is clean."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from regard.cli.commands.resume import TrainArgs, newest_run
from regard.core import parallel
from regard.core.errors import UserError, say
from regard.core.files import read_json
from regard.data.reading.lines import stem
from regard.experiments.pseudo import PSEUDO
from regard.training.tensorboard import FOLDER

RUN_FILES = (  # all that training writes; the first one says that a run is there
    *("run.json", "config.yaml", "settings.json", "check.json", "vocabulary"),
    *("model.safetensors", "last", "last.new", "last.old"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html", PSEUDO, FOLDER),
    "diagnosis.json",  # of regard diagnose
    "shortlist.safetensors",  # of regard shortlist
    "version.txt",  # the first that is written and the last that is deleted: the folder is ours
)
RUNS = Path("runs")
HALF_WRITTEN = r"\..+\.new"


def choose_folder(wish: TrainArgs, print_config: bool) -> tuple[Path, bool]:
    """Where the run lies or will lie, and whether it goes on. The first process decides."""
    if not parallel.first():
        return Path(), False
    if parallel.starts() and not wish.resume:
        folder = _of_this_job(wish)
        if folder is not None:
            return folder, True
    elif wish.resume:
        folder = wish.out or newest_run(wish.place)
        if folder and (folder / "run.json").exists():
            return folder, True
        if not (wish.out and wish.place.given()):
            of = f"of {wish.place.data or wish.place.source} " if wish.place.given() else ""
            where = f"in {wish.out}" if wish.out else f"{of}under runs/"
            raise UserError(f"--resume: no run {where}; name its folder with --out")
        say(f"{folder}: no run yet; it begins now")
    return (Path() if print_config else _new_folder(wish)), False


def _of_this_job(wish: TrainArgs) -> Path | None:
    """The run that this job began before torchrun started it again."""
    runs = [wish.out] if wish.out else sorted(RUNS.glob("*"))
    for folder in runs:
        path = folder / "run.json"
        if path.exists() and read_json(path).get("job") == parallel.job():
            return folder
    return None


def _new_folder(wish: TrainArgs) -> Path:
    """The folder for a new run; one with a run in it only by force."""
    if wish.out is None:
        return _numbered(wish.place.data or wish.place.source or "run")
    if wish.out.is_file():
        raise UserError(f"{wish.out}: a file, where a folder for the run is expected")
    if wish.out.exists() and any(wish.out.iterdir()):
        again = wish.resume or wish.force or parallel.starts()
        begun = (wish.out / "run.json").exists()
        if not begun and again and _ours(wish.out):
            return wish.out  # a run that was killed before it began
        if not all((wish.out / name).exists() for name in ("config.yaml", "run.json")):
            raise UserError(f"{wish.out}: not empty and not a run folder; choose another --out")
        if not wish.force:
            raise UserError(
                f"{wish.out}: holds a run already; go on with it (--resume), replace it (--force) "
                "or choose another --out"
            )
        if strange := strangers(wish.out):
            raise UserError(
                f"{wish.out}: --force would delete {', '.join(strange[:3])}"
                f"{' and more' if len(strange) > 3 else ''}, which is no part of a run; move it "
                "away or choose another --out"
            )
    return wish.out


def _numbered(name: str) -> Path:
    """The next free folder under runs/, made at once, so that no other run takes it."""
    number = 1
    while True:
        folder = RUNS / f"{stem(name)}-{number}"
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


def _ours(folder: Path) -> bool:
    """Whether all that lies in a folder is certainly what an unfinished start left there."""
    names = {entry.name for entry in folder.iterdir()}
    marked = "version.txt" in names or all(re.fullmatch(HALF_WRITTEN, name) for name in names)
    return marked and not strangers(folder)


def strangers(folder: Path) -> list[str]:
    """What lies in a run folder that training did not write."""
    names = sorted(entry.name for entry in folder.iterdir())
    return [n for n in names if n not in RUN_FILES and not re.fullmatch(HALF_WRITTEN, n)]


def clear(folder: Path) -> None:
    """Deletes all that an earlier run left; first what says that a run is there."""
    if folder.is_dir():
        halves = [e.name for e in folder.iterdir() if re.fullmatch(HALF_WRITTEN, e.name)]
        for path in [folder / name for name in (*RUN_FILES, *halves)]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
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
