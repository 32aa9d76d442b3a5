"""The training job: start or resume a run; train a teacher first if needed."""

import contextlib
import datetime
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from regard.config.load import Config, load_config
from regard.core import parallel
from regard.core.errors import UserError, info
from regard.data.reading.lines import read_lines
from regard.data.reading.read import Pair
from regard.data.sources.media import MEDIA
from regard.exchange.engine_choice import load_predictor
from regard.inference.confident_labels import pseudo_label
from regard.inference.prediction.input_items import file_items
from regard.storage.output_folder import delete_run, run_lock
from regard.storage.pseudo_labels import write_pseudo_labels
from regard.storage.run_files import read_config
from regard.training.describe import describe
from regard.training.display import choose_display
from regard.training.log import Display
from regard.training.resume import resume
from regard.training.run import Run
from regard.training.session import train_run
from regard.training.start import start_run
from regard.training.tensorboard import check_tensorboard, with_tensorboard
from regard.training.train_folder import TrainArgs, choose_folder
from regard.training.transfer import read_pretrained


def train_job(args: TrainArgs, print_config: bool) -> None:
    """Train a new run, or resume an interrupted one.

    print_config: only print the configuration.
    """
    if args.resume and args.force:
        raise UserError("--resume and --force exclude each other: resume a run, or overwrite it")
    with parallel.process_group(), contextlib.ExitStack() as stack:
        folder, exists = parallel.broadcast(choose_folder(args, print_config))
        if parallel.is_main_process() and not print_config:
            stack.enter_context(run_lock(folder))
        open_run = resume if exists else _start
        run = open_run(replace(args, out=folder), print_config)
        if run is None:
            return
        shown = (
            with_tensorboard(run.config.training, choose_display())
            if parallel.is_main_process()
            else Display()
        )
        with contextlib.closing(shown) as display:
            finished = train_run(run, display)
        signals = run.interrupted
    if not finished:
        sys.exit(128 + (signals[0] if signals else signal.SIGTERM))


def _start(args: TrainArgs, print_config: bool) -> Run | None:
    """Start a new run in its folder.

    print_config: only print the configuration and return None.
    """
    config = load_config(args.recipe, args.settings)
    check_tensorboard(config.training)
    _check_pseudo_labeling(args, config)
    folder = args.out or Path()
    pretrained = None
    if args.init_from is not None:
        pretrained = read_pretrained(args.init_from, read_config(args.init_from))
    data = parallel.main_process_first(lambda: config.task.open(args.data, args.dev))
    data.train, sampled = config.task.sample(data.train, config.training.seed)
    for note in [*data.notes, *sampled]:
        info(note)
    if args.unlabeled:
        _check_no_media(data.train)
    pseudo_labels: list[tuple[Pair, float]] = []
    if args.unlabeled and not print_config:
        teacher = args.teacher or _train_teacher(args, folder, config)
        if not args.teacher and (budget := config.training.budget):
            rest = config.training.model_copy(update={"budget": budget / 2})
            config = config.model_copy(update={"training": rest})
        pseudo_labels = _label_file(
            teacher, args.unlabeled, config.task.kind, config.task.get_pseudo_label_threshold()
        )
    train = [*data.train, *(pair for pair, _ in pseudo_labels)] if pseudo_labels else data.train
    run = start_run(folder, config, train, data.dev, pretrained)
    if print_config:
        if parallel.is_main_process():
            print(run.config.dump(), end="")
        return None
    if parallel.is_main_process():
        delete_run(folder)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    command = shlex.join(["regard", *sys.argv[1:]])
    about = {
        "started": now,
        "command": command,
        "data": asdict(args.data.absolute()),
        "dev": asdict(args.dev.absolute()),
        "init_from": str(args.init_from) if args.init_from else None,
        "unlabeled": args.unlabeled,
        "run_id": parallel.run_id(),
    }
    if pseudo_labels and parallel.is_main_process():
        folder.mkdir(parents=True, exist_ok=True)
        write_pseudo_labels(folder, pseudo_labels)
    describe(run, about)
    return run


def _check_pseudo_labeling(args: TrainArgs, config: Config) -> None:
    """Raise UserError if --unlabeled or --teacher cannot be used, before training a teacher."""
    if args.teacher and not args.unlabeled:
        raise UserError("--teacher: requires --unlabeled FILE")
    if args.unlabeled:
        config.task.get_pseudo_label_threshold()  # raises for tasks without labels
        if args.unlabeled != "-" and not Path(args.unlabeled).is_dir():
            next(read_lines(args.unlabeled), None)


def _check_no_media(pairs: Sequence[Pair]) -> None:
    """Raise UserError if sources are files, whose pseudo-labels a run folder cannot store."""
    names = [f"{one.name}s" for one in MEDIA if isinstance(pairs[0].source, one.type)]
    if names:
        raise UserError(
            f"--unlabeled: not supported for {names[0]}",
            help="predict labels with `regard predict MODEL --input FOLDER`, and train on a table "
            "of the files with these labels",
        )


def _train_teacher(args: TrainArgs, folder: Path, config: Config) -> str:
    """Train the teacher for half of the budget; return the folder of the teacher."""
    lengths = {key: getattr(config.training, key) for key in ("budget", "steps", "epochs")}
    shorter = [
        f"training.{key}={max(1, value // 2) if key == 'steps' else value / 2}"
        for key, value in lengths.items()
        if value
    ]
    out = folder.with_name(folder.name + "-teacher")
    half = " (half of the budget)" if shorter else ""
    info(f"training the teacher model first in {out}{half}")
    settings = [*args.settings, *shorter]
    train_job(replace(args, settings=settings, out=out, unlabeled=None), False)
    return str(out)


def _label_file(teacher: str, path: str, task: str, threshold: float) -> list[tuple[Pair, float]]:
    """Return the examples that the teacher labels with enough confidence, and each confidence."""
    predictor = load_predictor(teacher)
    kind = predictor.task.kind
    if kind != task:
        raise UserError(f"--teacher {teacher}: expected a {task} model, found {kind}")
    sources = [item.source for item in file_items(predictor, path) if item.source]
    found = pseudo_label(predictor, sources, threshold)
    if not found:
        raise UserError(
            f"{path}: {teacher} labels none of {len(sources):,} examples with confidence >= "
            f"{threshold:g}",
            help="lower task.pseudo_label_threshold, or omit --unlabeled",
        )
    info(
        f"pseudo-labels: {len(found):,} of {len(sources):,} examples with confidence >= "
        f"{threshold:g} added to the training set"
    )
    return found
