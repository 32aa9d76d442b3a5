"""Laws of language models that write on: every kind of decoder, and counted n-grams."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import regard
from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.tree import tree_map
from regard.search import Sample
from regard.storage.weights import save_weights
from regard.tasks import token_nll
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run

from ..writing import write, write_alone
from .toys import DOCUMENTS, Case, built, cases, moved, predictor, twice

CASES = [c for c in cases("language-model") if c.config().model.gives == "steps"]
CARRYING = [c for c in CASES if c.kind != "causal-transformer"]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
carrying = pytest.mark.parametrize("case", CARRYING, ids=lambda case: case.name)
T = 7
ROWS = [[5, 6, 7, 5, EOS, 6, 7], [7, 7, 6], [EOS], [6, 5, 5, 8]]
BEFORE = torch.tensor([6, EOS, 7, 5])


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def letters(rows: int = 4, length: int = T) -> Tensor:
    """Random letters (rows, length), BOS first."""
    found = torch.randint(5, 8, (rows, length), generator=torch.Generator().manual_seed(1))
    found[:, 0] = BOS
    return found


def steps(model: nn.Module, tokens: Tensor, cuts: tuple[int, ...]) -> Tensor:
    """The logits of tokens that are fed in pieces of these lengths."""
    state, pieces = model.start(len(tokens)), []
    for piece in tokens.split(cuts, 1):
        logits, state = model.step(piece, state)
        pieces.append(logits)
    return torch.cat(pieces, 1)


@every
@pytest.mark.parametrize("cuts", [(1,) * T, (4, 3), (1, 4, 2)])
@torch.no_grad()
def test_steps_equal_one_pass(case: Case, cuts: tuple[int, ...]) -> None:
    model = built(case).model
    close(steps(model, letters(), cuts), steps(model, letters(), (T,)))


@every
@torch.no_grad()
def test_training_sees_what_generation_sees(case: Case) -> None:
    """The token before the window, then the true ones; the end of a document is a beginning."""
    model, target = built(case).model, pad(ROWS)
    for before in (None, BEFORE):
        first = torch.full((4,), BOS) if before is None else before
        inputs = torch.cat([first[:, None], target.data[:, :-1]], 1)
        logits = model(Batch(target=target, before=before)).logits
        close(logits, steps(model, inputs, (T,))[target.mask])
        close(steps(model, inputs, (T,)), steps(model, inputs.where(inputs != EOS, BOS), (T,)))


@every
@torch.no_grad()
def test_a_row_alone_is_the_row_in_a_batch(case: Case) -> None:
    model, target = built(case).model, pad(ROWS)
    many = model(Batch(target=target, before=BEFORE)).logits
    ones = [
        model(Batch(target=pad([row]), before=BEFORE[i : i + 1])).logits
        for i, row in enumerate(ROWS)
    ]
    close(torch.cat(ones), many)
    other = Padded(target.data.masked_fill(~target.mask, 8), target.mask)
    close(model(Batch(target=other, before=BEFORE)).logits, many)


@every
@torch.no_grad()
def test_the_future_is_invisible_and_the_past_is_not(case: Case) -> None:
    model, tokens = built(case).model, letters()
    whole = steps(model, tokens, (T,))
    for t in range(1, T):
        other = tokens.clone()
        other[:, t] = torch.where(tokens[:, t] == 6, 7, 6)
        after = steps(model, other, (T,))
        close(after[:, :t], whole[:, :t])
        real = whole[:, t].isfinite()
        assert (after[:, t] - whole[:, t])[real].abs().max() > 1e-4


@every
@pytest.mark.parametrize("seen", [0, 3])
@torch.no_grad()
def test_select_commutes(case: Case, seen: int) -> None:
    """step(y[rows], state.select(rows, rows)) = step(y, state)[rows]; the old state stays."""
    model, tokens, rows = built(case).model, letters(), torch.tensor([2, 0, 0, 3, 1])
    state = model.start(4)
    if seen:
        _, state = model.step(tokens[:, :seen], state)
    there, _ = model.step(tokens[:, seen:], state)
    here, _ = model.step(tokens[rows, seen:], state.select(rows, rows))
    close(here, there[rows])
    found: set[int] = set()
    tree_map(lambda leaf: found.add(len(getattr(leaf, "keys", leaf))) or leaf, state.past)
    assert found <= {4} and (found or not seen)
    again, _ = model.step(tokens[:, seen:], state)
    assert torch.equal(again, there)


@every
@torch.no_grad()
def test_what_is_carried_over(case: Case) -> None:
    """Two windows, the second with what the first left, are one long window.

    Only a Transformer leaves nothing: its windows are read on their own.
    """
    model, target = built(case).model, pad([[5, 6, 7, 5, EOS, 6, 7], [7, 7, 6, 5, 6, 6, 8]])
    before = torch.tensor([5, EOS])
    whole, end, *_ = model(Batch(target=target, before=before))
    left, right = (
        Padded(*(side[:, part] for side in target[:2])) for part in (slice(3), slice(3, 7))
    )
    first, carry, *_ = model(Batch(target=left, before=before))
    assert (carry is None) == (end is None) == (case not in CARRYING)
    second, last, *_ = model(Batch(target=right, before=left.data[:, -1], carry=carry))
    joined = [torch.cat(row) for row in zip(first.split(3), second.split(4), strict=True)]
    if case in CARRYING:
        close(torch.cat(joined), whole)
        torch.testing.assert_close(last, end, atol=1e-5, rtol=1e-5)
    else:
        alone = model(Batch(target=right, before=left.data[:, -1])).logits
        assert torch.equal(second, alone)


@contextmanager
def options(run: Run, **changes: Any) -> Iterator[Run]:
    """The run with other settings of its task."""
    old = run.task.options
    run.task.options = old.model_copy(update=changes)
    try:
        yield run
    finally:
        run.task.options = old


def plain(model: nn.Module, tokens: list[int], read: int = 0) -> np.ndarray:
    """-log p of each token after the first `read`, which follow BOS or the first token."""
    logits = steps(model, torch.tensor([tokens[:-1]]), (len(tokens) - 1,))[0]
    logp = logits.log_softmax(-1)[range(len(tokens) - 1), tokens[1:]]
    return -logp.numpy()[read:]


@every
def test_the_batch_size_is_invisible_in_evaluation(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So are the other documents, and how much a model that carries its memory reads at once."""
    run = built(case)
    many = run.task.token_nll(run.model, DOCUMENTS, 64)
    assert [len(nats) for nats in many] == [len(text) + 1 for text in DOCUMENTS]
    for size, read in ((1, 512), (3, 512), (3, 4), (64, 1)):
        monkeypatch.setattr(token_nll, "CHUNK_LENGTH", read)
        for here, there in zip(run.task.token_nll(run.model, DOCUMENTS, size), many, strict=True):
            np.testing.assert_allclose(here, there, atol=1e-5)
    for text, there in zip(DOCUMENTS, many, strict=True):
        np.testing.assert_allclose(run.task.token_nll(run.model, [text], 2)[0], there, atol=1e-5)


