"""The command that answers texts."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import command_options as option
from regard.cli.union_options import SEARCH, Sampled, SearchSettings, made_by, with_search

wish = partial(typer.Option, rich_help_panel="Wishes")
speed = partial(typer.Option, rich_help_panel=option.SPEED)


@made_by(with_search)
def predict(
    model: option.Model,
    texts: option.Texts = None,
    input: Annotated[str | None, typer.Option(help="File with one text a line; - stdin.")] = None,
    output: Annotated[
        Path | None, typer.Option(help="File for the answers; a stopped command goes on.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Begin anew where a command was stopped.")
    ] = False,
    json_lines: option.Json = False,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="In JSON: each token with its score.")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="In JSON: what each token looked at.")
    ] = False,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    threshold: option.Threshold = None,
    debug: option.Debug = False,
    nbest: Annotated[
        int,
        typer.Option(
            min=1,
            help="Answers for each text; the beam is at least as wide.",
            rich_help_panel=SEARCH,
        ),
    ] = 1,
    settings: SearchSettings = None,
    sample: Sampled = False,
    prefix: Annotated[str, wish(metavar="TEXT", help="How answers begin.")] = "",
    must: Annotated[
        list[str] | None, wish(metavar="WORD", help="Must be in answers; repeat it.")
    ] = None,
    ban: Annotated[
        list[str] | None, wish(metavar="WORD", help="Is in no answer; repeat it.")
    ] = None,
    input_json: Annotated[
        bool,
        wish(
            "--input-json",
            help='Each line {"source": ..., "prefix": ..., "must": [...], "ban": [...]}.',
        ),
    ] = False,
    alternatives: Annotated[
        int, wish(min=0, metavar="N", help="N ways to go on behind --prefix, and where each leads.")
    ] = 0,
    others: Annotated[
        list[str] | None,
        speed("--with", metavar="MODEL", help="A model to answer together with; repeat it."),
    ] = None,
    engine: Annotated[str | None, speed(help="torch, ctranslate2, onnx or auto.")] = None,
    quantize: Annotated[str | None, speed(metavar="int8", help="Small weights.")] = None,
    shortlist: option.Short = False,
    shortlist_file: option.ShortFile = None,
    batch_size: Annotated[
        int | None,
        speed(min=1, help="Texts at a time, at most; else 64 to 256. Changes no answer."),
    ] = None,
    batch_tokens: Annotated[
        int, speed(min=1, help="Tokens at a time, at most. Changes no answer.")
    ] = 8192,
    shard: Annotated[
        str | None, speed(metavar="K/N", help="Only part K of N of the input.")
    ] = None,
    **search: Any,
) -> None:
    """Answer texts: regard predict runs/g2p-1 attention."""
    from regard.core import parallel
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.ensembles import joined
    from regard.inference.prediction.output_lines import Form
    from regard.inference.prediction.predict_job import predict_job
    from regard.inference.prediction.predict_options import PredictOptions
    from regard.tasks.values import Request

    option.check_texts(texts, input, "answer")
    search |= {"kind": "sample" if sample else None, "threshold": threshold}
    asked = PredictOptions(
        model=model,
        texts=tuple(texts or ()),
        input=input or "-",
        input_json=input_json,
        output=output,
        form=Form(nbest, json_lines, tokens, alignments, alternatives),
        request=Request(prefix, tuple(must or ()), tuple(ban or ())),
        search=search,
        settings=tuple(settings or ()),
        others=tuple(others or ()),
        engine=engine,
        quantize=quantize,
        shortlist=shortlist_file or shortlist,
        batch_size=batch_size,
        batch_tokens=batch_tokens,
        columns=(source_column, target_column),
        shard=shard,
        force=force,
    )
    with parallel.processes():
        share = asked.check()
        how = engine, quantize, asked.shortlist
        predictor = load_predictor(model, *how)
        if others:
            models = {other: load_predictor(other, *how) for other in others}
            predictor = joined(predictor, models)
        predict_job(predictor, asked, share)
