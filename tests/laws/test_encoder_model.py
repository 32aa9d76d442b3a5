"""Laws of labelers: every encoder, pool, head and way to read words, on texts and vectors."""

import copy
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import regard
from regard.config.configs import CONFIGS
from regard.core.errors import UserError
from regard.data.tensors.padded import Batch, Padded, SharedRows
from regard.models.encoder_model import PooledOptions, PoolKind
from regard.search import Argmax
from regard.storage.weights import save_weights
from regard.tasks.task import Prediction
from regard.training.describe import describe
from regard.training.run import Run
from regard.training.start import start_run

from .toys import (
    TOYS,
    Case,
    blind,
    built,
    cases,
    each_choice_once,
    may_ignore,
    moved,
    one_of_each_kind,
    predictor,
    twice,
)
from .unions import name_of, sized, slot, variants

CASES = [
    c
    for toy in ("tag", "classify", "regress-vectors", "classify-images", "classify-sounds")
    for c in cases(toy)
]
PAIRS = [
    {"encoder": encoder, "pooling": pool}
    for part in slot(PooledOptions, "encoder")
    if hasattr(part, "build")
    for encoder in variants(part)
    for pool in get_args(PoolKind)
]
BLIND = [
    case
    for tree in PAIRS
    if blind(case := Case("classify", sized(tree, PooledOptions), name_of(tree, PooledOptions)))
]
LABELING = [toy for toy in TOYS if TOYS[toy].task in ("tag", "classify", "regress")]
FEW = one_of_each_kind([case for toy in LABELING for case in cases(toy)])
ROWS = np.array([0, 1, 2, 3, 4])
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
of_each_kind = pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)


def close(one: Tensor, other: Tensor) -> None:
    """Equal up to the rounding of the largest values, from which small ones are differences."""
    largest = float(other.abs().max()) if other.numel() else 0.0
    torch.testing.assert_close(one, other, atol=1e-5 * max(1.0, largest), rtol=1e-5)


def rows_of(run: Run, batch: Batch) -> list[Tensor]:
    """The scores of each row, those of padding omitted."""
    scores = run.model(batch).logits
    if scores.dim() == 2:
        return list(scores)
    return [row[mask] for row, mask in zip(scores, batch.source.mask, strict=True)]


def stuffed(batch: Batch) -> Batch:
    """The same with two more places, and other tokens wherever there is padding."""
    data, mask = batch.source.data, F.pad(batch.source.mask, (0, 2))
    data = F.pad(data, (0, 0) * (data.dim() - 2) + (0, 2))
    hidden = ~mask if data.dim() == 2 else ~mask.unsqueeze(-1)
    shared = batch.source.shared
    if shared is not None:
        letters, real = (F.pad(part, (0, 3)) for part in shared)
        shared = SharedRows(letters.masked_fill(~real, 6), real)
    batch = batch._replace(source=Padded(data.masked_fill(hidden, 1), mask, shared=shared))
    return batch


@every
@torch.no_grad()
def test_a_row_alone_is_the_row_in_a_batch(case: Case) -> None:
    run = built(case)
    many = rows_of(run, run.corpus.batch(ROWS))
    for row in ROWS:
        (one,) = rows_of(run, run.corpus.batch(ROWS[row : row + 1]))
        close(one, many[row])


@every
@torch.no_grad()
def test_the_content_of_padding_is_invisible(case: Case) -> None:
    run = built(case)
    batch = run.corpus.batch(ROWS)
    if TOYS[case.toy].reads == "image":
        assert batch.source.mask.all()  # images have no padding
        return
    for one, other in zip(rows_of(run, batch), rows_of(run, stuffed(batch)), strict=True):
        close(one, other)


@every
@torch.no_grad()
def test_rows_do_not_see_each_other(case: Case) -> None:
    run, turned = built(case), np.array([3, 0, 4, 2, 1])
    many = rows_of(run, run.corpus.batch(ROWS))
    for row, scores in zip(turned, rows_of(run, run.corpus.batch(turned)), strict=True):
        close(scores, many[row])


@every
@torch.no_grad()
def test_what_a_row_holds_counts(case: Case) -> None:
    run = built(case)
    one, two = (scores.flatten()[:2] for scores in rows_of(run, run.corpus.batch(ROWS))[2:4])
    assert (one - two).abs().max() > 1e-5 or may_ignore(case)


@pytest.mark.parametrize("case", BLIND, ids=lambda case: case.name)
def test_pooling_a_position_without_context_is_an_error(case: Case) -> None:
    """If the first or last position depends on BOS or EOS only."""
    with pytest.raises(UserError, match="position does not depend on the rest of the text"):
        built(case)


