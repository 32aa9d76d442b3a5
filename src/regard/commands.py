"""What the commands do, without the parsing of their words."""

import contextlib
import datetime
import json
import os
import queue
import shlex
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from regard import metrics
from regard.config import changed, flatten, load_config
from regard.data.check import check
from regard.data.lines import stem
from regard.data.open import Place, open_test, open_training
from regard.data.read import group, read_lines
from regard.display import choose_display
from regard.errors import UserError
from regard.estimators import load
from regard.evaluation import evaluate
from regard.files import read_json
from regard.tasks.base import Prediction
from regard.tasks.transduce import TransduceOptions, fit_task
from regard.training.run import Run, describe, read_config, resume_run, start_run, usable
from regard.training.session import train_run

CHUNK = 4096  # lines answered together when they are all there


def say(text: str) -> None:
    """A line on stderr."""
    print(text, file=sys.stderr, flush=True)


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


def train_command(wish: Wish, print_config: bool) -> None:
    """Trains a new run or goes on with a stopped one."""
    if wish.resume and wish.force:
        raise UserError("--resume and --force exclude each other: go on with a run, or replace it")
    run = _resumed(wish) if wish.resume else _started(wish, print_config)
    if run is not None and not train_run(run, choose_display()):
        sys.exit(130)


def _started(wish: Wish, print_config: bool) -> Run | None:
    """A new run in its folder; None where only the configuration was asked for."""
    config = load_config(wish.recipe, wish.settings)
    folder = _new_folder(wish)
    data = open_training(wish.place, wish.dev)
    for note in data.notes:
        say(note)
    run = start_run(folder, config, data.train, data.dev)
    if print_config:
        print(run.config.dump(), end="")
        return None
    if wish.force and folder.exists():
        shutil.rmtree(folder)
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    command = shlex.join(["regard", *sys.argv[1:]])
    about = {
        "started": now,
        "command": command,
        "data": asdict(wish.place),
        "dev": asdict(wish.dev),
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
        if not (wish.out / "config.yaml").exists():
            raise UserError(f"{wish.out}: not empty and not a run folder; choose another --out")
        if not wish.force:
            raise UserError(
                f"{wish.out}: holds a run already; go on with it (--resume), replace it (--force) "
                "or choose another --out"
            )
    return wish.out


def _resumed(wish: Wish) -> Run | None:
    """The run of a folder, as it was saved; None where it is finished."""
    folder = wish.out or _newest(wish)
    config = read_config(folder)
    facts = read_json(folder / "run.json")
    ours = flatten(config.model_dump(mode="json"))
    wanted = changed(load_config(wish.recipe, wish.settings))
    for key, (_, value) in wanted.items():
        if value is not None and ours.get(key) != value:
            raise UserError(
                f"--resume: {key} is {ours.get(key)} in {folder}, {value} was asked for; a resumed "
                "run keeps its settings. Start anew with another --out to change them"
            )
    place = wish.place if wish.place.given() else Place(**facts["data"])
    dev = wish.dev if wish.dev.given() else Place(**facts["dev"])
    data = open_training(place, dev)
    run = resume_run(folder, data.train, data.dev)
    if run.progress.finished:
        say(f"{folder}: finished after {run.progress.step} steps; nothing is left to do")
        return None
    return run


def _newest(wish: Wish) -> Path:
    """The newest run of this data under runs/."""
    name = wish.place.data or wish.place.source
    pattern = f"{stem(name)}-*" if name else "*"
    found = [p for p in Path("runs").glob(pattern) if (p / "config.yaml").exists()]
    if not found:
        raise UserError(f"--resume: no run under runs/{pattern}; name its folder with --out")
    return max(found, key=lambda p: (p / "config.yaml").stat().st_mtime)


def predict_command(
    model: str,
    texts: list[str] | None,
    input: str,
    output: Path | None,
    beam: int | None,
    nbest: int,
    batch_size: int,
    json_lines: bool,
) -> None:
    """Answers texts in their order, as soon as they come."""
    estimator = load(model)
    chunks: Iterable[list[str]] = [texts] if texts else _chunks(read_lines(input))
    unknown: Counter[str] = Counter()
    with _answers(output) as file:
        for chunk in chunks:
            predictions = estimator.predictions(chunk, beam, nbest, batch_size)
            for text, found in zip(chunk, predictions, strict=True):
                unknown.update(found.unknown)
                file.write(_json_line(text, found) if json_lines else _plain_line(found))
            file.flush()
    if unknown:
        shown = " ".join(f"{symbol!r}" for symbol, _ in unknown.most_common(10))
        count = sum(unknown.values())
        say(f"{count:,} symbols that training never saw were read as unknown: {shown}")


@contextlib.contextmanager
def _answers(output: Path | None) -> Iterator[TextIO]:
    """Where answers go: stdout, or a file that takes its name when it is whole."""
    if output is None:
        yield sys.stdout
        return
    beside = output.with_name(output.name + ".part")
    with open(beside, "w", encoding="utf-8", newline="\n") as file:
        yield file
    os.replace(beside, output)


def _plain_line(found: Prediction) -> str:
    """The answer, or with n-best each with its score and a tab before it."""
    if len(found.alternatives) <= 1:
        return f"{found.text}\n"
    return "".join(f"{other.score:.4f}\t{other.text}\n" for other in found.alternatives)


def _json_line(text: str, found: Prediction) -> str:
    """One JSON object for a source."""
    answers = [{"text": other.text, "score": round(other.score, 6)} for other in found.alternatives]
    record: dict[str, Any] = {"source": text, "prediction": found.text, "score": found.score}
    record |= {"nbest": answers} if len(answers) > 1 else {}
    record |= {"unknown": list(found.unknown)} if found.unknown else {}
    return json.dumps(record, ensure_ascii=False) + "\n"


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Lines in groups: as many as are there already, so that a slow stream is answered at once."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=2 * CHUNK)

    def fill() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        chunk: list[str] = []
        item = waiting.get()
        while isinstance(item, str):
            chunk.append(item)
            if len(chunk) == CHUNK or waiting.empty():
                break
            item = waiting.get()
        if chunk:
            yield chunk
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return


def evaluate_command(
    model: str, place: Place, beam: int | None, batch_size: int, json_object: bool
) -> None:
    """Measures a model and prints the figures."""
    estimator = load(model)
    pairs, notes = open_test(place)
    for note in notes:
        say(note)
    examples = group(pairs)
    task, config = estimator.task_, estimator.config_
    search = estimator.search(beam)
    result = evaluate(task, estimator.model_, examples, config.objective, search, batch_size)
    texts = [prediction.text for prediction in result.predictions]
    if json_object:
        print(json.dumps({"metrics": result.scores, "examples": len(examples)}))
        return
    intervals = task.intervals(texts, examples)
    print(f"{len(examples):,} sources, {len(pairs):,} references, beam {search.beam}")
    for name, value in result.scores.items():
        interval = "   95 %: {:.2f} to {:.2f}".format(*intervals[name]) if name in intervals else ""
        print(f"{name:<12}{value:8.2f}{interval}")
    for name, signature in metrics.signatures([e.references for e in examples]).items():
        say(f"{name}: {signature}")


def check_command(place: Place, dev: Place, limit: int | None, json_object: bool) -> None:
    """Prints what is in the data."""
    data = open_training(place, dev)
    kept, left_out = usable(data.train, None)
    task, _, chosen = fit_task(TransduceOptions(), kept)
    found = check(data.train, data.dev, task.source, task.target, limit)
    if json_object:
        print(json.dumps({**found.as_dict(), "notes": data.notes}, ensure_ascii=False))
        return
    for line in [*data.notes, *left_out, *(f"{c.key}={c.value}: {c.why}" for c in chosen), ""]:
        print(line)
    for line in found.lines():
        print(line)
