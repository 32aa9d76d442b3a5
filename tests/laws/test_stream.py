"""Laws of plain text: what an epoch reads, and how text is split into windows for evaluation."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.corpus.ragged import Ragged
from regard.data.corpus.stream import StreamCorpus
from regard.data.tensors.special import EOS

QUICK = settings(max_examples=80, deadline=None)
SIZES = st.lists(st.integers(0, 25), min_size=1, max_size=8)
CONTEXTS, TOKENS, SEEDS, EPOCHS = (
    st.integers(low, high) for low, high in ((1, 20), (1, 120), (0, 3), (0, 3))
)


def corpus(sizes: list[int], context: int, sequential: bool, overlap: int = 0) -> StreamCorpus:
    """Documents of these sizes in which no two tokens are the same but for EOS."""
    letters = iter(range(5, 5 + sum(sizes)))
    rows = [[next(letters) for _ in range(size)] for size in sizes]
    return StreamCorpus(Ragged.of(rows, EOS), context, sequential, overlap)


@QUICK
@given(SIZES, CONTEXTS, st.booleans(), TOKENS, SEEDS, EPOCHS)
def test_an_epoch_is_a_pure_function(
    sizes: list[int], context: int, sequential: bool, tokens: int, seed: int, epoch: int
) -> None:
    """Of seed and epoch, whatever was asked before."""
    one, two = (corpus(sizes, context, sequential) for _ in range(2))
    first = one.order(tokens, seed, epoch)
    np.random.seed(99)
    for other in range(4):
        two.order(tokens, seed, other)
    second = two.order(tokens, seed, epoch)
    assert [rows.tolist() for rows in first] == [rows.tolist() for rows in second]


def test_epochs_and_seeds_differ() -> None:
    """Random windows come in another order and at other offsets."""
    text = corpus([400], 10, sequential=False)
    orders = [
        np.concatenate(text.order(50, seed, epoch)) for seed in range(2) for epoch in range(8)
    ]
    assert len({str(order.tolist()) for order in orders}) == 16
    assert len({int(order[:, 0].min()) for order in orders}) > 4


@QUICK
@given(SIZES, CONTEXTS, TOKENS, SEEDS, EPOCHS)
def test_random_windows(sizes: list[int], context: int, tokens: int, seed: int, epoch: int) -> None:
    """They do not overlap, are full, omit less than a window at either end, and fit."""
    text = corpus(sizes, context, sequential=False)
    N, order = len(text.side.flat), text.order(tokens, seed, epoch)
    T = min(context, N)
    spans = np.concatenate(order)
    spans = spans[spans[:, 0].argsort()]
    assert (spans[:, 1] - spans[:, 0] == T).all()
    assert (spans[1:, 0] == spans[:-1, 1]).all()
    assert 0 <= spans[0, 0] < T and 0 <= N - spans[-1, 1] < T
    assert all(len(rows) * context <= max(tokens, context) for rows in order)


@QUICK
@given(SIZES, CONTEXTS, TOKENS, EPOCHS)
def test_sequential_windows_follow_each_other(
    sizes: list[int], context: int, tokens: int, epoch: int
) -> None:
    """Row by row from left to right; together all of the text but less than one token per row."""
    text = corpus(sizes, context, sequential=True)
    N, order = len(text.side.flat), text.order(tokens, 1, epoch)
    rows = len(order[0])
    assert {len(batch) for batch in order} == {rows} and rows * context <= max(tokens, context)
    for before, after in pairwise(order):
        assert (before[:, 1] == after[:, 0]).all()
        assert (before[:, 1] - before[:, 0] == min(context, N)).all()
    assert (order[0][1:, 0] == order[-1][:-1, 1]).all() and order[0][0, 0] == 0
    assert 0 <= N - order[-1][-1, 1] < rows


@QUICK
@given(SIZES, CONTEXTS, st.booleans(), TOKENS)
def test_batches_hold_their_windows(
    sizes: list[int], context: int, sequential: bool, tokens: int
) -> None:
    """The tokens from start to end, and the previous one."""
    text = corpus(sizes, context, sequential)
    flat = text.side.flat.tolist()
    for rows in text.order(tokens, 1, 0):
        batch = text.batch(rows)
        for row, (begin, end) in enumerate(rows.tolist()):
            assert batch.target.data[row][batch.target.mask[row]].tolist() == flat[begin:end]
            assert int(batch.before[row]) == (flat[begin - 1] if begin else EOS)


@QUICK
@given(SIZES, CONTEXTS, st.data())
def test_windows_of_evaluation(sizes: list[int], context: int, data: st.DataObject) -> None:
    """Every token counts once, with at least `overlap` before it in its document, if it has."""
    overlap = data.draw(st.integers(0, context - 1))
    text = replace(corpus(sizes, context, False), overlap=overlap)
    seen: list[int] = []
    starts = np.repeat(text.side.starts, text.side.lengths)
    for begin, counted, end in np.concatenate(list(text.windows())).tolist():
        assert begin <= counted < end <= begin + context
        assert starts[begin] == starts[end - 1]
        assert counted - begin == min(overlap, counted - starts[begin])
        batch = text.eval_batch(np.array([[begin, counted, end]]))
        found = batch.target.data[batch.target.mask].tolist()
        assert found == text.side.flat[counted:end].tolist()
        seen += range(counted, end)
    assert seen == list(range(len(text.side.flat)))


@pytest.mark.parametrize("sequential", [False, True])
def test_a_text_shorter_than_a_window(sequential: bool) -> None:
    text = corpus([3], 100, sequential)
    (rows,) = text.order(5000, 1, 0)
    assert rows.tolist() == [[0, 4]]
