"""What `regard score` does, without the parsing of its words."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.lines import read_lines, show_path
from regard.data.reading.read import Pair
from regard.estimators import Estimator, LanguageModel, Transducer, load
from regard.estimators.transducer import scored
from regard.inference.prediction.input_items import InputItem
from regard.inference.prediction.prediction_warnings import Oddities
from regard.inference.prediction.windows import fixed_windows

Files = tuple[str | None, str | None]
NOTHING = "nothing to score: give texts, --input FILE, or pipe lines in"


def score_command(
    model: str, texts: list[str], input: str, files: Files, json_lines: bool, batch_size: int
) -> None:
    """How probable texts are for a language model, or given answers for a transducer."""
    estimator = load(model)
    if isinstance(estimator, Transducer):
        return _score_pairs(estimator, _pairs(texts, input, files), json_lines, batch_size)
    if not isinstance(estimator, LanguageModel):
        raise UserError(
            f"{model}: a {estimator.task} model; only language models score texts, and "
            "transducers pairs"
        )
    if files[0]:
        raise UserError(f"{model}: a language model scores texts, not pairs; give --input FILE")
    lines = texts or [line for line in read_lines(input) if line]
    if not lines:
        raise UserError(NOTHING)
    return _score_texts(estimator, lines, json_lines, batch_size)


def _score_texts(
    estimator: LanguageModel, lines: list[str], json_lines: bool, batch_size: int
) -> None:
    rows = estimator.scores(lines, batch_size)
    odd = Oddities()
    for text in lines:
        odd.add_unknown(estimator.unknown(text))
    odd.say()
    if not json_lines:
        print("perplexity\tbits_per_character\tnats\ttext")
    for text, row in zip(lines, rows, strict=True):
        if json_lines:
            print(json.dumps({"text": text, **row}, ensure_ascii=False))
        else:
            figures = (row["perplexity"], row["bits_per_character"], row["nats"])
            print("\t".join([*(f"{figure:.4f}" for figure in figures), text]))


def _pairs(texts: list[str], input: str, files: Files) -> Iterator[InputItem]:
    """Sources with their targets, each as soon as it is there."""
    source, target = files
    if source is not None and target is not None:
        rows = zip_longest(read_lines(source), read_lines(target))
        for number, (left, right) in enumerate(rows, 1):
            if left is None or right is None:
                short, long = (source, target) if left is None else (target, source)
                raise UserError(f"{short}: ends after {number - 1:,} lines, {long} has more")
            yield InputItem(Pair(left, right, number), left + right)
        return
    where = "text" if texts else f"{show_path(input)} line"
    for number, line in enumerate(texts or read_lines(input), 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(
                f"{where} {number}: source, tab, target expected, {len(cells) - 1} tabs found; or "
                "give --source FILE --target FILE"
            )
        yield InputItem(Pair(cells[0], cells[1], number), line)


def _score_pairs(
    estimator: Estimator, asked: Iterator[InputItem], json_lines: bool, batch_size: int
) -> None:
    odd, count = Oddities(), 0
    for window in fixed_windows(asked):
        if not count and not json_lines:
            print("perplexity\tlog_probability\tsource\ttarget")
        pairs = [question.source for question in window]
        found = scored(estimator.task_, estimator.model_, pairs, batch_size)
        for pair, (row, prediction) in zip(pairs, found, strict=True):
            odd.add(prediction)
            print(_line(pair, row, prediction.unknown, json_lines), flush=False)
        count += len(window)
    if not count:
        raise UserError(NOTHING)
    odd.say()


def _line(pair: Pair, row: dict[str, Any], unknown: tuple[str, ...], json_lines: bool) -> str:
    if not json_lines:
        figures = (f"{row[name]:.4f}" for name in ("perplexity", "log_probability"))
        return "\t".join([*figures, pair.source, pair.target])
    rounded = {name: round(row[name], 6) for name in ("log_probability", "perplexity")}
    symbols = [[symbol, round(score, 6)] for symbol, score in row["symbols"]]
    record = {"source": pair.source, "target": pair.target, **rounded, "symbols": symbols}
    record |= {"unknown": list(unknown)} if unknown else {}
    return json.dumps(record, ensure_ascii=False)
