"""The command that says how probable texts and given answers are."""

import json
from typing import Annotated, Any

import typer

from regard.cli.command_options import (
    BatchSize,
    Debug,
    Json,
    Model,
    SourceFile,
    TargetFile,
    Texts,
    check_texts,
)
from regard.core.errors import UserError

NOTHING = "nothing to score: give texts, --input FILE, or pipe lines in"


def score(
    model: Model,
    texts: Texts = None,
    input: Annotated[
        str | None,
        typer.Option(help="File with one text a line, or source, tab, target; - stdin."),
    ] = None,
    source: SourceFile = None,
    target: TargetFile = None,
    batch_size: BatchSize = 64,
    json_lines: Json = False,
    debug: Debug = False,
) -> None:
    """Say how probable texts, or given answers, are: regard score runs/novel-1 "a text"."""
    if (source is None) != (target is None):
        raise UserError("--source and --target go together")
    if source and (texts or input):
        raise UserError("give --source and --target, or texts, or --input; not several")
    if not source:
        check_texts(texts, input, "score")
    from regard.data.reading.lines import read_lines
    from regard.exchange.engine_choice import load_predictor
    from regard.inference.prediction.input_items import aligned_pairs, tabbed_pairs

    predictor = load_predictor(model)
    if "score pairs" in predictor.task.abilities:
        tabbed = texts or [], input or "-"
        pairs = aligned_pairs(source, target) if source and target else tabbed_pairs(*tabbed)
        return _score_pairs(predictor, pairs, json_lines, batch_size)
    if "score texts" not in predictor.task.abilities:
        raise UserError(
            f"{model}: a {predictor.task.kind} model; only language models score texts, and "
            "transducers pairs"
        )
    if source:
        raise UserError(f"{model}: a language model scores texts, not pairs; give --input FILE")
    lines = texts or [line for line in read_lines(input or "-") if line]
    if not lines:
        raise UserError(NOTHING)
    return _score_texts(predictor, lines, json_lines, batch_size)


def _score_texts(predictor: Any, lines: list[str], json_lines: bool, batch_size: int) -> None:
    from regard.data.reading.read import Pair
    from regard.inference.prediction.prediction_warnings import Oddities

    found = predictor.score([Pair("", text, 0) for text in lines], batch_size)
    odd = Oddities()
    for _, prediction in found:
        odd.add(prediction)
    odd.say()
    if not json_lines:
        print("perplexity\tbits_per_character\tnats\ttext")
    for text, (row, _) in zip(lines, found, strict=True):
        if json_lines:
            print(json.dumps({"text": text, **row}, ensure_ascii=False))
        else:
            figures = (row["perplexity"], row["bits_per_character"], row["nats"])
            print("\t".join([*(f"{figure:.4f}" for figure in figures), text]))


def _score_pairs(predictor: Any, asked: Any, json_lines: bool, batch_size: int) -> None:
    from regard.inference.prediction.prediction_warnings import Oddities
    from regard.inference.prediction.windows import fixed_windows

    odd, count = Oddities(), 0
    for window in fixed_windows(asked):
        if not count and not json_lines:
            print("perplexity\tlog_probability\tsource\ttarget")
        pairs = [question.source for question in window]
        found = predictor.score(pairs, batch_size)
        for pair, (row, prediction) in zip(pairs, found, strict=True):
            odd.add(prediction)
            print(_line(pair, row, prediction.unknown, json_lines), flush=False)
        count += len(window)
    if not count:
        raise UserError(NOTHING)
    odd.say()


def _line(pair: Any, row: dict[str, Any], unknown: tuple[str, ...], json_lines: bool) -> str:
    names = ("log_probability", "perplexity")
    if not json_lines:
        figures = (f"{row[name]:.4f}" for name in reversed(names))
        return "\t".join([*figures, pair.source, pair.target])
    rounded = {name: round(row[name], 6) for name in names}
    symbols = [[symbol, round(score, 6)] for symbol, score in row["symbols"]]
    record = {"source": pair.source, "target": pair.target, **rounded, "symbols": symbols}
    record |= {"unknown": list(unknown)} if unknown else {}
    return json.dumps(record, ensure_ascii=False)
