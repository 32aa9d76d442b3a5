"""Outputs drawn from the probabilities of a decoder with a source.

B sentences, N outputs of each, V vocabulary, t tokens so far.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.special import BOS, EOS, PAD
from regard.data.tensors.state import State
from regard.search.callbacks import PartialHypothesis, StepCallback, notify_step
from regard.search.filters import Filters, filter_logits, pick
from regard.search.hypothesis import Hypothesis
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials
from regard.search.top import Step


@dataclass
class SampledSequences:
    """The outputs so far. rows: the number of each sentence; chance: (B, N, longest)."""

    rows: list[int]
    tokens: Tensor  # (B, N, t), PAD behind the end
    scores: Tensor  # (B, N, t) log probabilities before any filter, 0 behind the end
    chance: Tensor
    limits: Tensor  # (B,)

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences go on."""
        self.rows = [self.rows[b] for b in sentences.tolist()]
        for name in ("tokens", "scores", "chance", "limits"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


def chances(seed: int, sentences: list[list[int]], count: int, longest: int) -> Tensor:
    """(B, N, longest) numbers in [0, 1) that follow from the seed and the sentence alone.

    So neither the batch nor the order matters.
    """
    rows = [
        [np.random.default_rng([seed, n, *ids]).random(longest) for n in range(count)]
        for ids in sentences
    ]
    return torch.from_numpy(np.array(rows))


@torch.inference_mode()
def draw(
    step: Step,
    state: State,
    limits: Tensor,
    chance: Tensor,
    filters: Filters,
    masks: LogitMasks,
    on_step: StepCallback | None = None,
) -> list[list[Hypothesis]]:
    """N outputs of each sentence, in the order they are drawn; N is that of `chance`.

    The score of an output is its log probability.
    """
    B, N = chance.shape[:2]
    nothing = torch.zeros(B, N, 0)
    live = SampledSequences(
        list(range(B)), nothing.long(), nothing, chance, limits.clamp(min=1).cpu()
    )
    found: list[list[Hypothesis]] = [[] for _ in range(B)]
    logits, state = step(torch.full((B, 1), BOS, device=limits.device), state)
    rows = torch.arange(B, device=limits.device).repeat_interleave(N)
    logits, state = logits.index_select(0, rows), state.select(rows)
    while True:
        _extend(live, logits[:, -1].float().cpu(), filters, masks)
        last = live.tokens[:, :, -1]  # (B, N)
        going = ((last != EOS) & (last != PAD)).any(1)
        for b in (~going).nonzero().flatten().tolist():
            found[live.rows[b]] = _collect(live, b)
        kept = going.nonzero().flatten()
        if not len(kept):
            return found
        if len(kept) < len(going):
            there = kept.to(limits.device)
            rows = (there[:, None] * N + torch.arange(N, device=there.device)).flatten()
            state = state.select(rows, there)
            live.keep(kept)
        notify_step(on_step, live.rows, lambda: _first_so_far(live), lambda: _there(found))
        fed = live.tokens[:, :, -1].reshape(-1, 1).to(limits.device)
        logits, state = step(fed, state)


def _extend(live: SampledSequences, logits: Tensor, filters: Filters, masks: LogitMasks) -> None:
    """Draws one token more for every output, from logits (B*N, V)."""
    logp = logits.log_softmax(-1)
    allowed = logits.clone()
    mask_specials(allowed)
    shape = live.tokens.shape[:2]
    beams = allowed.unflatten(0, shape)
    if not masks.is_empty:
        masks.apply(beams, live.tokens, live.rows)
    t = live.tokens.shape[-1]
    force_eos(beams, live.limits <= t + 1)
    last = live.tokens[..., t - 1] if t else torch.full(shape, BOS)
    over = (last == EOS) | (last == PAD)
    beams.masked_fill_(over[..., None], 0.0)  # what is drawn behind the end is thrown away
    token = pick(filter_logits(allowed, filters), live.chance[:, :, t].flatten())
    gained = logp.gather(1, token[:, None]).view(shape)
    token, gained = token.view(shape).masked_fill(over, PAD), gained.masked_fill(over, 0.0)
    live.tokens = torch.cat([live.tokens, token[..., None]], -1)
    live.scores = torch.cat([live.scores, gained[..., None]], -1)


def _there(found: list[list[Hypothesis]]) -> dict[int, list[Hypothesis]]:
    """The outputs of sentences that have all of theirs."""
    return {row: outputs for row, outputs in enumerate(found) if outputs}


def _first_so_far(live: SampledSequences) -> list[PartialHypothesis]:
    """The first output of each sentence."""
    drawn = zip(live.tokens[:, 0].tolist(), live.scores[:, 0].tolist(), strict=True)
    return [_begun(tokens, scores) for tokens, scores in drawn]


def _begun(tokens: list[int], scores: list[float]) -> PartialHypothesis:
    """The tokens before the end, where there is one already, and their scores with that of it."""
    if EOS not in tokens:
        return PartialHypothesis(tokens, scores)
    length = tokens.index(EOS)
    return PartialHypothesis(tokens[:length], scores[: length + 1])


def _collect(live: SampledSequences, b: int) -> list[Hypothesis]:
    """The outputs of sentence b."""
    found = []
    for tokens, scores in zip(live.tokens[b].tolist(), live.scores[b].tolist(), strict=True):
        length = tokens.index(EOS) + 1
        kept = tuple(scores[:length])
        cut = length >= int(live.limits[b])
        found.append(Hypothesis(tuple(tokens[: length - 1]), sum(kept), kept, cut))
    return found