@every
@torch.no_grad()
def test_a_window_as_long_as_the_document(case: Case) -> None:
    """Then nothing is cut: each token is given all before it, whatever the overlap."""
    run = built(case)
    expected = [plain(run.model, [BOS, *run.task.tokenizer.encode(t), EOS]) for t in DOCUMENTS]
    for context, overlap in ((40, 0), (40, 11), (29, 0)):
        with options(run, context_length=context, eval_overlap=overlap):
            for here, there in zip(
                run.task.token_nll(run.model, DOCUMENTS, 3), expected, strict=True
            ):
                np.testing.assert_allclose(here, there, atol=1e-5)


@pytest.mark.parametrize("case", [c for c in CASES if c not in CARRYING], ids=lambda c: c.name)
@pytest.mark.parametrize(("context", "overlap"), [(6, 0), (6, 2), (6, 5), (1, 0)])
@torch.no_grad()
def test_windows_that_overlap(case: Case, context: int, overlap: int) -> None:
    """Each token counts once, given the token before its window and those in it before it."""
    run = built(case)
    with options(run, context_length=context, eval_overlap=overlap):
        found = run.task.token_nll(run.model, DOCUMENTS, 3)
    for nats, text in zip(found, DOCUMENTS, strict=True):
        tokens = [BOS, *run.task.tokenizer.encode(text), EOS]
        expected = []
        for at in range(0, len(tokens) - 1, context - overlap):
            begin = max(0, at - overlap)
            window = tokens[begin : at + context - overlap + 1]
            expected.append(plain(run.model, window, at - begin))
        np.testing.assert_allclose(nats, np.concatenate(expected), atol=1e-5, rtol=1e-5)


@every
@pytest.mark.parametrize("context", [None, 6])
def test_the_batch_size_is_invisible_in_sampling(case: Case, context: int | None) -> None:
    model, search = built(case).model, Sample(max_length=12, seed=3)
    prompts = [[5, 6], [], [7], [5, 5], [6], [], [7, 6, 5, 5, 5, 6, 7, 7]]
    many = write(model, prompts, search, context)
    ones = [write_alone(model, prompt, search, row, context) for row, prompt in enumerate(prompts)]
    assert many == ones and len({tuple(found) for found in many}) > 1


@every
def test_saved_and_loaded_it_generates_the_same(case: Case, tmp_path: Path) -> None:
    run = moved(start_run(tmp_path / "run", case.config(search={"max_length": 9}), *twice(case)))
    run.model.eval()
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    before = run.task.token_nll(run.model, DOCUMENTS, 4)
    written = predictor(run).predict(["ab", ""], nbest=2)

    torch.manual_seed(99)
    loaded = regard.load((tmp_path / "run").rename(tmp_path / "elsewhere"))
    assert loaded.config_ == run.config
    for here, there in zip(
        loaded.task_.token_nll(loaded.model_, DOCUMENTS, 4), before, strict=True
    ):
        assert np.array_equal(here, there)
    assert loaded.predict_detailed(["ab", ""], nbest=2) == written
