"""The command `regard score`."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Annotated, Any

import typer

from regard.cli import command_options as option
from regard.core.errors import UserError


def score(
    model: option.Model,
    texts: option.Texts = None,
    input: Annotated[
        str | None,
        typer.Option(help='Input file: one text per line, or source TAB target ("-" for stdin).'),
    ] = None,
    source: option.SourceFile = None,
    target: option.TargetFile = None,
    batch_size: option.BatchSize = 64,
    json_lines: option.Json = False,
    debug: option.Debug = False,
) -> None:
    """Compute log probabilities and perplexity of texts or source-target pairs."""
    if (source is None) != (target is None):
        raise UserError("--source and --target must be used together")
    if source and (texts or input):
        raise UserError("--source and --target cannot be combined with texts or --input")
    if not source:
        option.check_texts(texts, input, "score")
    from regard.data.reading.lines import read_lines
    from regard.data.reading.read import Pair
    from regard.exchange.engine_choice import load_predictor

    predictor = load_predictor(model)
    task, abilities = predictor.task, predictor.abilities
    if "score pairs" in abilities:
        tabbed = texts or [], input or "-"
        pairs = _aligned(source, target) if source and target else _tabbed(*tabbed)
        folder_of = "-" if texts else source or input or "-"  # paths are relative to this file
        return _score_pairs(predictor, pairs, folder_of, json_lines, batch_size)
    if "score texts" not in abilities:
        raise UserError(
            f"{model}: score is only supported for language-model and transduce models that "
            f"write token by token, found {task.kind} with output {predictor.config.model.gives}"
        )
    if source:
        raise UserError(
            f"{model}: a language model scores texts, not pairs", help="use --input FILE"
        )
    lines = texts or [line for line in read_lines(input or "-") if line]
    if not lines:
        raise _no_texts()
    found = predictor.score([Pair("", text, 0) for text in lines], batch_size)
    return _print_texts(lines, found, json_lines)


def _print_texts(lines: list[str], found: Any, json_lines: bool) -> None:
    from regard.inference.prediction.output_lines import one_line
    from regard.inference.prediction.prediction_warnings import PredictionWarnings

    warnings = PredictionWarnings()
    for _, prediction in found:
        warnings.add(prediction)
    warnings.print()
    if not json_lines:
        print("perplexity\tbits_per_character\tnats\ttext")
    for text, (row, _) in zip(lines, found, strict=True):
        if json_lines:
            print(json.dumps({"text": text, **row}, ensure_ascii=False))
        else:
            numbers = (row["perplexity"], row["bits_per_character"], row["nats"])
            print("\t".join([*(f"{number:.4f}" for number in numbers), one_line(text)]))


def _aligned(source: str, target: str) -> Iterator[tuple[str, str, str]]:
    """Yield (source, target, their concatenation) for each line of two files."""
    from regard.data.reading.lines import read_lines

    rows = zip_longest(read_lines(source), read_lines(target))
    for number, (left, right) in enumerate(rows, 1):
        if left is None or right is None:
            short, long = (source, target) if left is None else (target, source)
            raise UserError(f"{short}: has {number - 1:,} lines, {long} has more")
        yield left, right, left + right


def _tabbed(texts: list[str], input: str) -> Iterator[tuple[str, str, str]]:
    """Yield (source, target, line) for each text or, without texts, each line of an input."""
    from regard.data.reading.lines import read_lines, show_path

    where = "text" if texts else f"{show_path(input)} line"
    for number, line in enumerate(texts or read_lines(input), 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(
                f"{where} {number}: expected source TAB target, found {len(cells) - 1} tabs",
                help="use --source FILE --target FILE for two files",
            )
        yield cells[0], cells[1], line


def _score_pairs(
    predictor: Any,
    rows: Iterator[tuple[str, str, str]],
    input: str,
    json_lines: bool,
    batch_size: int,
) -> None:
    """Print the scores of (source, target, line). input: file that paths are relative to."""
    from regard.data.reading.read import Pair
    from regard.inference.prediction.prediction_warnings import PredictionWarnings
    from regard.inference.prediction.windows import fixed_windows
    from regard.tasks.values import InputItem

    task, reader = predictor.task, predictor.task.source
    items = (
        InputItem(Pair(task.parse(reader.locate(s, input)), t, n), text)
        for n, (s, t, text) in enumerate(rows, 1)
    )
    warnings, count = PredictionWarnings(), 0
    for window in fixed_windows(items):
        if not count and not json_lines:
            print("perplexity\tlog_probability\tsource\ttarget")
        pairs = [item.source for item in window]
        for pair, (row, prediction) in zip(pairs, predictor.score(pairs, batch_size), strict=True):
            warnings.add(prediction)
            shown = reader.text(pair.source), pair.target
            print(_line(shown, row, prediction.unknown_tokens, json_lines), flush=False)
        count += len(window)
    if not count:
        raise _no_texts()
    warnings.print()


def _line(
    pair: tuple[str, str], row: dict[str, Any], unknown: tuple[str, ...], json_lines: bool
) -> str:
    from regard.inference.prediction.output_lines import one_line

    names = ("log_probability", "perplexity")
    if not json_lines:
        numbers = (f"{row[name]:.4f}" for name in reversed(names))
        return "\t".join([*numbers, *map(one_line, pair)])
    rounded = {name: round(row[name], 6) for name in names}
    source, target = pair
    record = {"source": source, "target": target, **rounded, "tokens": row["tokens"]}
    record["token_logprobs"] = [round(score, 6) for score in row["token_logprobs"]]
    record |= {"unknown_tokens": list(unknown)} if unknown else {}
    return json.dumps(record, ensure_ascii=False)


def _no_texts() -> UserError:
    return UserError("nothing to score", help="pass texts or --input FILE, or pipe lines to stdin")
