"""The command `regard predict`."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import command_options as option
from regard.cli.union_options import (
    SEARCH,
    SampleFlag,
    SearchSettings,
    with_parameters,
    with_search,
)
from regard.core.errors import info

constraint = partial(typer.Option, rich_help_panel="Constraints")
speed = partial(typer.Option, rich_help_panel=option.SPEED)


@with_parameters(with_search)
def predict(
    model: option.Model,
    texts: option.Texts = None,
    input: Annotated[
        str | None,
        typer.Option(
            help='Input file, one text per line ("-" for stdin). Images: folder, NPZ, IDX, table '
            "of files, or one path per line."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Output file; rerunning an interrupted command resumes it. For sounds: a folder, "
            "or a WAV file."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the output file; discard partial output."),
    ] = False,
    json_lines: option.Json = False,
    token_scores: Annotated[
        bool,
        typer.Option(
            "--token-scores", help="Add tokens and their log probabilities (requires --json)."
        ),
    ] = False,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments",
            help="Add attention from each output token to the source (requires --json).",
        ),
    ] = False,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    edges: option.EdgesFile = None,
    id_column: option.IdColumn = None,
    graph_column: option.GraphColumn = None,
    threshold: option.Threshold = None,
    debug: option.Debug = False,
    nbest: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of predictions per text (raises the beam size if needed).",
            rich_help_panel=SEARCH,
        ),
    ] = 1,
    settings: SearchSettings = None,
    sample: SampleFlag = False,
    prefix: Annotated[
        str, constraint(metavar="TEXT", help="Force the output to start with this text.")
    ] = "",
    require: Annotated[
        list[str] | None,
        constraint(metavar="WORD", help="Word or phrase the output must contain (repeatable)."),
    ] = None,
    ban: Annotated[
        list[str] | None,
        constraint(metavar="WORD", help="Word or phrase the output must not contain (repeatable)."),
    ] = None,
    input_json: Annotated[
        bool,
        constraint(
            "--input-json",
            help="Read JSON lines with per-source constraints: "
            '{"source", "prefix", "require", "ban"}.',
        ),
    ] = False,
    alternatives: Annotated[
        int,
        constraint(
            min=0,
            metavar="N",
            help="Show the N most probable next tokens after --prefix, each with its best "
            "completion.",
        ),
    ] = 0,
    ensemble: Annotated[
        list[str] | None,
        speed(metavar="MODEL", help="Additional model for an ensemble (repeatable)."),
    ] = None,
    rescore: option.Rescore = None,
    rescore_weight: option.RescoreWeight = None,
    engine: Annotated[
        str | None,
        speed(
            help="Inference engine: torch, ctranslate2, onnx, or auto (benchmark and pick the "
            "fastest)."
        ),
    ] = None,
    quantize: Annotated[
        str | None,
        speed(metavar="int8", help="Use int8 weights (CPU only): less memory, not faster."),
    ] = None,
    shortlist: option.Short = False,
    shortlist_file: option.ShortFile = None,
    batch_size: Annotated[
        int | None,
        speed(min=1, help="Maximum texts per batch (default: 64 to 256; does not affect results)."),
    ] = None,
    batch_tokens: Annotated[
        int,
        speed(min=1, help="Maximum tokens per batch, padding included (does not affect results)."),
    ] = 8192,
    shard: Annotated[
        str | None, speed(metavar="K/N", help="Process only shard K of N of the input.")
    ] = None,
    **search: Any,
) -> None:
    """Run a model on texts or files: regard predict runs/g2p-1 attention"""
    option.check_texts(texts, input, "predict")
    special = (
        *(output, token_scores, alignments, source_column, target_column, settings, sample),
        *(threshold is not None, prefix, require, ban, input_json, alternatives, ensemble, shard),
        *(shortlist, shortlist_file, rescore, edges, id_column, graph_column),
    )
    if texts and not any(special):
        format = nbest, json_lines
        if _predict_quickly(model, texts, format, engine, quantize, search):
            return
    from regard.core import parallel
    from regard.data.sources.open import DataSpec
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.ensembles import build_ensemble
    from regard.inference.prediction.output_lines import OutputFormat
    from regard.inference.prediction.predict_job import predict_job
    from regard.inference.prediction.predict_options import PredictOptions
    from regard.inference.prediction.sound_job import makes_sounds, sound_job
    from regard.inference.rescoring import with_scorer
    from regard.tasks.values import Constraints

    torch_only = "--ensemble" if ensemble else "--token-scores"
    if engine == "auto" and (ensemble or token_scores):
        info(f"engine auto: using torch, which {torch_only} needs")
        engine = None
    search |= {"kind": "sample" if sample else None, "threshold": threshold}
    options = PredictOptions(
        model=model,
        texts=tuple(texts or ()),
        input=input or "-",
        input_json=input_json,
        output=output,
        format=OutputFormat(nbest, json_lines, token_scores, alignments, alternatives),
        constraints=Constraints(prefix, tuple(require or ()), tuple(ban or ())),
        search=search,
        settings=tuple(settings or ()),
        ensemble=tuple(ensemble or ()),
        rescore=rescore,
        rescore_weight=rescore_weight,
        engine=engine,
        quantize=quantize,
        shortlist=shortlist_file or shortlist,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        columns=(source_column, target_column),
        graph=DataSpec(
            input or "-",
            source_column=source_column,
            edges=edges,
            id_column=id_column,
            graph_column=graph_column,
        ),
        shard=shard,
        force=force,
    )
    with parallel.process_group():
        if makes_sounds(Path(model)):
            sound_job(load_predictor(model, engine, quantize), options)
            return
        shard_of_process = options.check()
        how = engine, quantize, options.shortlist
        predictor = load_predictor(model, *how)
        if ensemble:
            models = {name: load_predictor(name, *how) for name in ensemble}
            predictor = build_ensemble(predictor, models)
        if rescore:
            predictor = with_scorer(predictor, load_predictor(rescore), rescore_weight)
        predict_job(predictor, options, shard_of_process)


def _predict_quickly(
    model: str,
    texts: list[str],
    format: tuple[int, bool],
    engine: str | None,
    quantize: str | None,
    search: dict[str, Any],
) -> bool:
    """Print the predictions without torch; return False, without output, if that is impossible.

    format: number of predictions per text, and whether to print JSON.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":  # every process predicts a shard
        return False
    from regard.exchange.quick_predict import quick_predict
    from regard.inference.prediction.output_lines import OutputFormat
    from regard.inference.prediction.prediction_warnings import PredictionWarnings
    from regard.tasks.values import InputItem

    found = quick_predict(Path(model), texts, format[0], engine, quantize, search)
    if found is None:
        return False
    warnings = PredictionWarnings()
    for text, prediction in zip(texts, found, strict=True):
        warnings.add(prediction)
        sys.stdout.write(OutputFormat(*format).line(InputItem(text, text), prediction, list))
    warnings.print()
    return True
