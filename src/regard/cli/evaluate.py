"""The command `regard evaluate`."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import command_options as option
from regard.cli.union_options import SearchSettings
from regard.core.errors import info, note

if TYPE_CHECKING:
    from regard.tasks.baselines import BaselineScores


def evaluate(
    model: option.Model,
    data: option.DataFile = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    split_column: option.SplitColumn = None,
    split: option.Split = None,
    edges: option.EdgesFile = None,
    id_column: option.IdColumn = None,
    graph_column: option.GraphColumn = None,
    speaker_column: option.SpeakerColumn = None,
    beam: option.Beam = None,
    settings: SearchSettings = None,
    rescore: option.Rescore = None,
    rescore_weight: option.RescoreWeight = None,
    batch_size: option.BatchSize = 64,
    engine: option.EngineName = None,
    quantize: option.Quantize = None,
    shortlist: option.Short = False,
    shortlist_file: option.ShortFile = None,
    recognizer: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Model of sounds that labels the synthesized ones; adds the metric recognized.",
        ),
    ] = None,
    all_metrics: option.AllMetrics = False,
    json_object: option.Json = False,
    debug: option.Debug = False,
) -> None:
    """Compute metrics on a test set, with a baseline: regard evaluate runs/g2p-1 test.tsv"""
    from regard.data.sources.open import DataSpec, open_test
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.baseline_evaluation import evaluate_baselines, load_baselines
    from regard.inference.prediction.predict_options import search_changes
    from regard.inference.prediction.prediction_warnings import PredictionWarnings
    from regard.inference.prediction.recognition import check_recognizer, with_recognition
    from regard.inference.rescoring import with_scorer
    from regard.metrics.metric_names import usual_metrics
    from regard.storage.run_files import trained_columns

    predictor = load_predictor(model, engine, quantize, shortlist_file or shortlist)
    if rescore:
        predictor = with_scorer(predictor, load_predictor(rescore), rescore_weight)
    check_recognizer(predictor, recognizer)
    task, config = predictor.task, predictor.config
    spec = DataSpec(
        *(data, source, target, source_column, target_column),
        split_column=split_column,
        split=split,
        edges=edges,
        id_column=id_column,
        graph_column=graph_column,
        speaker_column=speaker_column,
    )
    spec = trained_columns(spec, predictor.folder)
    pairs, notes = open_test(spec, config.task.read, config.task.kind)
    for line in notes:
        info(line)
    examples = task.examples(pairs)
    loaded = load_baselines(predictor)
    search = predictor.search_options(**search_changes({"beam": beam}, settings))
    result = predictor.evaluate(examples, search, batch_size)
    if recognizer:
        result = with_recognition(result, examples, load_predictor(recognizer))
    warnings = PredictionWarnings()
    for found in result.predictions:
        warnings.add(found)
    warnings.print()
    baselines = evaluate_baselines(predictor, loaded, examples)
    for line in baselines.notes:
        note(line)
    if json_object:
        record = {
            "metrics": result.scores,
            "examples": len(examples),
            "baselines": baselines.as_list(),
            "details": result.details,
        }
        print(json.dumps(record, ensure_ascii=False))
        return
    intervals = task.intervals(result.predictions, examples)
    width = getattr(search, "beam", None)
    references = f", {len(pairs):,} references, beam {width}" if width else ""
    print(f"{task.count_label(len(examples))}{references}")
    names = list(result.scores)
    if not all_metrics:
        names = usual_metrics(task.metric, result.scores)
    for line in _score_lines(result.scores, names, intervals, baselines.scores):
        print(line)
    if hidden := [name for name in result.scores if name not in names]:
        info(f"--all also shows {', '.join(hidden)}")
    for line in _details_lines(result.details):
        print(line)
    for name, signature in task.signatures(examples).items():
        if name in names:
            info(f"{name}: {signature}")


def _score_lines(
    scores: dict[str, float],
    names: list[str],
    intervals: dict[str, tuple[float, float]],
    baselines: "list[BaselineScores]",
) -> Iterator[str]:
    """Yield a line per named metric: score, interval and best baseline. Then name all baselines."""
    from regard.views.report.score_table import format_score

    best = baselines[0].scores if baselines else {}
    shown = {}
    for name in names:
        bounds = [format_score(name, bound, 2) for bound in intervals.get(name, ())]
        shown[name] = f"   95 %: {bounds[0]} to {bounds[1]}" if bounds else ""
    width = max(map(len, shown.values()), default=0)
    for name in names:
        line = f"{name:<20}{format_score(name, scores[name], 2):>10}{shown[name]:<{width}}"
        base = f"   baseline: {format_score(name, best[name], 2)}" if name in best else ""
        yield f"{line}{base}".rstrip()
    if baselines:
        name = next((name for name in names if name in best), next(iter(best)))
        each = (
            f"{one.name} ({name} {format_score(name, one.scores[name], 2)})" for one in baselines
        )
        yield f"baseline: {', '.join(each)}"


def _details_lines(details: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the tables and the confusion matrix."""
    from regard.metrics.tables import confusion_lines, table_lines

    for name in ("spans", "classes", "numbers"):
        if rows := details.get(name):
            yield from ["", *table_lines(rows)]
    if confusion := details.get("confusion"):
        yield from ["", *confusion_lines(confusion)]
    if len(rows := details.get("documents", [])) > 1:
        yield from ["", *table_lines([{"document": n, **row} for n, row in enumerate(rows, 1)])]
