"""The command `regard distill`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import command_options as option
from regard.core.errors import UserError, info


def distill(
    model: option.Model,
    data: option.DataFile = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output file: TSV, or JSON lines for FILE.jsonl; rerunning an interrupted command "
            "resumes it."
        ),
    ] = None,
    input: Annotated[
        str | None, typer.Option(help="Instead of DATA: a file with one source per line.")
    ] = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    split_column: option.SplitColumn = None,
    split: option.Split = None,
    beam: option.Beam = None,
    nbest: Annotated[
        int, typer.Option(min=1, help="Number of outputs per source, one line each.")
    ] = 1,
    keep_reference: Annotated[
        bool, typer.Option("--keep-reference", help="Also write the references of DATA.")
    ] = False,
    settings: option.Settings = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="Process only shard K of N of the sources.")
    ] = None,
    batch_size: option.BatchSize = 64,
    engine: option.EngineName = None,
    quantize: option.Quantize = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite the output file; discard partial output."),
    ] = False,
    debug: option.Debug = False,
) -> None:
    """Write a model's outputs as training data: regard distill runs/m train.tsv --out new.tsv"""
    from regard.core import parallel
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.distill_job import DistillJob, check_input
    from regard.inference.prediction.output_lines import OutputFormat
    from regard.inference.prediction.predict_job import run_job
    from regard.inference.prediction.predict_options import PredictOptions, search_changes

    if out is None:
        raise UserError("distill: expected an output file, found none", help="--out FILE.tsv")
    pairs_given = any((data, source, target))
    if pairs_given == (input is not None):
        raise UserError("distill: expected either DATA (pairs) or --input FILE (one source a line)")
    if keep_reference and input is not None:
        raise UserError("--keep-reference: requires DATA with targets")
    where = input or data or source or ""
    check_input(where)
    options = PredictOptions(
        model=model,
        input=where,
        output=out,
        format=OutputFormat(nbest),
        search={"beam": beam},
        settings=tuple(settings or ()),
        engine=engine,
        quantize=quantize,
        batch_size=batch_size,
        shard=shard,
        force=force,
    )
    with parallel.process_group():
        shard_of_process = options.check()
        predictor = load_predictor(model, engine, quantize, False)
        examples = None
        if input is None:
            examples = _examples(
                predictor,
                (data, source, target, source_column, target_column),
                split_column=split_column,
                split=split,
            )
            info(f"{predictor.task.count_label(len(examples))} to distill")
        search = predictor.search_options(**search_changes(options.search, options.settings))
        job = DistillJob(
            predictor, options, search, examples=examples, keep_reference=keep_reference
        )
        job.check()
        record = {"distill": {"keep_reference": keep_reference, "json": job.as_json}}
        run_job(
            job,
            shard_of_process,
            lambda: options.fingerprint(shard_of_process, search) | record,
        )


def _examples(predictor: Any, files: tuple[Any, ...], **split: Any) -> list[Any]:
    """Return the distinct sources of the data, with their references."""
    from regard.data.sources.open import DataSpec, open_test
    from regard.storage.run_files import trained_columns

    task, options = predictor.task, predictor.config.task
    spec = trained_columns(DataSpec(*files, **split), predictor.folder)
    pairs, notes = open_test(spec, options.read, options.kind)
    for line in notes:
        info(line)
    examples: list[Any] = task.examples(pairs)
    return examples
