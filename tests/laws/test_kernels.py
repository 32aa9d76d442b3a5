"""Laws of the inner attentions: the fast path is the slow one, in one pass or step by step.

B rows, H heads, T queries, S keys, K head width.
"""

import pytest
import torch
from torch import Tensor, nn

from regard.models.encoders import TransformerOptions

B, H, T, K = 3, 2, 6, 4


def kernels() -> list[nn.Module]:
    """One of each kind that a Transformer can have."""
    annotation = TransformerOptions.model_fields["attention"].annotation
    kinds = getattr(annotation, "__args__", (annotation,))
    return [kind().build() for kind in kinds]


def heads(length: int = T, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v, each (B, H, length, K)."""
    numbers = torch.randn(3, B, H, length, K, generator=torch.Generator().manual_seed(seed))
    return tuple(numbers.unbind(0))


def real(*lengths: int) -> Tensor:
    """(B, 1, 1, T), True where a key is real."""
    return (torch.arange(T) < torch.tensor(lengths)[:, None])[:, None, None, :]


MASKS = {
    "no mask": None,
    "padding": real(6, 4, 1),
    "bias": torch.randn(B, H, T, T, generator=torch.Generator().manual_seed(5)),
}


@pytest.mark.parametrize("kernel", kernels(), ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", list(MASKS))
def test_forward_is_weights_times_values(kernel: nn.Module, causal: bool, mask: str) -> None:
    q, k, v = heads()
    weights = kernel.weights(q, k, MASKS[mask], causal)
    out, _ = kernel(q, k, v, MASKS[mask], None, causal)
    torch.testing.assert_close(out, weights @ v, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))
    if causal:
        assert (weights.triu(1) == 0).all()


@pytest.mark.parametrize("kernel", kernels(), ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("cuts", [(1,) * T, (4, 2), (1, 3, 2)])
def test_steps_equal_one_pass(kernel: nn.Module, cuts: tuple[int, ...]) -> None:
    q, k, v = heads()
    whole, _ = kernel(q, k, v, None, None, True)
    past, pieces = None, []
    for piece in zip(*(x.split(cuts, 2) for x in (q, k, v)), strict=True):
        out, past = kernel(*piece, None, past, True)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 2), whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", kernels(), ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("mask", list(MASKS))
def test_a_mask_over_the_past(kernel: nn.Module, mask: str) -> None:
    """The mask of a later piece is that of the whole, for its own queries and all keys so far."""
    q, k, v = heads()
    whole, _ = kernel(q, k, v, MASKS[mask], None, True)
    seen = None if MASKS[mask] is None else MASKS[mask].expand(B, -1, T, T)
    past, pieces = None, []
    for start, end in ((0, 3), (3, 4), (4, T)):
        part = None if seen is None else seen[:, :, start:end, :end]
        piece = (x[:, :, start:end] for x in (q, k, v))
        out, past = kernel(*piece, part, past, True)
        pieces.append(out)
    torch.testing.assert_close(torch.cat(pieces, 2), whole, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kernel", kernels(), ids=lambda k: type(k).__name__)
def test_hidden_keys_do_not_count(kernel: nn.Module) -> None:
    q, k, v = heads()
    mask = real(6, 4, 1)
    out, _ = kernel(q, k, v, mask, None, False)
    hidden = ~mask.transpose(-2, -1)  # (B, 1, T, 1)
    again, _ = kernel(q, k.masked_fill(hidden, 9.0), v.masked_fill(hidden, 9.0), mask, None, False)
    torch.testing.assert_close(out, again, atol=1e-6, rtol=1e-5)
