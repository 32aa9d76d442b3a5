"""What `regard train` does, without the parsing of its words."""

import contextlib
import datetime
import re
import shlex
import shutil
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

from regard import parallel
from regard.commands.resume import Wish, newest_run, resume
from regard.config import Config, load_config
from regard.data.lines import read_lines, stem
from regard.data.read import Pair
from regard.display import choose_display
from regard.errors import UserError, say
from regard.pseudo import PSEUDO, label_file, write_pseudo
from regard.training.describe import describe
from regard.training.log import Display
from regard.training.run import Run, check_version, read_config, start_run
from regard.training.session import train_run
from regard.training.tensorboard import FOLDER, check_followers, followed
from regard.training.transfer import read_origin

RUN_FILES = (  # all that training writes
    *("config.yaml", "run.json", "settings.json", "check.json", "version.txt", "vocabulary"),
    *("model.safetensors", "last", "last.new", "last.old"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html", PSEUDO, FOLDER),
    "diagnosis.json",  # of regard diagnose
)


def train_command(wish: Wish, print_config: bool) -> None:
    """Trains a new run or goes on with a stopped one."""
    if wish.resume and wish.force:
        raise UserError("--resume and --force exclude each other: go on with a run, or replace it")
    with parallel.processes():
        folder, goes_on = parallel.agreed(_folder(wish, print_config))
        begin = resume if goes_on else _started
        run = begin(replace(wish, out=folder), print_config)
        if run is None:
            return
        shown = followed(run.config.training, choose_display()) if parallel.first() else Display()
        with contextlib.closing(shown) as display:
            whole = train_run(run, display)
        signals = run.interrupted
    if not whole:
        sys.exit(128 + (signals[0] if signals else signal.SIGTERM))


def _folder(wish: Wish, print_config: bool) -> tuple[Path, bool]:
    """Where the run lies or will lie, and whether it goes on. The first process decides."""
    if not parallel.first():
        return Path(), False
    if wish.resume or parallel.restarted():
        folder = wish.out or newest_run(wish.place)
        if folder and (folder / "run.json").exists():
            return folder, True
        if wish.resume and not (wish.out and wish.place.given()):
            of = f" of {wish.place.data or wish.place.source}" if wish.place.given() else ""
            under = f"in {wish.out}" if wish.out else f"{of.strip()} under runs/".strip()
            raise UserError(f"--resume: no run {under}; name its folder with --out")
        say(f"{folder or 'runs/'}: no run yet; it begins now")
    return (Path() if print_config else _new_folder(wish)), False


def _started(wish: Wish, print_config: bool) -> Run | None:
    """A new run in its folder; None where only the configuration was asked for."""
    config = load_config(wish.recipe, wish.settings)
    check_followers(config.training)
    _refuse_labelling(wish, config)
    folder = wish.out or Path()
    origin = None
    if wish.origin is not None:
        check_version(wish.origin)
        origin = read_origin(wish.origin, read_config(wish.origin))
    data = parallel.in_turn(lambda: config.task.open(wish.place, wish.dev))
    for note in data.notes:
        say(note)
    surely: list[tuple[Pair, float]] = []
    if wish.unlabelled and not print_config:
        teacher = wish.teacher or _train_teacher(wish, folder, config)
        if not wish.teacher and (budget := config.training.budget):
            rest = config.training.model_copy(update={"budget": budget / 2})
            config = config.model_copy(update={"training": rest})
        surely = label_file(teacher, wish.unlabelled, config.task.kind, config.task.surely())
    train = [*data.train, *(pair for pair, _ in surely)] if surely else data.train
    run = start_run(folder, config, train, data.dev, origin)
    if print_config:
        print(run.config.dump(), end="")
        return None
    if wish.force and folder.exists() and parallel.first():
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    command = shlex.join(["regard", *sys.argv[1:]])
    about = {
        "started": now,
        "command": command,
        "data": asdict(wish.place.absolute()),
        "dev": asdict(wish.dev.absolute()),
    }
    if surely and parallel.first():
        folder.mkdir(parents=True, exist_ok=True)
        write_pseudo(folder / PSEUDO, surely)
    describe(run, about)
    return run


def _refuse_labelling(wish: Wish, config: Config) -> None:
    """What is wrong with --unlabelled and --teacher is said before a teacher is trained."""
    if wish.teacher and not wish.unlabelled:
        raise UserError("--teacher labels the examples of --unlabelled FILE, which is missing")
    if wish.unlabelled:
        config.task.surely()  # a task without labels refuses
        if wish.unlabelled != "-":
            next(read_lines(wish.unlabelled), None)


def _train_teacher(wish: Wish, folder: Path, config: Config) -> str:
    """A first model of half the length, in its own folder, that will label examples."""
    lengths = {key: getattr(config.training, key) for key in ("budget", "steps", "epochs")}
    shorter = [
        f"training.{key}={max(1, value // 2) if key == 'steps' else value / 2}"
        for key, value in lengths.items()
        if value
    ]
    out = folder.with_name(folder.name + "-teacher")
    say(f"first a teacher, in {out}{', which takes half of the time' if shorter else ''}")
    settings = [*wish.settings, *shorter]
    train_command(replace(wish, settings=settings, out=out, unlabelled=None), False)
    return str(out)


def _new_folder(wish: Wish) -> Path:
    """The folder for a new run; an existing one only by force."""
    if wish.out is None:
        name = wish.place.data or wish.place.source or "run"
        number = 1
        while (folder := Path("runs") / f"{stem(name)}-{number}").exists():
            number += 1
        return folder
    if wish.out.is_file():
        raise UserError(f"{wish.out}: a file, where a folder for the run is expected")
    if wish.out.exists() and any(wish.out.iterdir()):
        again = wish.resume or parallel.restarted()
        if again and {entry.name for entry in wish.out.iterdir()} <= {*RUN_FILES}:
            return wish.out  # a run that was killed before it began
        if not all((wish.out / name).exists() for name in ("config.yaml", "run.json")):
            raise UserError(f"{wish.out}: not empty and not a run folder; choose another --out")
        if not wish.force:
            raise UserError(
                f"{wish.out}: holds a run already; go on with it (--resume), replace it (--force) "
                "or choose another --out"
            )
        _refuse_strangers(wish.out)
    return wish.out


def _refuse_strangers(folder: Path) -> None:
    """Nothing that training did not write is deleted by force."""
    names = sorted(entry.name for entry in folder.iterdir())
    strange = [n for n in names if n not in RUN_FILES and not re.fullmatch(r"\..+\.new", n)]
    if strange:
        raise UserError(
            f"{folder}: --force would delete {', '.join(strange[:3])}"
            f"{' and more' if len(strange) > 3 else ''}, which is no part of a run; move it away "
            "or choose another --out"
        )
