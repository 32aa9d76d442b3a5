"""Search restricted to shortlists: each sentence has its own list of likely target tokens.

During the search, token ids are indices into the list of the sentence. Special tokens come first in
every list, so their ids do not change. Probabilities are normalized over the list of the sentence,
so they do not depend on the rest of the batch.

Shapes: B sentences, k beams per sentence, T input tokens, U tokens in the longest list, D width.
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
from regard.models.output_layer import OutputLayer
from regard.search.callbacks import Outputs, PartialHypothesis, SearchCancelled, StepCallback
from regard.search.hypothesis import NO_CONSTRAINTS, Hypothesis, TokenConstraints
from regard.search.search import Search, SearchRequest
from regard.search.shortlist import Shortlist


class ShortlistStepper:
    """A stepper whose tokens are indices into the shortlist of each sentence.

    inner: the stepper of the full model, with a method `vectors`: `step` without the output layer.
    lists: the token ids in the shortlist of each sentence.
    """

    def __init__(self, inner: Any, head: OutputLayer, lists: list[np.ndarray]) -> None:
        self.inner = inner
        width = max(map(len, lists))
        weight = head.weight.detach()
        ids = torch.full((len(lists), width), PAD)
        for row, tokens in zip(ids, lists, strict=True):
            row[: len(tokens)] = torch.from_numpy(tokens)
        sizes = torch.tensor([len(tokens) for tokens in lists])
        self.ids = ids.to(weight.device)  # (B, U)
        is_padding = (torch.arange(width) >= sizes[:, None]).to(weight.device)
        self.weight = embedding(self.ids, weight).transpose(1, 2).contiguous()  # (B, D, U)
        bias = weight.new_zeros(ids.shape) if head.bias is None else head.bias.detach()[self.ids]
        self.bias = bias.masked_fill(is_padding, float("-inf")).unsqueeze(1)  # (B, 1, U)

    def start(self, source: Padded) -> State:
        """Return the decoder state before the first token, with the shortlists in its memory."""
        state = self.inner.start(source)
        return State((state.memory, self.ids, self.weight, self.bias), state.past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (k*B, T, U) after each token (k*B, T), and the next state."""
        memory, ids, weight, bias = state.memory
        B = len(ids)
        inputs = ids.gather(1, tokens.reshape(B, -1)).view_as(tokens)
        h, after = self.inner.vectors(inputs, State(memory, state.past))  # (k*B, T, D)
        logits = torch.baddbmm(bias, h.reshape(B, -1, h.shape[-1]), weight)
        return logits.view(*tokens.shape, -1), State((after.memory, *state.memory[1:]), after.past)


def output_layer(model: nn.Module) -> OutputLayer:
    """Return the output layer. Raise UserError if the model does not support shortlists."""
    if not hasattr(model, "head"):
        raise UserError("shortlist: not supported for ensembles", help="use a single model")
    if type(model.head) is not OutputLayer:
        raise UserError("shortlist: not supported with int8 weights", help="omit quantize")
    return model.head


@torch.inference_mode()
def shortlist_search(
    inner: Any, head: OutputLayer, shortlist: Shortlist, search: Search, request: SearchRequest
) -> list[list[Hypothesis]]:
    """Run a search in which each sentence can only produce the tokens of its shortlist.

    Tokens of prefixes and required words are added to the lists.
    """
    (source, _), constraints = request.sequences(), request.constraints
    rows = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    per_row = constraints or [NO_CONSTRAINTS] * len(source.data)
    lists = [
        shortlist.of(ids[:length], {*one.prefix, *(s for phrase in one.require for s in phrase)})
        for (ids, length), one in zip(rows, per_row, strict=True)
    ]
    if constraints is not None:
        constraints = [
            _to_list_ids(one, tokens) for one, tokens in zip(constraints, lists, strict=True)
        ]
    on_step = _translate(request.on_step, lists)
    request = replace(request, constraints=constraints, on_step=on_step)
    try:
        found = search.run(ShortlistStepper(inner, head, lists), request)
    except SearchCancelled as error:
        error.finished = {
            row: _to_vocabulary_ids(one, lists[row]) for row, one in error.finished.items()
        }
        raise
    return [_to_vocabulary_ids(row, tokens) for row, tokens in zip(found, lists, strict=True)]


def _to_vocabulary_ids(found: Sequence[Hypothesis], ids: np.ndarray) -> list[Hypothesis]:
    """Convert the tokens of hypotheses from indices into a shortlist to vocabulary ids."""
    return [replace(one, tokens=tuple(ids[list(one.tokens)].tolist())) for one in found]


def _translate(callback: StepCallback | None, lists: list[np.ndarray]) -> StepCallback | None:
    """Wrap a step callback so that it receives vocabulary ids."""
    if callback is None:
        return None

    def notify(rows: Sequence[int], outputs: Outputs) -> None:
        callback(
            rows,
            lambda: [
                PartialHypothesis(lists[row][list(one.tokens)].tolist(), one.token_logprobs)
                for row, one in zip(rows, outputs(), strict=True)
            ],
        )

    return notify


def _to_list_ids(constraints: TokenConstraints, ids: np.ndarray) -> TokenConstraints:
    """Convert constraints from vocabulary ids to indices into a shortlist.

    Banned phrases with tokens outside the shortlist are dropped, as they cannot occur.
    """

    def indices(tokens: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(np.searchsorted(ids, tokens).tolist())

    def possible(phrases: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(indices(phrase) for phrase in phrases if np.isin(phrase, ids).all())

    return TokenConstraints(
        indices(constraints.prefix),
        tuple(map(indices, constraints.require)),
        possible(constraints.banned),
        possible(constraints.banned_after_boundary),
        frozenset(np.flatnonzero(np.isin(ids, list(constraints.boundary_tokens))).tolist()),
    )
