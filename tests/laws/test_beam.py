"""Laws of search, over every decoder: neither the batch nor the beam changes what is right."""

from itertools import product

import pytest
import torch
from torch import nn

from regard.data.tensors.padded import Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.search import Beam, Hypothesis, SearchRequest

from .conftest import MODELS, few

LETTERS = [5, 6, 7]
MANY = [
    [*row, EOS] for row in ([5, 6], [], [8, 7, 5, 5, 6], [6], [7, 8], [5, 5, 5], [8], [6, 7, 8])
]
LIMITS = torch.tensor([5, 3, 6, 4, 1, 5, 2, 4])


def search(
    model: nn.Module, rows: list[int], beam: int = 3, nbest: int = 1
) -> list[list[Hypothesis]]:
    """The outputs for these of the many sources, together in one batch."""
    source = pad([MANY[row] for row in rows])
    return Beam(beam=beam).run(model, SearchRequest(source, LIMITS[rows], nbest))


@few
def test_the_batch_is_invisible(model: nn.Module) -> None:
    """Alone, by threes, in another order: the same outputs, the same scores."""
    whole = search(model, list(range(8)), nbest=3)
    batches = [[0], [1], [2], [7], [0, 1, 2], [3, 4, 5], [6, 7], [3, 0, 7, 5, 1, 2, 6, 4]]
    for rows in batches:
        for row, found in zip(rows, search(model, rows, nbest=3), strict=True):
            scores = [h.score for h in whole[row]]
            assert [h.score for h in found] == pytest.approx(scores, abs=1e-4)
            expected = {h.tokens: h.score for h in whole[row]}
            for one in found:  # equally good outputs may swap, also with the next one
                score = expected.get(one.tokens, scores[-1])
                assert one.score == pytest.approx(score, abs=1e-4)


@few
def test_beam_1_is_greedy(model: nn.Module) -> None:
    for row, (hypothesis,) in enumerate(search(model, list(range(8)), beam=1)):
        assert hypothesis.tokens == greedy(model, pad([MANY[row]]), int(LIMITS[row]))


@torch.no_grad()
def greedy(model: nn.Module, source: Padded, limit: int) -> tuple[int, ...]:
    """The most probable token each time, by running the whole prefix again."""
    tokens: list[int] = []
    while len(tokens) + 1 < limit:
        logits, _ = model.step(torch.tensor([[BOS, *tokens]]), model.start(source))
        best = max([EOS, *LETTERS], key=lambda token: float(logits[0, -1, token]))
        if best == EOS:
            break
        tokens.append(best)
    return tuple(tokens)


def test_a_wide_beam_is_exhaustive(
    model: nn.Module, options: EncoderDecoderOptions, source: Padded
) -> None:
    """With room for all 40 outputs of at most four tokens, all are found in their true order;
    every other model with lengths that count."""
    limits, length_penalty = (
        torch.full((len(source.data),), 4),
        [0.0, 0.75][MODELS.index(options) % 2],
    )
    search = Beam(beam=40, length_penalty=length_penalty)
    found = search.run(model, SearchRequest(source, limits, 40))
    exact = search.model_copy(update={"stopping": "optimal"})
    first = exact.run(model, SearchRequest(source, limits))
    for row, hypotheses in enumerate(found):
        true = enumerate_outputs(model, source, row, length_penalty)
        assert [h.score for h in hypotheses] == pytest.approx(
            sorted(true.values())[::-1], abs=1e-4, rel=1e-5
        )
        assert {h.tokens: h.score for h in hypotheses} == pytest.approx(true, abs=1e-4, rel=1e-5)
        assert first[row][0].score == pytest.approx(max(true.values()), abs=1e-4)


@torch.no_grad()
def enumerate_outputs(
    model: nn.Module, source: Padded, row: int, length_penalty: float
) -> dict[tuple[int, ...], float]:
    """Return log p / L^length_penalty of every output of <= 3 letters and EOS, teacher-forced."""
    outputs = [letters for n in range(4) for letters in product(LETTERS, repeat=n)]
    true = pad([[*letters, EOS] for letters in outputs])
    inputs = torch.cat([torch.full((len(outputs), 1), BOS), true.data[:, :-1]], 1)
    one = Padded(source.data[row : row + 1], source.mask[row : row + 1])
    logits, _ = model.step(inputs, model.start(one))
    logp = logits.log_softmax(-1).gather(-1, true.data.unsqueeze(-1)).squeeze(-1)
    totals = (logp * true.mask).sum(1)
    scores = totals / true.mask.sum(1) ** length_penalty
    return dict(zip(outputs, scores.tolist(), strict=True))


def test_n_best_are_sorted_distinct_and_within_limits(
    model: nn.Module, options: EncoderDecoderOptions
) -> None:
    """Fewer than the beam is wide or more, alternating."""
    (beam, nbest), length_penalty = (
        [(4, 2), (2, 5)][MODELS.index(options) % 2],
        Beam().length_penalty,
    )
    for row, hypotheses in enumerate(search(model, list(range(8)), beam, nbest)):
        scores = [h.score for h in hypotheses]
        assert 1 <= len(scores) <= nbest and scores == sorted(scores, reverse=True)
        assert len({h.tokens for h in hypotheses}) == len(hypotheses)
        for h in hypotheses:
            length = len(h.tokens) + 1
            assert length <= LIMITS[row] and set(h.tokens) <= set(LETTERS)
            assert len(h.token_logprobs) == length
            assert h.score == pytest.approx(h.log_probability / length**length_penalty, abs=1e-5)


def test_search_and_training_score_alike(model: nn.Module) -> None:
    """The score of an output is what teacher forcing gives it."""
    rows = [0, 2, 5]
    for row, hypotheses in zip(rows, search(model, rows, nbest=2), strict=True):
        for h in hypotheses:
            tokens = torch.tensor([[BOS, *h.tokens]])
            with torch.no_grad():
                logits, _ = model.step(tokens, model.start(pad([MANY[row]])))
            logp = logits[0].log_softmax(-1)[range(len(h.tokens) + 1), [*h.tokens, EOS]]
            assert list(h.token_logprobs) == pytest.approx(logp.tolist(), abs=1e-4)
