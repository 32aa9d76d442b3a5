"""What the commands do, without the parsing of their words."""

import contextlib
import datetime
import json
import math
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.answers import Oddities
from regard.config import Config, flatten, load_config, put, read_recipe
from regard.data.lines import read_lines, stem
from regard.data.open import Place, open_test
from regard.display import choose_display
from regard.errors import UserError, say
from regard.estimators import LanguageModel, check_version, load
from regard.evaluation import evaluate
from regard.files import read_json, write_text
from regard.metrics.tables import confusion_lines, table_lines
from regard.report.scores import shown
from regard.report.zipf import zipf_svg
from regard.training.run import Run, describe, read_config, resume_run, start_run
from regard.training.session import train_run
from regard.training.transfer import read_origin

RUN_FILES = (  # all that training writes
    *("config.yaml", "run.json", "settings.json", "check.json", "version.txt", "vocabulary"),
    *("model.safetensors", "last", "last.new", "last.old"),
    *("metrics.jsonl", "samples.jsonl", "scores.json", "report.html"),
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
    folder = Path() if print_config else _new_folder(wish)
    origin = None
    if wish.origin is not None:
        check_version(wish.origin)
        origin = read_origin(wish.origin, read_config(wish.origin))
    data = config.task.open(wish.place, wish.dev)
    for note in data.notes:
        say(note)
    run = start_run(folder, config, data.train, data.dev, origin)
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
    return run


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
    run = resume_run(folder, data.train, data.dev)
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


def evaluate_command(
    model: str, place: Place, beam: int | None, batch_size: int, json_object: bool
) -> None:
    """Measures a model and prints the figures."""
    estimator = load(model)
    task, config = estimator.task_, estimator.config_
    pairs, notes = open_test(place, config.task.read)
    for note in notes:
        say(note)
    examples = task.examples(pairs)
    search = estimator.search(beam=beam)
    result = evaluate(task, estimator.model_, examples, config.objective, search, batch_size)
    odd = Oddities()
    for found in result.predictions:
        odd.add(found)
    odd.say()
    if json_object:
        record = {"metrics": result.scores, "examples": len(examples), "details": result.details}
        print(json.dumps(record, ensure_ascii=False))
        return
    intervals = task.intervals(result.predictions, examples)
    references = f", {len(pairs):,} references, beam {search.beam}" if search.kind == "beam" else ""
    print(f"{len(examples):,} {task.unit}{references}")
    for name, value in result.scores.items():
        interval = "   95 %: {:.2f} to {:.2f}".format(*intervals[name]) if name in intervals else ""
        print(f"{name:<20}{shown(name, value, 2):>10}{interval}")
    for line in details_lines(result.details):
        print(line)
    for name, signature in task.signatures(examples).items():
        say(f"{name}: {signature}")


def details_lines(details: dict[str, Any]) -> Iterator[str]:
    """Tables and the confusion matrix as text."""
    for name in ("spans", "classes", "numbers"):
        if rows := details.get(name):
            yield from ["", *table_lines(rows)]
    if confusion := details.get("confusion"):
        yield from ["", *confusion_lines(confusion)]
    if len(rows := details.get("documents", [])) > 1:
        yield from ["", *table_lines([{"document": n, **row} for n, row in enumerate(rows, 1)])]


def check_command(
    task: str, place: Place, dev: Place, settings: list[str], json_object: bool, plot: Path | None
) -> None:
    """Prints what is in the data."""
    config = load_config(None, [f"task.kind={task}", *settings])
    data = config.task.open(place, dev)
    kept, left_out = config.task.usable(data.train)
    fitted, _, chosen = config.task.fit(kept, config.model)
    found = fitted.check(data.train, data.dev)
    if plot is not None:
        drawn = zipf_svg(found.as_dict())
        if not drawn:
            raise UserError("--plot: only running text has a curve to draw (--task language-model)")
        write_text(plot, drawn)
        say(f"drawn: {plot}")
    if json_object:
        print(json.dumps({**found.as_dict(), "notes": data.notes}, ensure_ascii=False))
        return
    for line in [*data.notes, *left_out, *(f"{c.key}={c.value}: {c.why}" for c in chosen), ""]:
        print(line)
    for line in found.lines():
        print(line)


def score_command(
    model: str, texts: list[str], input: str | None, json_lines: bool, batch_size: int
) -> None:
    """How probable texts are for a language model."""
    estimator = load(model)
    if not isinstance(estimator, LanguageModel):
        raise UserError(f"{model}: a {estimator.task} model; only language models score texts")
    lines = texts or [line for line in read_lines(input or "-") if line]
    if not lines:
        raise UserError("nothing to score: give texts, --input FILE, or pipe lines in")
    rows = estimator.scores(lines, batch_size)
    if not json_lines:
        print("perplexity\tbits_per_character\tnats\ttext")
    for text, row in zip(lines, rows, strict=True):
        if json_lines:
            print(json.dumps({"text": text, **row}, ensure_ascii=False))
        else:
            figures = (row["perplexity"], row["bits_per_character"], row["nats"])
            print("\t".join([*(f"{figure:.4f}" for figure in figures), text]))
