"""The order of examples: pure, complete, within its budget, with little padding."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus.corpora import PairCorpus
from regard.data.corpus.order import batch_order
from regard.data.corpus.ragged import Ragged

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)
QUICK = settings(max_examples=60, deadline=None)


def natural(count: int) -> np.ndarray:
    """Lengths like those of sentences: skewed, and similar on both sides."""
    random = np.random.default_rng(0)
    source = random.gamma(4, 3.5, count).astype(int) + 1
    target = np.maximum(1, source + random.integers(-3, 4, count))
    return np.stack([source, target], 1)


@QUICK
@given(LENGTHS, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_example_once(pairs: list, tokens: int, seed: int, epoch: int) -> None:
    order = batch_order(np.array(pairs), tokens, seed, epoch)
    assert sorted(np.concatenate(order).tolist()) == list(range(len(pairs)))
    assert all(len(rows) for rows in order)


@QUICK
@given(LENGTHS, st.integers(1, 200), st.integers(0, 5))
def test_the_budget_is_respected(pairs: list, tokens: int, epoch: int) -> None:
    """Padded positions of the longer side; only an example that is too long alone goes over."""
    lengths = np.array(pairs)
    for rows in batch_order(lengths, tokens, 1, epoch):
        assert len(rows) * lengths[rows].max() <= tokens or len(rows) == 1


@QUICK
@given(LENGTHS, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_a_pure_function(pairs: list, tokens: int, seed: int, epoch: int) -> None:
    """The arguments decide alone, and nothing else is touched."""
    lengths = np.array(pairs)
    before = lengths.copy(), np.random.get_state()[1].tolist(), torch.get_rng_state()
    first = batch_order(lengths, tokens, seed, epoch)
    np.random.rand(), torch.rand(1)
    states = np.random.get_state()[1].tolist(), torch.get_rng_state()
    again = batch_order(lengths.copy(), tokens, seed, epoch)
    assert [rows.tolist() for rows in first] == [rows.tolist() for rows in again]
    assert (lengths == before[0]).all()
    assert np.random.get_state()[1].tolist() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])


def test_every_epoch_and_every_seed_is_another() -> None:
    lengths = natural(500)
    orders = [
        batch_order(lengths, 200, seed, epoch) for seed, epoch in ((1, 0), (1, 1), (2, 0), (0, 1))
    ]
    flat = {tuple(np.concatenate(order).tolist()) for order in orders}
    companions = {frozenset(frozenset(rows.tolist()) for rows in order) for order in orders}
    assert len(flat) == len(companions) == 4


def test_every_epoch_has_as_many_batches() -> None:
    """So that the completed fraction of an epoch follows from the position in it."""
    lengths = natural(500)
    assert len({len(batch_order(lengths, 200, 1, epoch)) for epoch in range(5)}) == 1


def test_short_and_long_batches_are_mixed() -> None:
    lengths = natural(2000)
    longest = [int(lengths[rows].max()) for rows in batch_order(lengths, 300, 1, 0)]
    quarter = len(longest) // 4
    means = [np.mean(longest[i * quarter : (i + 1) * quarter]) for i in range(4)]
    assert max(means) < 1.3 * min(means)


def test_padding_is_small() -> None:
    lengths = natural(5000)
    real = padded = 0
    for rows in batch_order(lengths, 1000, 1, 0):
        real += int(lengths[rows].sum())
        padded += int(lengths[rows].max(0).sum()) * len(rows)
    assert 1 - real / padded < 0.05
    batch_count = len(batch_order(lengths, 1000, 1, 0))
    assert batch_count < 1.1 * lengths.max(1).sum() / 1000  # and batches are full


def test_a_corpus_gives_its_rows_closed_and_padded() -> None:
    source, target = Ragged.of([[5, 6], [], [7]], 3), Ragged.of([[8], [9, 9, 9], []], 3)
    corpus = PairCorpus(source, target)
    assert len(corpus) == 3 and corpus.lengths.tolist() == [[3, 2], [1, 4], [2, 1]]
    batch = corpus.batch(np.array([2, 0]))
    assert batch.source.data.tolist() == [[7, 3, 0], [5, 6, 3]]
    assert batch.source.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.target.data.tolist() == [[3, 0], [8, 3]]
    assert batch.target.mask.tolist() == [[True, False], [True, True]]
