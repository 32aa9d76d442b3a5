"""What a search asks of logits, against what torch says."""

import pytest
import torch

from regard.search.hypothesis import NON_OUTPUT_IDS
from regard.search.top import (
    CHUNK,
    MIN_ROWS,
    beam_topk,
    can_use_beam_topk,
    fast_topk,
    log_normalizer,
)


@pytest.mark.parametrize("rows", [1, MIN_ROWS - 1, MIN_ROWS, 40])
@pytest.mark.parametrize("size", [9, CHUNK, 9 * CHUNK, 50 * CHUNK, 50 * CHUNK + 17])
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_fast_topk_is_topk(rows: int, size: int, k: int) -> None:
    values = torch.randn(rows, size, generator=torch.Generator().manual_seed(size + k))
    found, places = fast_topk(values.clone(), k)
    true = values.topk(k)
    assert torch.equal(found, true.values) and torch.equal(places, true.indices)


@pytest.mark.parametrize("size", [9, 50 * CHUNK + 3])
def test_fast_topk_with_ties_and_masked_values(size: int) -> None:
    """The values are those of topk; the places are different ones that hold them."""
    values = torch.randint(4, (20, size), generator=torch.Generator().manual_seed(1)).float()
    values[:, ::3] = float("-inf")
    values[0] = float("-inf")
    found, places = fast_topk(values, 5)
    assert torch.equal(found, values.topk(5).values)
    assert torch.equal(values.gather(1, places), found)
    assert all(len(set(row)) == 5 for row in places.tolist())


def test_the_largest_all_in_one_chunk_and_in_the_last() -> None:
    """WordIndex beyond the last whole chunk are looked into as well."""
    values = torch.zeros(MIN_ROWS, 40 * CHUNK + 5)
    values[:, 7:12] = torch.arange(5.0) + 1
    values[:, -3:] = torch.tensor([9.0, 8.0, 0.5])
    found, places = fast_topk(values, 6)
    assert found[0].tolist() == [9, 8, 5, 4, 3, 2]
    end = 40 * CHUNK + 5
    assert places[0].tolist() == [end - 3, end - 2, 11, 10, 9, 8]


def test_fast_topk_of_every_second_column() -> None:
    """Values that do not are contiguous in memory."""
    values = torch.randn(MIN_ROWS, 80 * CHUNK)[:, ::2]
    assert torch.equal(fast_topk(values, 3)[1], values.topk(3).indices)


@pytest.mark.parametrize("scale", [0.01, 1, 30, 1000])
def test_log_normalizer_is_logsumexp(scale: float) -> None:
    logits = scale * torch.randn(30, 400, generator=torch.Generator().manual_seed(2))
    logits[3, 5:] = float("-inf")
    true = logits.double().logsumexp(-1)
    assert torch.allclose(log_normalizer(logits).double(), true, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("size", [12 * CHUNK, 12 * CHUNK + 9])
@pytest.mark.parametrize("k", [2, 10])
def test_all_beams_together(beams: int, size: int, k: int) -> None:
    """The best of log p + total over all beams of a sentence; tokens that are no output never."""
    chance = torch.Generator().manual_seed(size + k + beams)
    logits = 3 * torch.randn(3 * beams, size, generator=chance)
    logits[:, NON_OUTPUT_IDS] = 9.0  # the most probable of all
    logits[1, -2] = 8.0  # behind the last whole chunk
    total = -torch.rand(3, beams, generator=chance)
    total[2, 1:] = float("-inf")  # beams that are dead
    logp = logits.log_softmax(-1)
    logp[:, NON_OUTPUT_IDS] = float("-inf")
    true = (logp.view(3, beams, size) + total[..., None]).flatten(1).topk(k)
    assert can_use_beam_topk(logits, k) and not can_use_beam_topk(logits, 13)
    parent, token, logprob, found = beam_topk(logits.clone(), total, k)
    assert torch.allclose(found, true.values, atol=1e-5)
    assert torch.equal(parent * size + token, true.indices)
    assert torch.allclose(logprob + total.gather(1, parent), found, atol=1e-5)
