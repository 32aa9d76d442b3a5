"""What `regard train` does, without the parsing of its words."""

import contextlib
import datetime
import json
import math
import re
import shlex
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from regard.config import Config, flatten, load_config, put, read_recipe
from regard.data.lines import read_lines, stem
from regard.data.open import Place
from regard.data.read import Pair
from regard.display import choose_display
from regard.errors import UserError, say
from regard.files import read_json, write_text
from regard.pseudo import PSEUDO, label_file, read_pseudo, write_pseudo
from regard.training.run import (
    Run,
    check_version,
    describe,
    read_config,
    resume_run,
    start_run,
)
from regard.training.session import train_run
from regard.training.transfer import read_origin

RUN_FILES = (  # all that training writes
    *("config.yaml", "run.json", "settings.json", "check.json", "version.txt", "vocabulary"),
    *("model.safetensors", "last", "last.new", "last.old"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html", PSEUDO),
)


@dataclass(frozen=True)
class Wish:
    """What the user asked `train` for."""

    place: Place
    dev: Place
    recipe: str | None
    settings: list[str]
    out: Path | None
    resume: bool
    force: bool
    origin: Path | None = None
    unlabelled: str | None = None
    teacher: str | None = None


def train_command(wish: Wish, print_config: bool) -> None:
    """Trains a new run or goes on with a stopped one."""
    if wish.resume and wish.force:
        raise UserError("--resume and --force exclude each other: go on with a run, or replace it")
    run = _resumed(wish, print_config) if wish.resume else _started(wish, print_config)
    if run is None:
        return
    with contextlib.closing(choose_display()) as display:
        whole = train_run(run, display)
    if not whole:
        sys.exit(130)


def _started(wish: Wish, print_config: bool) -> Run | None:
    """A new run in its folder; None where only the configuration was asked for."""
    config = load_config(wish.recipe, wish.settings)
    _refuse_labelling(wish, config)
    folder = Path() if print_config else _new_folder(wish)
    origin = None
    if wish.origin is not None:
        check_version(wish.origin)
        origin = read_origin(wish.origin, read_config(wish.origin))
    data = config.task.open(wish.place, wish.dev)
    for note in data.notes:
        say(note)
    surely: list[tuple[Pair, float]] = []
    if wish.unlabelled and not print_config:
        teacher = wish.teacher or _train_teacher(wish, folder, config)
        if not wish.teacher and (budget := config.training.budget):
            rest = config.training.model_copy(update={"budget": budget / 2})
            config = config.model_copy(update={"training": rest})
        surely = label_file(teacher, wish.unlabelled, config.task.kind, config.task.surely())
    train = [*data.train, *(pair for pair, _ in surely)]
    run = start_run(folder, config, train, data.dev, origin)
    if print_config:
        print(run.config.dump(), end="")
        return None
    if wish.force and folder.exists():
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
    describe(run, about)
    if surely:
        write_pseudo(folder / PSEUDO, surely)
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


def _resumed(wish: Wish, print_config: bool) -> Run | None:
    """The run of a folder, as it was saved; None where it is finished."""
    folder = wish.out or _newest(wish)
    check_version(folder)
    config = read_config(folder)
    _refuse_changes(wish, folder, config)
    if print_config:
        print(config.dump(), end="")
        return None
    facts = read_json(folder / "run.json")
    place = wish.place if wish.place.given() else Place(**facts.get("data", {}))
    dev = wish.dev if wish.dev.given() else Place(**facts.get("dev", {}))
    data = config.task.open(place, dev)
    run = resume_run(folder, [*data.train, *read_pseudo(folder / PSEUDO)], data.dev)
    if run.progress.finished and (folder / "scores.json").exists():
        say(f"{folder}: finished after {run.progress.step} steps; nothing is left to do")
        return None
    for name in ("metrics.jsonl", "samples.jsonl"):
        _forget(folder / name, run.progress.step)
    return run


def _forget(path: Path, step: int) -> None:
    """Drops the lines of a log after a step: a killed run does that part again."""
    text = path.read_text("utf-8") if path.exists() else ""
    whole = text.split("\n")[:-1]  # what follows the last line end was cut short
    kept = "".join(f"{line}\n" for line in whole if _step(line) <= step)
    if kept != text:
        write_text(path, kept)


def _step(line: str) -> float:
    """The step of a line of a log; infinite for a line that cannot be read."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _refuse_changes(wish: Wish, folder: Path, config: Config) -> None:
    """A resumed run keeps its settings: those the user names must be the same."""
    wanted = flatten(load_config(wish.recipe, wish.settings).model_dump(mode="json"))
    named = read_recipe(wish.recipe) if wish.recipe else {}
    for setting in wish.settings:
        put(named, setting)
    ours = flatten(config.model_dump(mode="json"))
    for key in flatten(named):
        value = wanted.get(key)
        if key == "training.budget" and wish.unlabelled and not wish.teacher and value:
            value /= 2  # the other half was the teacher's
        if value not in (None, "auto") and ours.get(key) != value:
            raise UserError(
                f"--resume: {key} is {ours.get(key)} in {folder}, {value} was asked for; a resumed "
                "run keeps its settings. Start anew with another --out to change them"
            )


def _newest(wish: Wish) -> Path:
    """The newest run of this data under runs/."""
    data = wish.place.data or wish.place.source
    name = f"{re.escape(stem(data))}-[0-9]+" if data else ".*"
    runs = Path("runs").iterdir() if Path("runs").is_dir() else []
    found = [p for p in runs if re.fullmatch(name, p.name) and (p / "config.yaml").exists()]
    if not found:
        of = f" of {data}" if data else ""
        raise UserError(f"--resume: no run{of} under runs/; name its folder with --out")
    return max(found, key=lambda p: (p / "config.yaml").stat().st_mtime)
