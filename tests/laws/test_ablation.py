"""Laws of ablated heads: as if the following layer did not read them."""

import contextlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

import regard
from regard.data.tensors.padded import Batch
from regard.inference.model_capture import attention_modules
from regard.models.encoder_decoder import EncoderDecoderOptions

from .conftest import tiny
from .toys import built, cases


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_silent_head_is_one_without_weights(some: nn.Module, batch: Batch) -> None:
    """Each attention by itself: its first head, and all of them; none of them changes nothing."""
    plain = some(batch).logits
    for name in attention_modules(some):
        part = some.get_submodule(name)
        everyone = list(range(part.heads))
        for ablated in ([], [0], everyone):
            with regard.ablate(some, {name: ablated}):
                found = some(batch).logits
            with without(some, name, ablated):
                close(found, some(batch).logits)
            if not ablated:
                close(found, plain)
            if ablated == everyone:
                assert not torch.equal(found, plain)
    assert torch.equal(some(batch).logits, plain)


@contextlib.contextmanager
def without(model: nn.Module, name: str, heads: list[int]) -> Iterator[None]:
    """Within, what follows the attention does not read these heads."""
    part = model.get_submodule(name)
    scored = name == "decoder.score"
    join = model.decoder.join.weight if scored else part.join.weight
    before, width = join.clone(), len(join)
    own = join.shape[1] - width if scored else width // part.heads
    for head in heads:
        begin = width if scored else head * own
        join[:, begin : begin + own] = 0
    yield
    join.copy_(before)


@torch.no_grad()
def test_heads_are_silent_in_rows_of_their_own(pair: EncoderDecoderOptions, batch: Batch) -> None:
    model = tiny(pair)
    lengths = batch.target.mask.sum(1).tolist()
    plain = model(batch).logits.split(lengths)
    for name in attention_modules(model):
        heads = model.get_submodule(name).heads
        mask = torch.zeros(4, heads, dtype=torch.bool)
        mask[1] = True
        with regard.ablate(model, {name: mask}):
            rows = model(batch).logits.split(lengths)
        with regard.ablate(model, {name: range(heads)}):
            ablated = model(batch).logits.split(lengths)
        for row, found in enumerate(rows):
            close(found, ablated[row] if row == 1 else plain[row])


@torch.no_grad()
def test_a_silent_pool_finds_nothing() -> None:
    run = built(next(c for c in cases("classify") if c.model["pooling"] == "attention"))
    with regard.ablate(run.model, {"pool": [0]}):
        scores = run.model(run.corpus.batch(np.array([0, 1]))).logits
    close(scores, run.model.head.linear.bias.expand_as(scores))
