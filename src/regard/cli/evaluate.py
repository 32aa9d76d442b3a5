"""The command that measures a model."""

import json
from collections.abc import Iterator
from typing import Any

from regard.cli.command_options import (
    BatchSize,
    Beam,
    DataFile,
    Debug,
    EngineName,
    Json,
    Model,
    Quantize,
    Short,
    ShortFile,
    SourceColumn,
    SourceFile,
    TargetColumn,
    TargetFile,
)
from regard.core.errors import say


def evaluate(
    model: Model,
    data: DataFile = None,
    source: SourceFile = None,
    target: TargetFile = None,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    beam: Beam = None,
    batch_size: BatchSize = 64,
    engine: EngineName = None,
    quantize: Quantize = None,
    shortlist: Short = False,
    shortlist_file: ShortFile = None,
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """Measure a model: regard evaluate runs/g2p-1 test.tsv."""
    from regard.data.sources.open import Place, open_test
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.prediction_warnings import Oddities
    from regard.storage.run_files import trained_columns
    from regard.views.report.score_table import shown

    predictor = load_predictor(model, engine, quantize, shortlist_file or shortlist)
    task, config = predictor.task, predictor.config
    place = Place(data, source, target, source_column, target_column)
    place = trained_columns(place, predictor.folder)
    pairs, notes = open_test(place, config.task.read, config.task.kind)
    for note in notes:
        say(note)
    examples = task.examples(pairs)
    search = predictor.search(beam=beam)
    result = predictor.evaluate(examples, search, batch_size)
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
    for line in _details_lines(result.details):
        print(line)
    for name, signature in task.signatures(examples).items():
        say(f"{name}: {signature}")


def _details_lines(details: dict[str, Any]) -> Iterator[str]:
    """Tables and the confusion matrix as text."""
    from regard.metrics.tables import confusion_lines, table_lines

    for name in ("spans", "classes", "numbers"):
        if rows := details.get(name):
            yield from ["", *table_lines(rows)]
    if confusion := details.get("confusion"):
        yield from ["", *confusion_lines(confusion)]
    if len(rows := details.get("documents", [])) > 1:
        yield from ["", *table_lines([{"document": n, **row} for n, row in enumerate(rows, 1)])]
