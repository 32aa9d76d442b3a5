"""Small changes of the vectors that an encoder reads, for adversarial training.

B rows (examples of the batch), S length, D width.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from regard.core.context import Slot
from regard.data.tensors.padded import Padded


class Perturbation:
    """The vectors that the encoder read last, and what is added to them in the next pass."""

    def __init__(self) -> None:
        self.vectors: Tensor | None = None
        self.shift: Tensor | None = None

    def apply(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) plus the shift. They get a gradient."""
        vectors = source.data if self.shift is None else source.data + self.shift
        self.vectors = vectors if vectors.requires_grad else vectors.detach().requires_grad_()
        return source._replace(data=self.vectors)

    def increase(self, loss: Tensor, norm: float) -> None:
        """Set the shift to the gradient of a loss, scaled to this norm in each row.

        To first order, no other shift of this norm increases the loss of a row as much (Miyato et
        al. 2017, eq. 3).
        """
        assert self.vectors is not None
        (gradient,) = torch.autograd.grad(loss, self.vectors, retain_graph=True)
        size = gradient.flatten(1).float().norm(dim=1).clamp_min(1e-12)  # (B,)
        self.shift = gradient * (norm / size).view(-1, *[1] * (gradient.dim() - 1))


PERTURBATION: Slot[Perturbation | None] = Slot("perturbation", None)


@contextlib.contextmanager
def perturbing() -> Iterator[Perturbation]:
    """Perturb the vectors that encoders read, in this thread inside the block."""
    perturbation = Perturbation()
    with PERTURBATION.set(perturbation):
        yield perturbation


def perturbed(source: Padded) -> Padded:
    """Return the vectors, perturbed inside `perturbing`."""
    perturbation = PERTURBATION.get()
    return source if perturbation is None else perturbation.apply(source)
