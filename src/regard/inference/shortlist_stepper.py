"""Search among the tokens of a shortlist only: each sentence has its own, numbered from 0.

The special tokens come first in every list, so EOS stays EOS. A sentence's probabilities are
over its own list, so the rest of the batch does not matter.

B sentences, k beams of each, T tokens fed, U tokens of the longest list, D width.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import PAD
from regard.data.tensors.state import State
from regard.models.heads import Head
from regard.search.callbacks import Outputs, PartialHypothesis, SearchCancelled, StepCallback
from regard.search.hypothesis import NO_CONSTRAINTS, Hypothesis, TokenConstraints
from regard.search.search import Search, SearchRequest
from regard.search.shortlist import Shortlist


class Narrowed:
    """A stepper with the numbers of each sentence's list for tokens.

    inner: a stepper that also has `vectors`, its step without the output layer.
    """

    def __init__(self, inner: Any, head: Head, lists: list[np.ndarray]) -> None:
        self.inner = inner
        width = max(map(len, lists))
        weight = head.weight.detach()
        ids = torch.full((len(lists), width), PAD)
        for row, own in zip(ids, lists, strict=True):
            row[: len(own)] = torch.from_numpy(own)
        sizes = torch.tensor([len(own) for own in lists])
        self.ids = ids.to(weight.device)  # (B, U)
        beyond = (torch.arange(width) >= sizes[:, None]).to(weight.device)
        self.weight = embedding(self.ids, weight).transpose(1, 2).contiguous()  # (B, D, U)
        bias = weight.new_zeros(ids.shape) if head.bias is None else head.bias.detach()[self.ids]
        self.bias = bias.masked_fill(beyond, float("-inf")).unsqueeze(1)  # (B, 1, U)

    def start(self, source: Padded) -> State:
        """The state before the first token; what belongs to a sentence is in its memory."""
        state = self.inner.start(source)
        return State((state.memory, self.ids, self.weight, self.bias), state.past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens (k*B, T) to the logits (k*B, T, U) of what follows each, and the new state."""
        memory, ids, weight, bias = state.memory
        B = len(ids)
        real = ids.gather(1, tokens.reshape(B, -1)).view_as(tokens)
        h, after = self.inner.vectors(real, State(memory, state.past))  # (k*B, T, D)
        logits = torch.baddbmm(bias, h.reshape(B, -1, h.shape[-1]), weight)
        return logits.view(*tokens.shape, -1), State((after.memory, *state.memory[1:]), after.past)


def output_layer(model: nn.Module) -> Head:
    """The output layer of a model, if parts of it can be computed."""
    if not hasattr(model, "head"):
        raise UserError("shortlist: several models that answer together have none; give one model")
    if type(model.head) is not Head:
        raise UserError("shortlist: not for rounded weights; leave out quantize")
    return model.head


@torch.inference_mode()
def narrow_search(
    inner: Any, head: Head, shortlist: Shortlist, search: Search, request: SearchRequest
) -> list[list[Hypothesis]]:
    """Return what the search finds in the lists of the sentences; constraints join them."""
    (source, _), constraints = request.sequences(), request.constraints
    rows = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    asked = constraints or [NO_CONSTRAINTS] * len(source.data)
    lists = [
        shortlist.of(ids[:length], {*one.prefix, *(s for phrase in one.require for s in phrase)})
        for (ids, length), one in zip(rows, asked, strict=True)
    ]
    if constraints is not None:
        constraints = [_within(one, own) for one, own in zip(constraints, lists, strict=True)]
    on_step = _translated(request.on_step, lists)
    request = replace(request, constraints=constraints, on_step=on_step)
    try:
        found = search.run(Narrowed(inner, head, lists), request)
    except SearchCancelled as error:
        error.finished = {row: _whole(one, lists[row]) for row, one in error.finished.items()}
        raise
    return [_whole(row, own) for row, own in zip(found, lists, strict=True)]


def _whole(found: Sequence[Hypothesis], own: np.ndarray) -> list[Hypothesis]:
    """Outputs in the numbers of a list, in those of the vocabulary."""
    return [replace(one, tokens=tuple(own[list(one.tokens)].tolist())) for one in found]


def _translated(follower: StepCallback | None, lists: list[np.ndarray]) -> StepCallback | None:
    """The follower, told of tokens as all know them."""
    if follower is None:
        return None

    def tell(rows: Sequence[int], outputs: Outputs) -> None:
        follower(
            rows,
            lambda: [
                PartialHypothesis(lists[row][list(one.tokens)].tolist(), one.token_logprobs)
                for row, one in zip(rows, outputs(), strict=True)
            ],
        )

    return tell


def _within(wish: TokenConstraints, own: np.ndarray) -> TokenConstraints:
    """A wish in the numbers of a list; what is banned and not in the list cannot come anyway."""

    def places(tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(np.searchsorted(own, tokens).tolist())

    def possible(phrases: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(places(phrase) for phrase in phrases if np.isin(phrase, own).all())

    return TokenConstraints(
        places(wish.prefix),
        tuple(map(places, wish.require)),
        possible(wish.banned),
        possible(wish.banned_after_boundary),
        frozenset(np.flatnonzero(np.isin(own, list(wish.boundary_tokens))).tolist()),
    )
