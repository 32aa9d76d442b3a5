"""The check that an exported model makes the same predictions as the original model."""

import random
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import UserError, info
from regard.core.files import read_json_lines
from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.inference.engine import Engine
from regard.inference.predictor import Predictor
from regard.search import Beam, Hypothesis, SearchRequest

COUNT = 48  # number of sources
MAX_LENGTH = 64  # maximum length of an output in tokens
BEAMS = (1, 5)
# Minimum fraction of equal best hypotheses. The engine onnx uses the search of regard.
MIN_EQUAL = {"ctranslate2": 0.95, "onnx": 0.99}
MIN_EQUAL_QUANTIZED = 0.3  # near-ties flip, more often in long outputs


def check_parity(predictor: Predictor, folder: Path, quantize: str | None = None) -> dict[str, Any]:
    """Return how well an export agrees with its model. Raise UserError if they differ.

    folder: the export. quantize: the type of its weights, if they are quantized.
    """
    task: Any = predictor.task
    if not task.exportable:
        return {}  # only search can flip near-ties
    engines, search = (predictor.engine, Predictor.load(folder).engine), Beam()
    most = min(
        (e.max_source_length for e in engines if e.max_source_length is not None),
        default=MAX_LENGTH,
    )
    rows = [row[-most:] for row in some_rows(task, predictor.folder)]
    max_lengths = [e.max_target_length for e in engines if e.max_target_length is not None]
    limits = [
        min(MAX_LENGTH, *max_lengths, task.max_output_length(len(row), search)) for row in rows
    ]
    least = MIN_EQUAL[engines[1].name] if quantize in (None, "float32") else MIN_EQUAL_QUANTIZED
    facts: dict[str, Any] = {"sources": len(rows)}
    for beam in BEAMS:
        ours, theirs = (_best(one, rows, limits, beam) for one in engines)
        equal, apart = parity(ours, theirs)
        facts[f"beam {beam}"] = {"equal": equal, "score_difference": apart}
        info(
            f"parity (beam {beam}): {equal:.1%} of {len(rows)} predictions identical, "
            f"max score difference {apart:.1g}"
        )
        if equal < least:
            raise UserError(
                f"{predictor.folder}: export check failed: {equal:.1%} of {len(rows)} predictions "
                f"match (beam {beam}), expected {least:.0%}; nothing was written"
            )
    return facts


def some_rows(task: Any, folder: Path) -> list[list[int]]:
    """Return the token ids of COUNT sources.

    These are samples of the run, filled up with parts of samples or with random tokens.
    """
    samples = read_json_lines(folder / "samples.jsonl")
    texts = list(dict.fromkeys(sample["source"] for sample in samples))
    tokenizer = task.source_tokenizer()
    rows = [row for row in tokenizer.encode_all(texts) if row][-COUNT:]
    rng = random.Random(1)
    ids = range(min(len(SPECIALS), len(tokenizer) - 1), len(tokenizer))
    pool = [id for row in rows for id in row] or rng.choices(ids, k=20 * COUNT)
    while len(rows) < COUNT:
        start = rng.randrange(len(pool))
        rows.append(pool[start : start + rng.randint(1, 20)])
    return [[*row, EOS] for row in rows]


def _best(engine: Engine, rows: list[list[int]], limits: list[int], beam: int) -> list[Hypothesis]:
    """Return the best hypothesis of each source."""
    request = SearchRequest(pad(rows), torch.tensor(limits))
    return [found[0] for found in engine.run(Beam(beam=beam), request)]


def parity(ours: list[Hypothesis], theirs: list[Hypothesis]) -> tuple[float, float]:
    """Return the fraction of equal hypotheses, and the maximum difference of their scores."""
    pairs = list(zip(ours, theirs, strict=True))
    equal = [(a, b) for a, b in pairs if a.tokens == b.tokens]
    apart = max((abs(a.score - b.score) for a, b in equal), default=0.0)
    return len(equal) / len(pairs), apart
