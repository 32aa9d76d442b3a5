"""Losses of language models: the next token, or tokens that are masked.

B rows, S length, V vocabulary, N tokens.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch
from regard.data.tensors.special import MASK, PAD, SPECIALS
from regard.nn.dropout import thread_generator
from regard.objectives.cross_entropy import CrossEntropy, SmoothedLoss
from regard.objectives.objective import DONE, Context, Loss, Objective


class NextToken(CrossEntropy):
    """Cross-entropy of plain text; the state is carried over to the next batch."""

    kind: Literal["next_token"] = "next_token"  # type: ignore[assignment]
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")


class Masked(Objective):
    """Some tokens of each row are masked and predicted from both sides (Devlin et al. 2019, 3.1).

    In training other ones each time: 80 % of them become MASK, 10 % another token of the batch,
    10 % stay. In evaluation always the same ones of a row, and all become MASK.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"masked"})
    kind: Literal["masked"] = "masked"
    mask_rate: float = Field(
        0.15, gt=0, lt=1, description="fraction of tokens that are masked and predicted"
    )

    def count(self, batch: Batch) -> int:
        """The tokens the loss is summed over."""
        return int(self._counts(self._possible(batch)).sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """The loss of a batch."""
        assert batch.source is not None and batch.target is not None
        data, possible = batch.source.data, self._possible(batch)
        tokens = batch.target.data.masked_fill(~batch.target.mask, PAD)
        drawn = _drawn(possible) if model.training else _hash(tokens)
        rank = drawn.masked_fill(~possible, 2.0).argsort(dim=1, stable=True).argsort(1)  # (B, S)
        chosen = rank < self._counts(possible)
        shown = _masked(data, chosen)
        if model.training:
            shown = _disguised(shown, data, chosen, data[possible])
        source = batch.source._replace(data=shown)
        logits = model(batch._replace(source=source), chosen).logits  # (N, V)
        loss, nll = SmoothedLoss.apply(logits, tokens[chosen], 0.0)
        return Loss(loss, len(logits), {"nll": nll})

    def _possible(self, batch: Batch) -> Tensor:
        """(B, S) the tokens that may be chosen: real ones that are known."""
        assert batch.target is not None
        return batch.target.mask & (batch.target.data >= len(SPECIALS))

    def _counts(self, possible: Tensor) -> Tensor:
        """(B, 1) how many of each row are chosen: its share, at least one where there is one."""
        count = possible.sum(1, keepdim=True)
        return (self.mask_rate * count).round().long().clamp(min=1).minimum(count)


def _masked(data: Tensor, chosen: Tensor) -> Tensor:
    """Tokens (B, S) with the chosen ones masked; of words (B, S, 2) their letters as well."""
    if data.dim() == 2:
        return data.masked_fill(chosen, MASK)
    return torch.where(chosen.unsqueeze(-1), data.new_tensor([MASK, 0]), data)


def _disguised(shown: Tensor, data: Tensor, chosen: Tensor, known: Tensor) -> Tensor:
    """Of the chosen tokens a tenth replaced by others of the batch (known), a tenth as it was."""
    if not len(known):
        return shown
    fate = _drawn(chosen)
    others = known[(_drawn(chosen) * len(known)).long()]
    stays, other = chosen & (fate > 0.9), chosen & (fate < 0.1)
    if data.dim() == 3:
        stays, other = stays.unsqueeze(-1), other.unsqueeze(-1)
    return torch.where(other, others, torch.where(stays, data, shown))


def _drawn(like: Tensor) -> Tensor:
    """Return uniform samples in [0, 1), one per position."""
    return torch.rand(like.shape, device=like.device, generator=thread_generator())


def _hash(tokens: Tensor) -> Tensor:
    """(B, S) numbers from 0 to 1 that look random and depend on the row alone."""
    places = torch.arange(tokens.shape[1], device=tokens.device)
    row = (tokens * (places % 31 + 1)).sum(1, keepdim=True)  # padding is 0 and adds nothing
    mixed = (tokens * 7919 + places * 104729 + row * 31) % 65521
    return (mixed * mixed % 65521).double() / 65521
