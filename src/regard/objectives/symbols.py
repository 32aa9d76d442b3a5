"""Losses of language models: the next symbol, or symbols that are masked.

B rows, S length, V vocabulary, N symbols.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.batch import Batch
from regard.data.vocabulary import MASK, SPECIALS
from regard.objectives.cross_entropy import Loss, SmoothedLoss
from regard.options import Options


class NextSymbol(Options):
    """Each symbol is predicted from those before it."""

    kind: Literal["next_symbol"] = "next_symbol"
    smoothing: float = Field(0.0, ge=0, lt=1, description="share of the label spread evenly")

    def count(self, batch: Batch) -> int:
        """The symbols the loss is summed over."""
        assert batch.target is not None
        return int(batch.target.mask.sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        """The loss of a batch; its part `nll` is without smoothing, for perplexity."""
        assert batch.target is not None
        labels = batch.target.data[batch.target.mask]  # (N,)
        logits, carry = model(batch)
        loss, nll = SmoothedLoss.apply(logits, labels, self.smoothing)
        return Loss(loss, len(labels), {"nll": float(nll)}, carry)


class Masked(Options):
    """Some symbols are masked and predicted from both sides (Devlin et al. 2019, 3.1).

    Of the symbols chosen 80 % become MASK, 10 % another one of the batch, 10 % stay.
    """

    kind: Literal["masked"] = "masked"
    share: float = Field(0.15, gt=0, lt=1, description="share of symbols that are predicted")

    def count(self, batch: Batch) -> float:
        """The symbols the loss is summed over: on average, since they are drawn anew each time."""
        assert batch.source is not None
        return self.share * float(batch.source.mask.sum())

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        """The loss of a batch."""
        hidden, chosen, labels = self.hide(batch, model.training)
        logits = model(hidden, chosen)  # (N, V)
        loss, nll = SmoothedLoss.apply(logits, labels, 0.0)
        return Loss(loss, len(labels), {"nll": float(nll)})

    def hide(self, batch: Batch, training: bool) -> tuple[Batch, Tensor, Tensor]:
        """The batch with symbols masked, where (B, S), and what they were (N,).

        In training other places each time; else always the same ones, so that models compare.
        """
        assert batch.source is not None and batch.target is not None
        symbols, mask = batch.target.data, batch.source.mask
        draw = None if training else torch.Generator().manual_seed(len(symbols) + int(mask.sum()))
        chance = torch.rand(symbols.shape, generator=draw).to(symbols.device)
        chosen = (chance < self.share) & mask & (symbols >= len(SPECIALS))
        if not chosen.any():
            chosen = mask & (chance == chance.masked_fill(~mask, 2.0).min())
        fate = chance / self.share  # of the chosen ones uniform from 0 to 1
        words = symbols.masked_fill(chosen & (fate < 0.8), MASK)
        real = symbols[mask]
        other = real[torch.randint(len(real), symbols.shape, generator=draw).to(real.device)]
        words = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), other, words)
        return _with(batch, words), chosen, symbols[chosen]


def _with(batch: Batch, words: Tensor) -> Batch:
    """The batch with these symbols in place of its own; a masked word hides its letters too."""
    assert batch.source is not None
    data = words
    if batch.letters is not None:
        places = batch.source.data[..., 1].masked_fill(words == MASK, 0)
        data = torch.stack([words, places], -1)
    return batch._replace(source=batch.source._replace(data=data))