@every
def test_every_weight_is_used(case: Case) -> None:
    run = built(case)
    named = dict(run.model.named_parameters())
    loss = run.config.objective(run.model, run.corpus.batch(ROWS)).sum
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    assert [name for name, g in zip(named, gradients, strict=True) if g is None] == []


@every
@torch.no_grad()
def test_dropout_in_training_none_in_evaluation(case: Case) -> None:
    run = built(case)
    batch, noisy = run.corpus.batch(ROWS), copy.deepcopy(run.model).train()
    torch.manual_seed(1)
    first, second = noisy(batch).logits, noisy(batch).logits
    torch.manual_seed(1)
    noisy.load_state_dict(run.model.state_dict())  # statistics continue in training
    assert torch.equal(noisy(batch).logits, first) and not torch.equal(first, second)
    noisy.load_state_dict(run.model.state_dict())
    assert torch.equal(noisy.eval()(batch).logits, run.model(batch).logits)


@pytest.mark.parametrize(
    "case", [*CASES, *(case for case in FEW if case not in CASES)], ids=lambda case: case.name
)
def test_the_batch_size_is_invisible(case: Case) -> None:
    """For `predict`, whose answers come in the order of the sources, an empty text among them."""
    run = built(case)
    sources = [pair.source for pair in TOYS[case.toy].pairs]
    if TOYS[case.toy].reads not in ("vectors", "image", "graph", "sound"):
        sources = [*sources[:2], type(sources[0])(), *sources[2:]]
    one, two, many = (
        predictor(run).predict(sources, Argmax(), nbest=2, rows=size) for size in (1, 2, 64)
    )
    for found in (one, two):
        for here, there in zip(found, many, strict=True):
            same_answer(here, there)
    again = predictor(run).predict(sources[::-1], Argmax(), nbest=2)
    for here, there in zip(again[::-1], many, strict=True):
        same_answer(here, there)


def same_answer(here: Prediction, there: Prediction) -> None:
    near = pytest.approx
    if there.value and isinstance(there.value[0], float):
        assert here.value == near(there.value, abs=1e-4)
        return
    assert (here.text, here.value) == (there.text, there.value)
    assert here.score == near(there.score, abs=1e-4)
    assert here.token_logprobs == near(there.token_logprobs, abs=1e-5)
    assert (here.probabilities or {}) == near(there.probabilities or {}, abs=1e-5)
    assert [a.text for a in here.nbest] == [a.text for a in there.nbest]


@pytest.mark.parametrize("case", each_choice_once(CASES), ids=lambda case: case.name)
def test_saved_and_loaded_it_predicts_alike(case: Case, tmp_path: Path) -> None:
    """From the folder alone, moved elsewhere."""
    run = moved(start_run(tmp_path / "run", case.config(), *twice(case)))
    run.model.eval()
    run.task.calibrate(predictor(run), run.dev)
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    sources = [pair.source for pair in TOYS[case.toy].pairs]
    before = predictor(run).predict(sources, nbest=2)

    moved_to = (tmp_path / "run").rename(tmp_path / "elsewhere")
    torch.manual_seed(99)
    loaded = regard.load(moved_to)
    assert loaded.config_ == run.config
    assert loaded.predict_detailed(sources, nbest=2) == before


@of_each_kind
@pytest.mark.parametrize(("smoothing", "weighted"), [(0.0, False), (0.2, True)])
@torch.no_grad()
def test_the_loss_is_additive(case: Case, smoothing: float, weighted: bool) -> None:
    run = built(case)
    for objective in objectives(case, smoothing):
        batch = run.corpus.batch(ROWS)
        weight = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0]) if weighted else batch.weight
        whole = objective(run.model, batch._replace(weight=weight))
        each = torch.ones(5) if weight is None else weight
        rows = [run.corpus.batch(ROWS[row : row + 1]) for row in ROWS]
        if weight is not None and weight.dim() == 2:  # of each position
            each = torch.ones(5)
        else:
            rows = [row._replace(weight=None) for row in rows]
        parts = [objective(run.model, row) for row in rows]
        expected = sum(float(w * part.sum) for w, part in zip(each, parts, strict=True))
        assert float(whole.sum) == pytest.approx(expected, rel=1e-4)
        count = sum(float(w * part.count) for w, part in zip(each, parts, strict=True))
        assert whole.count == objective.count(batch._replace(weight=weight)) == pytest.approx(count)


def objectives(case: Case, smoothing: float) -> list:
    """Every kind that the config of the case takes."""
    kinds = slot(CONFIGS[TOYS[case.toy].task], "objective")
    return [
        kind(**({"label_smoothing": smoothing} if "label_smoothing" in kind.model_fields else {}))
        for kind in kinds
    ]
