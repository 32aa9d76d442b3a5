"""What `regard evaluate` and `check` do, without the parsing of their words."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.config.load import load_config
from regard.core.errors import UserError, say
from regard.core.files import write_text
from regard.data.sources.builtin import is_builtin
from regard.data.sources.open import Place, open_test
from regard.estimators import load
from regard.inference.evaluation import evaluate
from regard.inference.prediction.prediction_warnings import Oddities
from regard.metrics.tables import confusion_lines, table_lines
from regard.storage.run_files import trained_on
from regard.views.report.score_table import shown
from regard.views.report.zipf import zipf_svg


def evaluate_command(
    model: str,
    place: Place,
    beam: int | None,
    batch_size: int,
    json_object: bool,
    quantize: str | None = None,
    engine: str | None = None,
    shortlist: bool | Path = False,
) -> None:
    """Measures a model and prints the figures."""
    estimator = load(model, engine, quantize, shortlist)
    task, config = estimator.task_, estimator.config_
    place = trained_columns(place, trained_on(estimator.folder_))
    pairs, notes = open_test(place, config.task.read, config.task.kind)
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
    print(f"{task.counted(len(examples))}{references}")
    for name, value in result.scores.items():
        bounds = [shown(name, bound, 2) for bound in intervals.get(name, ())]
        interval = f"   95 %: {bounds[0]} to {bounds[1]}" if bounds else ""
        print(f"{name:<20}{shown(name, value, 2):>10}{interval}")
    for line in details_lines(result.details):
        print(line)
    for name, signature in task.signatures(examples).items():
        say(f"{name}: {signature}")


def trained_columns(place: Place, trained: dict[str, Any]) -> Place:
    """The place with the columns that were trained on, where the user names none."""
    named = place.source_column or place.target_column
    if named or place.data is None or is_builtin(place.data):
        return place
    source, target = trained.get("source_column"), trained.get("target_column")
    return replace(place, source_column=source, target_column=target)


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
