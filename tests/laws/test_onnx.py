"""Laws of the ONNX graphs: for every kind they answer as the model does, in any batch."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.core.errors import UserError
from regard.core.options import not_exported
from regard.data.tensors.padded import Padded, pad
from regard.exchange.export.onnx import write_graphs
from regard.inference.onnx_engine import OnnxEngine
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.search import Beam, Hypothesis, SearchRequest
from regard.search.forced_decoding import cross_attention, score_targets

from .conftest import FEW, MODELS, NAMES, SOURCES, tiny

KNOWN = [m for m in MODELS if not not_exported(m, "onnx", "model")]
KNOWN_NAMES = [name for name, m in zip(NAMES, MODELS, strict=True) if m in KNOWN]
every = pytest.mark.parametrize("options", KNOWN, ids=KNOWN_NAMES)
FIRST = len([m for m in MODELS[:FEW] if m in KNOWN])
few = pytest.mark.parametrize("options", KNOWN[:FIRST], ids=KNOWN_NAMES[:FIRST])
LIMITS = torch.tensor([9, 4, 6, 7])
TARGETS = [[5, 7], [6, 6, 5, 7, 5], [], [7, 5, 6]]


@cache
def exported(options: EncoderDecoderOptions) -> OnnxEngine:
    """The engine of a tiny model; its graphs are in memory, so that the folder may go."""
    with tempfile.TemporaryDirectory() as folder:
        write_graphs(tiny(options), Path(folder))
        return OnnxEngine(Path(folder))


@pytest.fixture
def engine(options: EncoderDecoderOptions) -> OnnxEngine:
    return exported(options)


def same(found: list[Hypothesis], wanted: list[Hypothesis]) -> None:
    """Token for token; scores as far as float32 goes."""
    assert [one.tokens for one in found] == [one.tokens for one in wanted]
    assert [one.truncated for one in found] == [one.truncated for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)


@every
def test_the_search_finds_the_same(
    model: nn.Module, options: EncoderDecoderOptions, engine: OnnxEngine, source: Padded
) -> None:
    """With one beam or five, alternating."""
    beam = [1, 5][MODELS.index(options) % 2]
    search, request = Beam(beam=beam), SearchRequest(source, LIMITS, beam)
    wanted = search.run(model, request)
    found = engine.run(search, request)
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


@few
def test_each_alone_as_in_the_batch(engine: OnnxEngine, source: Padded) -> None:
    together = engine.run(Beam(beam=3), SearchRequest(source, LIMITS))
    for row, limit, found in zip(SOURCES, LIMITS, together, strict=True):
        request = SearchRequest(pad([row, [5, *row]]), limit.repeat(2))
        alone = engine.run(Beam(beam=3), request)
        same(alone[0], found)


@every
def test_given_outputs_have_the_same_scores(
    model: nn.Module, engine: OnnxEngine, source: Padded
) -> None:
    same(score_targets(engine, source, TARGETS), score_targets(model, source, TARGETS))  # type: ignore[arg-type]


@every
def test_the_same_attention(model: nn.Module, engine: OnnxEngine, source: Padded) -> None:
    try:
        wanted = cross_attention(model, source, TARGETS)  # type: ignore[arg-type]
    except UserError:  # there is none
        with pytest.raises(UserError, match="no attention"):
            cross_attention(engine, source, TARGETS)
        return
    for one, other in zip(cross_attention(engine, source, TARGETS), wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    search = Beam(beam=3, coverage_penalty=0.3)  # beams of a sentence, each with its own attention
    request = SearchRequest(source, LIMITS)
    covering = search.run(model, request)
    for found, other in zip(engine.run(search, request), covering, strict=True):
        same(found, other)


def test_kinds_that_are_not_known_there_are_errors(tmp_path: Path) -> None:
    """By the graphs themselves as well: those that state it, and none of the others."""
    assert any(m.encoder.kind == m.decoder.kind == "transformer" for m in KNOWN)
    for options in MODELS:
        if options not in KNOWN:
            with pytest.raises(UserError, match="cannot be exported to ONNX"):
                write_graphs(tiny(options), tmp_path)
