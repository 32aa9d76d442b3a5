"""A run from files: a new one, or one that goes on; where asked for, a teacher comes first."""

import contextlib
import datetime
import shlex
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

from regard.config.load import Config, load_config
from regard.core import parallel
from regard.core.errors import UserError, info
from regard.data.reading.lines import read_lines
from regard.data.reading.read import Pair
from regard.exchange.engine_choice import load_predictor
from regard.inference.confident_labels import pseudo_label
from regard.inference.prediction.input_items import file_items
from regard.storage.pseudo_labels import write_pseudo
from regard.storage.run_files import read_config
from regard.storage.taken_folder import clear, held
from regard.training.describe import describe
from regard.training.display import choose_display
from regard.training.log import Display
from regard.training.resume import resume
from regard.training.run import Run
from regard.training.session import train_run
from regard.training.start import start_run
from regard.training.tensorboard import check_followers, followed
from regard.training.train_folder import TrainArgs, choose_folder
from regard.training.transfer import read_origin


def train_job(wish: TrainArgs, print_config: bool) -> None:
    """Trains a new run or goes on with a stopped one."""
    if wish.resume and wish.force:
        raise UserError("--resume and --force exclude each other: go on with a run, or replace it")
    with parallel.processes(), contextlib.ExitStack() as stack:
        folder, goes_on = parallel.agreed(choose_folder(wish, print_config))
        if parallel.first() and not print_config:
            stack.enter_context(held(folder))
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


def _started(wish: TrainArgs, print_config: bool) -> Run | None:
    """A new run in its folder; None where only the configuration was asked for."""
    config = load_config(wish.recipe, wish.settings)
    check_followers(config.training)
    _refuse_labeling(wish, config)
    folder = wish.out or Path()
    origin = None
    if wish.origin is not None:
        origin = read_origin(wish.origin, read_config(wish.origin))
    data = parallel.in_turn(lambda: config.task.open(wish.place, wish.dev))
    for note in data.notes:
        info(note)
    surely: list[tuple[Pair, float]] = []
    if wish.unlabeled and not print_config:
        teacher = wish.teacher or _train_teacher(wish, folder, config)
        if not wish.teacher and (budget := config.training.budget):
            rest = config.training.model_copy(update={"budget": budget / 2})
            config = config.model_copy(update={"training": rest})
        surely = _label_file(
            teacher, wish.unlabeled, config.task.kind, config.task.get_pseudo_label_threshold()
        )
    train = [*data.train, *(pair for pair, _ in surely)] if surely else data.train
    run = start_run(folder, config, train, data.dev, origin)
    if print_config:
        if parallel.first():
            print(run.config.dump(), end="")
        return None
    if parallel.first():
        clear(folder)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    command = shlex.join(["regard", *sys.argv[1:]])
    about = {
        "started": now,
        "command": command,
        "data": asdict(wish.place.absolute()),
        "dev": asdict(wish.dev.absolute()),
        "init_from": str(wish.origin) if wish.origin else None,
        "unlabeled": wish.unlabeled,
        "run_id": parallel.job(),
    }
    if surely and parallel.first():
        folder.mkdir(parents=True, exist_ok=True)
        write_pseudo(folder, surely)
    describe(run, about)
    return run


def _refuse_labeling(wish: TrainArgs, config: Config) -> None:
    """What is wrong with --unlabeled and --teacher is said before a teacher is trained."""
    if wish.teacher and not wish.unlabeled:
        raise UserError("--teacher labels the examples of --unlabeled FILE, which is missing")
    if wish.unlabeled:
        config.task.get_pseudo_label_threshold()  # a task without labels refuses
        if wish.unlabeled != "-":
            next(read_lines(wish.unlabeled), None)


def _train_teacher(wish: TrainArgs, folder: Path, config: Config) -> str:
    """A first model of half the length, in its own folder, that will label examples."""
    lengths = {key: getattr(config.training, key) for key in ("budget", "steps", "epochs")}
    shorter = [
        f"training.{key}={max(1, value // 2) if key == 'steps' else value / 2}"
        for key, value in lengths.items()
        if value
    ]
    out = folder.with_name(folder.name + "-teacher")
    info(f"first a teacher, in {out}{', which takes half of the time' if shorter else ''}")
    settings = [*wish.settings, *shorter]
    train_job(replace(wish, settings=settings, out=out, unlabeled=None), False)
    return str(out)


def _label_file(teacher: str, path: str, task: str, least: float) -> list[tuple[Pair, float]]:
    """Return the examples of a file that the teacher is so confident of, with its predictions."""
    predictor = load_predictor(teacher)
    kind = predictor.task.kind
    if kind != task:
        raise UserError(f"--teacher {teacher}: a {kind} model cannot label for {task}")
    sources = [item.source for item in file_items(predictor, path) if item.source]
    found = pseudo_label(predictor, sources, least)
    if not found:
        raise UserError(
            f"{path}: {teacher} is not {least:.0%} sure of any of its {len(sources):,} examples; "
            "lower task.pseudo_label_threshold, or leave --unlabeled out"
        )
    info(
        f"{path}: {len(found):,} of {len(sources):,} examples labeled by {teacher}, at least "
        f"{least:.0%} sure; they join the training part"
    )
    return found
