"""Laws of the optimum: a beam with room for all outputs finds the best, however they are ranked."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.capture_hooks import recording
from regard.search import Beam, SearchRequest

from .conftest import MODELS, tiny

LETTERS = [5, 6, 7]
OUTPUTS = [letters for n in range(4) for letters in product(LETTERS, repeat=n)]
LENGTHS = torch.tensor([len(output) + 1 for output in OUTPUTS])
LIMIT = 4  # three letters and the end
WIDE = len(OUTPUTS)  # 40: at no step are there more continuations than 9 x 4 = 36
RANKS = [("average", 0.75), ("average", 1.5), ("gnmt", 0.6), ("none", 1.0)]


@torch.no_grad()
def by_force(model: nn.Module, source: Padded, row: int, looks: bool) -> tuple[Tensor, Tensor]:
    """log p of every output, and its coverage: sum over the source of log min(attention, 1)."""
    true = pad([[*output, EOS] for output in OUTPUTS])
    inputs = torch.cat([torch.full((len(OUTPUTS), 1), BOS), true.data[:, :-1]], 1)
    real = int(source.mask[row].sum())
    one = pad([source.data[row, :real].tolist()] * len(OUTPUTS))
    with recording() as seen:
        logits, _ = model.step(inputs, model.start(one))
    logp = logits.log_softmax(-1).gather(-1, true.data.unsqueeze(-1)).squeeze(-1)
    total = (logp * true.mask).sum(1)
    if not looks:
        return total, torch.zeros_like(total)
    received = (seen.alignment() * true.mask[..., None]).sum(1)  # (40, S)
    return total, received.clamp(1e-6, 1).log().sum(1)


def looks(options: EncoderDecoderOptions) -> bool:
    """Whether a model attends to its source."""
    return options.decoder.cross.kind != "none"


def test_a_wide_beam_finds_the_optimum(
    model: nn.Module, options: EncoderDecoderOptions, source: Padded
) -> None:
    """For every normalization, with and without coverage."""
    request = SearchRequest(source, torch.full((len(source.data),), LIMIT))
    rows = range(len(source.data))
    true = [by_force(model, source, row, looks(options)) for row in rows]
    divisors = {
        "average": lambda length_penalty: LENGTHS**length_penalty,
        "gnmt": lambda length_penalty: ((5 + LENGTHS) / 6) ** length_penalty,
        "none": lambda length_penalty: torch.ones(WIDE),
    }
    number = MODELS.index(options)
    for some, coverage in enumerate([0.0, 0.4] if looks(options) else [0.0]):
        length_norm, length_penalty = RANKS[
            (number + some) % len(RANKS)
        ]  # all of them in four models
        search = Beam(
            beam=WIDE,
            length_norm=length_norm,
            length_penalty=length_penalty,
            coverage_penalty=coverage,
            stopping="optimal",
        )
        for row, (found,) in zip(rows, search.run(model, request), strict=True):
            total, cover = true[row]
            scores = total / divisors[length_norm](length_penalty) + coverage * cover
            assert found.score == pytest.approx(float(scores.max()), abs=1e-4)
            place = OUTPUTS.index(found.tokens)
            assert float(scores[place]) == pytest.approx(found.score, abs=1e-4)


@pytest.mark.parametrize("beam", [2, WIDE])
def test_optimal_is_never_beaten(pair: EncoderDecoderOptions, source: Padded, beam: int) -> None:
    """The other rules only leave earlier from the same beams, so they find no better one."""
    model, request = tiny(pair), SearchRequest(source, torch.full((len(source.data),), 6))
    for length_penalty in (0.0, 1.0, 2.0):
        best = Beam(beam=beam, length_penalty=length_penalty, stopping="optimal").run(
            model, request
        )
        for stop in ("no_gain", "beam_full", "first"):
            found = Beam(beam=beam, length_penalty=length_penalty, stopping=stop).run(
                model, request
            )
            for (one,), (other,) in zip(found, best, strict=True):
                assert one.score <= other.score + 1e-5
