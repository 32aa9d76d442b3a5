"""Laws of norms and residual branches: padding is invisible, and what is fused is what is meant."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.core.options import kinds_of
from regard.nn.fast import claim
from regard.nn.norms import FusedNorm, NoNorm, Norm, NormOptions, Norms
from regard.nn.residual import NormPosition, ResidualOptions

B, T, D = 3, 5, 8
REAL = torch.arange(T) < torch.tensor([5, 3, 1])[:, None]
NORMS: list[Any] = [kind() for kind in kinds_of(Norms).values()]
RESIDUALS: list[Any] = [kind() for kind in kinds_of(NormPosition).values()]

each_norm = pytest.mark.parametrize("kind", NORMS, ids=[one.kind for one in NORMS])
each_residual = pytest.mark.parametrize("kind", RESIDUALS, ids=[one.kind for one in RESIDUALS])


def noisy(module: nn.Module) -> Any:
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return module.eval()


def vectors(seed: int = 0) -> Tensor:
    return torch.randn(B, T, D, generator=torch.Generator().manual_seed(seed))


def by_hand(norm: FusedNorm, x: Tensor) -> Tensor:
    """What the fused step computes of a norm."""
    if norm.weight is None:
        return x
    if norm.bias is None:
        return torch.rms_norm(x, [D], norm.weight, norm.eps)
    return torch.layer_norm(x, [D], norm.weight, norm.bias, norm.eps)


@each_norm
@torch.no_grad()
def test_padding_is_invisible(kind: NormOptions) -> None:
    """To the vectors that are real, and to statistics."""
    x = vectors()
    stuffed = x.masked_fill(~REAL.unsqueeze(-1), 9.0)
    for in_training in (False, True):
        norm = noisy(kind.build(D)).train(in_training)
        again = copy.deepcopy(norm)
        torch.testing.assert_close(norm(x, REAL)[REAL], again(stuffed, REAL)[REAL])
        for one, other in zip(norm.buffers(), again.buffers(), strict=True):
            torch.testing.assert_close(one, other)


BY_BATCH = {"batch", "power"}  # norms whose rows see each other in training, and only there


@each_norm
@torch.no_grad()
def test_rows_do_not_see_each_other(kind: NormOptions) -> None:
    """In training too, unless the norm says that it needs the batch, and is known to."""
    norm: Norm = noisy(kind.build(D))
    assert norm.needs_batch == (kind.kind in BY_BATCH)
    for training in (False, True):
        norm.train(training)
        whole = copy.deepcopy(norm)(vectors(), REAL)
        for row in range(B):
            one = copy.deepcopy(norm)(vectors()[row : row + 1], REAL[row : row + 1])
            if training and norm.needs_batch:
                assert not torch.allclose(one[0], whole[row], atol=1e-3)
            else:
                torch.testing.assert_close(one[0], whole[row], atol=1e-6, rtol=1e-5)


@each_norm
@torch.no_grad()
def test_what_is_fused_is_the_norm(kind: NormOptions) -> None:
    for norm in (noisy(kind.build(D)), NoNorm()):
        fused = norm.fused()
        if fused is not None:
            torch.testing.assert_close(by_hand(fused, vectors()), norm(vectors()))


@each_norm
def test_a_norm_that_is_another_one_is_not_fused(kind: NormOptions) -> None:
    """Code that changes what a norm computes must say again what the fused step may do."""
    norm = kind.build(D)
    norm.__class__ = type("Other", (type(norm),), {})
    assert claim(norm, "fused") is None


@each_residual
@pytest.mark.parametrize("norm", NORMS, ids=[one.kind for one in NORMS])
@torch.no_grad()
def test_a_residual_branch_is_what_is_fused(kind: ResidualOptions, norm: NormOptions) -> None:
    residual = noisy(kind.build(norm, D, 0.1, layers=4))
    x, branch = vectors(), vectors(1)
    fused = residual.fused()
    if fused is None:
        return
    first, inner = fused
    torch.testing.assert_close(residual.enter(x, REAL), by_hand(inner, x) if first else x)
    total = x + branch
    left = residual.leave(x, branch, REAL)
    torch.testing.assert_close(left, total if first else by_hand(inner, total))


@each_residual
@torch.no_grad()
def test_a_branch_of_zeros_adds_nothing(kind: ResidualOptions) -> None:
    """Up to the norm: in the stream of a stack nothing else may change."""
    residual = kind.build(NORMS[0], D, 0.0, layers=2).eval()
    x = vectors()
    left = residual.leave(x, torch.zeros_like(x), REAL)
    normed = residual.norm(x, REAL)
    assert torch.equal(left, x) or torch.allclose(left, normed, atol=1e-5)


@each_residual
@torch.no_grad()
def test_without_its_connection_a_branch_replaces_the_stream(kind: ResidualOptions) -> None:
    """What came in is gone, and the fused step, which would add it, is not used."""
    residual = noisy(kind.build(NORMS[0], D, 0.0, layers=2))
    residual.connected = False
    x, other, branch = vectors(), vectors(2), vectors(1)
    assert torch.equal(residual.leave(x, branch, REAL), residual.leave(other, branch, REAL))
    assert residual.fused() is None
