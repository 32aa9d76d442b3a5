"""Random searches: each engine finds what torch finds."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.data.tensors.padded import pad
from regard.data.tensors.special import EOS, SPECIALS
from regard.exchange.export import export_model
from regard.inference.open_engine import open_engine
from regard.search import Beam, SearchRequest

COUNT = 100  # searches per engine


def random_search(chance: random.Random, ids: range) -> tuple[Beam, SearchRequest]:
    """Some sources, each with its own length limit, and a beam search with random settings."""
    rows = [
        [*chance.choices(ids, k=chance.randint(0, 9)), EOS] for _ in range(chance.randint(1, 3))
    ]
    limits = torch.tensor([chance.randint(1, 14) for _ in rows])
    beam = chance.randint(1, 6)
    search = Beam(
        beam=beam,
        length_penalty=chance.choice([0.0, 0.5, 0.75, 1.0, 2.0]),
        length_norm=chance.choice(["average", "average", "none", "gnmt"]),
        stopping=chance.choice(["beam_full", "beam_full", "beam_full", "no_gain", "optimal"]),
        min_length=chance.choice([0, 0, 0, 2]),
        no_repeat_ngram=chance.choice([0, 0, 0, 2]),
    )
    return search, SearchRequest(pad(rows), limits, chance.randint(1, beam))


@pytest.mark.parametrize("name", ["ctranslate2", "onnx"])
def test_random_searches(name: str, exported: Any, tmp_path: Path) -> None:
    pytest.importorskip({"ctranslate2": "ctranslate2", "onnx": "onnxruntime"}[name])
    model, folder = exported("pre")
    if name == "onnx":
        folder = tmp_path / "onnx"
        export_model(model.predictor_, "onnx", folder)
    engine, ours = open_engine(folder), model.predictor_.engine
    chance = random.Random(11)
    ids = range(len(SPECIALS), len(model.task_.source.tokenizer))
    for number in range(COUNT):
        search, request = random_search(chance, ids)
        pairs = zip(ours.run(search, request), engine.run(search, request), strict=True)
        for one, other in pairs:
            about = f"search {number}: {search}"
            assert [h.tokens for h in one] == [h.tokens for h in other], about
            assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)
            assert [h.truncated for h in one] == [h.truncated for h in other], about
