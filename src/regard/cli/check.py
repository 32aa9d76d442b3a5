"""The command `regard check`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import command_options as option
from regard.core.errors import UserError, info


def check(
    data: option.DataFile = None,
    task: option.TaskName = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    dev: option.Dev = None,
    dev_source: option.DevSource = None,
    dev_target: option.DevTarget = None,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    split_column: option.SplitColumn = None,
    edges: option.EdgesFile = None,
    id_column: option.IdColumn = None,
    graph_column: option.GraphColumn = None,
    speaker_column: option.SpeakerColumn = None,
    max_length: Annotated[
        int | None, typer.Option(min=1, help="Report how many pairs task.max_length=N would skip.")
    ] = None,
    settings: option.Settings = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Write a rank-frequency (Zipf) plot as SVG; language-model data only."),
    ] = None,
    json_object: option.Json = False,
    debug: option.Debug = False,
) -> None:
    """Check data before training: sizes, lengths, vocabulary, likely errors."""
    from regard.config.load import load_config
    from regard.core.files import write_text
    from regard.data.sources.open import DataSpec
    from regard.views.report.zipf import zipf_svg

    if max_length and task not in (None, "transduce"):
        raise UserError("--max-length: only supported for --task transduce")
    given = [*(settings or []), *([f"task.max_length={max_length}"] if max_length else [])]
    config = load_config(None, [f"task.kind={task or 'transduce'}", *given])
    spec = DataSpec(
        *(data, source, target, source_column, target_column),
        split_column=split_column,
        edges=edges,
        id_column=id_column,
        graph_column=graph_column,
        speaker_column=speaker_column,
    )
    held = DataSpec(
        *(dev, dev_source, dev_target, source_column, target_column, "--dev-"),
        speaker_column=speaker_column if dev else None,
    )
    opened = config.task.open(spec, held)
    kept, skipped = config.task.trainable(opened.train)
    fitted, _, auto_settings = config.task.fit(kept, config.model)
    result = fitted.check(opened.train, opened.dev)
    if plot is not None:
        svg = zipf_svg(result.as_dict())
        if not svg:
            raise UserError("--plot: only supported for --task language-model")
        write_text(plot, svg)
        info(f"written: {plot}")
    if json_object:
        print(json.dumps({**result.as_dict(), "notes": opened.notes}, ensure_ascii=False))
        return
    auto = [f"auto: {s.key}={s.value} ({s.reason})" for s in auto_settings]
    for line in [*opened.notes, *skipped, *auto, ""]:
        print(line)
    for line in result.lines():
        print(line)
