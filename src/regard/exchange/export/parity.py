"""Whether an exported model answers as the model that it was made from."""

import json
import random
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import UserError, info
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.inference.engine import Engine
from regard.inference.predictor import Predictor
from regard.search import Beam, Hypothesis, SearchRequest

COUNT = 48  # sources
LONGEST = 64  # tokens of an answer, at most
BEAMS = (1, 5)
# The share of best answers that must be equal. onnx has our own search around the same numbers.
LEAST = {"ctranslate2": 0.95, "onnx": 0.99}
LEAST_ROUNDED = 0.3  # of rounded weights: near ties go the other way, more so in long answers


def check_parity(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """How alike the answers of an exported folder and of its model are; refused where they differ.

    quantize: how its weights are rounded.
    """
    task: Any = predictor.task
    if not task.exportable:
        return {}  # only transducers have answers that a search can turn round
    engines, search = (predictor.engine, Predictor.load(folder).engine), Beam()
    most = min((e.source_places for e in engines if e.source_places is not None), default=LONGEST)
    rows = [row[-most:] for row in some_rows(task, predictor.folder)]
    places = [e.target_places for e in engines if e.target_places is not None]
    limits = [min(LONGEST, *places, task.limit(len(row), search)) for row in rows]
    least = LEAST[engines[1].name] if quantize in (None, "float32") else LEAST_ROUNDED
    facts: dict[str, Any] = {"sources": len(rows)}
    for beam in BEAMS:
        ours, theirs = (_answers(one, rows, limits, beam) for one in engines)
        equal, apart = compare(ours, theirs)
        facts[f"beam {beam}"] = {"equal": equal, "score_difference": apart}
        info(
            f"beam {beam}: {equal:.1%} of {len(rows)} best answers as before, "
            f"their scores at most {apart:.1g} apart"
        )
        if equal < least:
            raise UserError(
                f"the exported model does not answer as {predictor.folder} does: with beam {beam} "
                f"{equal:.1%} of {len(rows)} best answers are equal, {least:.0%} expected; "
                "nothing was written"
            )
    return facts


def some_rows(task: Any, folder: Path) -> list[list[int]]:
    """Sources as tokens: those that the run shows, pieces of them, or else tokens by chance."""
    path = folder / "samples.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    texts = list(dict.fromkeys(json.loads(line)["source"] for line in lines))
    tokenizer = task.source_tokenizer()
    rows = [row for row in tokenizer.encode_all(texts) if row][-COUNT:]
    chance = random.Random(1)
    ids = range(min(len(SPECIALS), len(tokenizer) - 1), len(tokenizer))
    pool = [id for row in rows for id in row] or chance.choices(ids, k=20 * COUNT)
    while len(rows) < COUNT:
        start = chance.randrange(len(pool))
        rows.append(pool[start : start + chance.randint(1, 20)])
    return [[*row, EOS] for row in rows]


def _answers(
    engine: Engine, rows: list[list[int]], limits: list[int], beam: int
) -> list[Hypothesis]:
    """The best answer to each row."""
    request = SearchRequest(pad(rows), torch.tensor(limits))
    return [found[0] for found in engine.run(Beam(beam=beam), request)]


def compare(ours: list[Hypothesis], theirs: list[Hypothesis]) -> tuple[float, float]:
    """The share of equal answers, and how far the scores of the equal ones are apart at most."""
    pairs = list(zip(ours, theirs, strict=True))
    equal = [(a, b) for a, b in pairs if a.tokens == b.tokens]
    apart = max((abs(a.score - b.score) for a, b in equal), default=0.0)
    return len(equal) / len(pairs), apart
