"""Losses of language models: next-token prediction and masked language modeling.

Shapes: B batch size, S length, V vocabulary, N masked tokens.
"""

from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Batch
from regard.data.tensors.special import MASK, PAD, SPECIALS
from regard.nn.dropout import thread_generator
from regard.objectives.cross_entropy import SmoothedLoss, TokenLoss
from regard.objectives.objective import DONE, Context, Loss, Objective


class NextToken(TokenLoss):
    """Cross entropy of the next token in plain text. Each batch continues from the last state."""

    kind: Literal["next_token"] = "next_token"
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="label smoothing")


class Masked(Objective):
    """Masked language modeling (Devlin et al. 2019, 3.1).

    In training, masked positions are sampled for each batch: 80 % become MASK, 10 % another token
    of the batch, 10 % stay. In evaluation, the choice depends only on the tokens of the row, and
    all masked positions become MASK.
    """

    takes: ClassVar[frozenset[str]] = frozenset({"masked"})
    kind: Literal["masked"] = "masked"
    mask_rate: float = Field(
        0.15, gt=0, lt=1, description="fraction of tokens that are masked and predicted"
    )

    def count(self, batch: Batch) -> int:
        """Return the number of masked tokens, which the loss is summed over."""
        return int(self._counts(self._maskable(batch)).sum())

    def __call__(self, model: nn.Module, batch: Batch, context: Context = DONE) -> Loss:
        """Return the loss of a batch."""
        assert batch.source is not None and batch.target is not None
        data, maskable = batch.source.data, self._maskable(batch)
        tokens = batch.target.data.masked_fill(~batch.target.mask, PAD)
        uniform = _uniform(maskable) if model.training else pseudo_random(tokens)
        rank = uniform.masked_fill(~maskable, 2.0).argsort(dim=1, stable=True).argsort(1)  # (B, S)
        masked = rank < self._counts(maskable)
        shown = _mask_tokens(data, masked)
        if model.training:
            shown = _replace_some(shown, data, masked, data[maskable])
        source = batch.source._replace(data=shown)
        logits = model(batch._replace(source=source), masked).logits  # (N, V)
        loss, nll = SmoothedLoss.apply(logits, tokens[masked], 0.0)
        return Loss(loss, len(logits), {"nll": nll})

    def _maskable(self, batch: Batch) -> Tensor:
        """Return True for positions (B, S) that may be masked: no padding, no special tokens."""
        assert batch.target is not None
        return batch.target.mask & (batch.target.data >= len(SPECIALS))

    def _counts(self, maskable: Tensor) -> Tensor:
        """Return the number (B, 1) of tokens to mask in each row: at least one, if possible."""
        count = maskable.sum(1, keepdim=True)
        return (self.mask_rate * count).round().long().clamp(min=1).minimum(count)


def _mask_tokens(data: Tensor, masked: Tensor) -> Tensor:
    """Mask some tokens (B, S); of words with characters (B, S, 2), mask the characters too."""
    if data.dim() == 2:
        return data.masked_fill(masked, MASK)
    return torch.where(masked.unsqueeze(-1), data.new_tensor([MASK, 0]), data)


def _replace_some(shown: Tensor, data: Tensor, masked: Tensor, known: Tensor) -> Tensor:
    """Replace a tenth of the masked tokens by random tokens among `known`; restore a tenth."""
    if not len(known):
        return shown
    uniform = _uniform(masked)
    random_tokens = known[(_uniform(masked) * len(known)).long()]
    keep, replace = masked & (uniform > 0.9), masked & (uniform < 0.1)
    if data.dim() == 3:
        keep, replace = keep.unsqueeze(-1), replace.unsqueeze(-1)
    return torch.where(replace, random_tokens, torch.where(keep, data, shown))


def _uniform(like: Tensor) -> Tensor:
    """Return uniform samples in [0, 1) with the shape of `like`."""
    return torch.rand(like.shape, device=like.device, generator=thread_generator())


def pseudo_random(tokens: Tensor) -> Tensor:
    """Return pseudo-random numbers (B, S) in [0, 1) that depend only on the tokens of the row."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    row = (tokens * (positions % 31 + 1)).sum(1, keepdim=True)  # padding is 0 and adds nothing
    mixed = (tokens * 7919 + positions * 104729 + row * 31) % 65521
    return (mixed * mixed % 65521).double() / 65521
