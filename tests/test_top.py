"""The best continuations of all beams of a sentence, against the plain way."""

import pytest
import torch
from torch import Tensor

from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.search.top import beam_topk, can_use_beam_topk


def plain(logits: Tensor, total: Tensor, k: int) -> list[list[tuple[int, int, float, float]]]:
    """Every continuation of every beam, sorted."""
    W, V = total.shape[1], logits.shape[1]
    logp = logits.double().log_softmax(-1)
    logp[:, NON_OUTPUT_IDS] = float("-inf")
    whole = (logp.view(-1, W, V) + total[..., None]).flatten(1)
    best = whole.topk(k)
    gained = logp.view(-1, W * V).gather(1, best.indices)
    return [
        [(place // V, place % V, g, t) for place, g, t in zip(*row, strict=True)]
        for row in zip(best.indices.tolist(), gained.tolist(), best.values.tolist(), strict=True)
    ]


@pytest.mark.parametrize("vocabulary", [640, 641, 703, 2000])
@pytest.mark.parametrize(("sentences", "beams"), [(1, 1), (1, 5), (7, 3), (4, 5)])
def test_all_beams_together(vocabulary: int, sentences: int, beams: int) -> None:
    chance = torch.Generator().manual_seed(vocabulary + sentences)
    logits = torch.randn(sentences * beams, vocabulary, generator=chance) * 3
    total = -5 * torch.rand(sentences, beams, generator=chance)
    total[0, -1] = float("-inf") if beams > 1 else total[0, -1]  # a beam that is dead
    k = 2 * beams
    assert can_use_beam_topk(logits, k)
    expected = plain(logits, total, k)
    found = [x.tolist() for x in beam_topk(logits.clone(), total, k)]
    for b, row in enumerate(expected):
        for n, (parent, token, gained, whole) in enumerate(row):
            assert (found[0][b][n], found[1][b][n]) == (parent, token)
            assert found[2][b][n] == pytest.approx(gained, abs=1e-5)
            assert found[3][b][n] == pytest.approx(whole, abs=1e-5)


def test_the_last_tokens_are_checked_too() -> None:
    """Those behind the last whole chunk."""
    logits = torch.zeros(2, 645)
    logits[0, 644], logits[1, 642] = 9.0, 8.0
    parent, token, *_ = beam_topk(logits, torch.zeros(1, 2), 2)
    assert (parent.tolist(), token.tolist()) == ([[0, 1]], [[644, 642]])


def test_few_chunks_use_the_general_path() -> None:
    assert not can_use_beam_topk(torch.zeros(1, 64 * 9), 10)
