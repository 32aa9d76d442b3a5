"""Laws of sight: padding and the future are invisible, the source and the past are not."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import BOS
from regard.nn.kernels.relu import ReluAttention

TOKENS = torch.tensor([[BOS, 5, 6, 7, 5]])


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def alone(padded: Padded, row: int) -> Padded:
    """One row without padding."""
    length = int(padded.mask[row].sum())
    return Padded(padded.data[row : row + 1, :length], padded.mask[row : row + 1, :length])


def stuffed(padded: Padded) -> Padded:
    """The same with two more places, and a letter wherever there is padding."""
    mask = F.pad(padded.mask, (0, 2))
    return Padded(F.pad(padded.data, (0, 2)).masked_fill(~mask, 7), mask)


@torch.no_grad()
def test_a_source_alone_is_the_source_in_a_batch(model: nn.Module, source: Padded) -> None:
    many, _ = model.step(TOKENS.expand(len(source.data), -1), model.start(source))
    for row in range(len(source.data)):
        one, _ = model.step(TOKENS, model.start(alone(source, row)))
        close(one[0], many[row])


@torch.no_grad()
def test_the_encoding_of_a_source_alone(model: nn.Module, source: Padded) -> None:
    """Position by position, and the summary that a decoder without attention begins from."""
    many = model.encoder(source._replace(data=model.frontend.tokens(source.data)))
    for row in range(len(source.data)):
        single = alone(source, row)
        one = model.encoder(single._replace(data=model.frontend.tokens(single.data)))
        close(one.data[0], many.data[row][many.mask[row]])
        close(one.pooled()[0], many.pooled()[row])


@torch.no_grad()
def test_the_content_of_padding_is_invisible(model: nn.Module, batch: Batch) -> None:
    whole = model(Batch(stuffed(batch.source), stuffed(batch.target))).logits
    close(model(batch).logits, whole)


@torch.no_grad()
def test_a_pair_alone_is_the_pair_in_a_batch(model: nn.Module, batch: Batch) -> None:
    ones = [
        model(Batch(alone(batch.source, row), alone(batch.target, row))).logits
        for row in range(len(batch.source.data))
    ]
    close(torch.cat(ones), model(batch).logits)


@torch.no_grad()
def test_rows_do_not_see_each_other(model: nn.Module, batch: Batch) -> None:
    turned = torch.tensor([2, 0, 3, 1])
    counts = batch.target.mask.sum(1).tolist()
    pieces = model(batch).logits.split(counts)
    source, target = (Padded(side.data[turned], side.mask[turned]) for side in batch[:2])
    close(torch.cat([pieces[i] for i in turned]), model(Batch(source, target)).logits)


def has_relu(model: nn.Module) -> bool:
    """Whether a token may have no effect, because all scores are negative."""
    return any(isinstance(part, ReluAttention) for part in model.modules())


@torch.no_grad()
def test_the_future_is_invisible(model: nn.Module, source: Padded) -> None:
    """A later token changes no earlier logit, but its own place and those after it."""
    tokens = TOKENS.repeat(len(source.data), 1)
    # without residual connections, little of a token is left after a few layers
    connected = all(getattr(part, "connected", True) for part in model.modules())
    before, _ = model.step(tokens, model.start(source))
    for t in range(1, tokens.shape[1]):
        other = tokens.clone()
        other[:, t] = 6 if tokens[0, t] != 6 else 7
        after, _ = model.step(other, model.start(source))
        close(after[:, :t], before[:, :t])
        changed = (after[:, t:] - before[:, t:]).abs().amax((0, 2))
        assert (changed > (1e-6 if connected else 0)).all() or has_relu(model)


def test_every_source_token_counts_and_no_padding(model: nn.Module, source: Padded) -> None:
    vectors = model.frontend.tokens(source.data).detach().requires_grad_()
    state = model.decoder.start(model.encoder(source._replace(data=vectors)))
    logits, _ = model.step(TOKENS.expand(len(source.data), -1), state)
    (gradient,) = torch.autograd.grad((logits**2).sum(), vectors)
    counts = gradient[source.mask].abs().amax(-1) > 0
    assert counts.all() or (has_relu(model) and counts.any())
    assert (gradient[~source.mask] == 0).all()


def test_every_weight_is_used(model: nn.Module, batch: Batch) -> None:
    """A weight without a gradient is a part that was built and forgotten."""
    named = dict(model.named_parameters())
    outputs = model(batch)
    loss = (outputs.logits**2).sum()
    loss = loss if outputs.frames is None else loss + (outputs.frames.data**2).sum()
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    assert [name for name, g in zip(named, gradients, strict=True) if g is None] == []
