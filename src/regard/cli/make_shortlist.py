"""The command `regard shortlist`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import command_options as option
from regard.cli.output_files import SHORTLIST, Force, check_overwrite
from regard.core.errors import UserError, info


def shortlist(
    model: option.Model,
    data: option.DataFile = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    source_column: option.SourceColumn = None,
    target_column: option.TargetColumn = None,
    per_token: Annotated[
        int, typer.Option(min=1, help="Number of target candidates to keep per source token.")
    ] = 50,
    frequent: Annotated[
        int, typer.Option(min=0, help="Number of frequent target tokens to add to every shortlist.")
    ] = 100,
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: MODEL/shortlist.safetensors).")
    ] = None,
    force: Force = False,
    debug: option.Debug = False,
) -> None:
    """Learn a lexical shortlist, which makes `predict --shortlist` faster."""
    from regard.data.sources.open import DataSpec
    from regard.exchange.engine_choice import load_predictor
    from regard.search.shortlist import FILE, Shortlist
    from regard.storage.run_files import trained_columns

    if out is not None:
        check_overwrite("--out", out, SHORTLIST, force)
    predictor = load_predictor(model)
    task: Any = predictor.task
    options = predictor.config.task
    if not task.exportable:
        raise UserError(f"{model}: shortlists are only supported for --task transduce")
    spec = DataSpec(data, source, target, source_column, target_column)
    opened = options.open(trained_columns(spec, predictor.folder), DataSpec())
    kept, skipped = options.trainable(opened.train)
    for note in [*opened.notes, *skipped]:
        info(note.removesuffix(" (--dev FILE overrides)"))
    tokenizers = task.source_tokenizer(), task.target
    sizes = len(tokenizers[0]), len(tokenizers[1])
    shortlist = Shortlist.learn(*_rows(task, kept), *sizes, per_token, frequent)
    path = out or predictor.folder / FILE
    shortlist.save(path, *tokenizers)
    mean, covered = shortlist.coverage(*_rows(task, opened.dev))
    print(f"mean shortlist size{mean:>13,.1f} of {sizes[1]:,} target tokens")
    print(f"reference tokens covered{covered:>8.2%} of {len(opened.dev):,} held-out pairs")
    info(f"written: {path}")


def _rows(task: Any, pairs: Sequence[Any]) -> tuple[list[list[int]], list[list[int]]]:
    """Return the token ids of sources (with EOS, as the model reads them) and of targets."""
    from regard.data.tensors.special import EOS

    sources = task.source_tokenizer().encode_all([pair.source for pair in pairs])
    targets = task.target.encode_all([pair.target for pair in pairs])
    return [[*row, EOS] for row in sources], targets
