"""Sampling from a decoder with a source.

B sentences (sources of the batch), N outputs per sentence, V vocabulary, t tokens so far.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.special import BOS, EOS, PAD
from regard.data.tensors.state import State
from regard.search.callbacks import PartialHypothesis, StepCallback, notify_step
from regard.search.filters import Filters, filter_logits, sample_tokens
from regard.search.hypothesis import Hypothesis
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials
from regard.search.top import StepFn


@dataclass
class SampledSequences:
    """The outputs so far of unfinished sentences.

    rows: index of each sentence in the request. uniform: uniform samples (B, N, longest).
    """

    rows: list[int]
    tokens: Tensor  # (B, N, t), PAD after EOS
    token_logprobs: Tensor  # (B, N, t) unfiltered, 0 after EOS
    uniform: Tensor
    limits: Tensor  # (B,)

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences of the batch."""
        self.rows = [self.rows[b] for b in sentences.tolist()]
        for name in ("tokens", "token_logprobs", "uniform", "limits"):
            setattr(self, name, getattr(self, name).index_select(0, sentences))


def uniforms(seed: int, sentences: list[list[int]], count: int, longest: int) -> Tensor:
    """Return uniform samples (B, N, longest) in [0, 1).

    The samples for a sentence depend on the seed and its token ids, not on the batch.
    """
    rows = [
        [np.random.default_rng([seed, n, *ids]).random(longest) for n in range(count)]
        for ids in sentences
    ]
    return torch.from_numpy(np.array(rows))


@torch.inference_mode()
def sample_sequences(
    step: StepFn,
    state: State,
    limits: Tensor,
    uniform: Tensor,
    filters: Filters,
    masks: LogitMasks,
    on_step: StepCallback | None = None,
) -> list[list[Hypothesis]]:
    """Return N sampled hypotheses per sentence, in sampling order.

    uniform: one uniform sample per token (B, N, longest). The score is the log probability.
    """
    B, N = uniform.shape[:2]
    empty = torch.zeros(B, N, 0)
    live = SampledSequences(list(range(B)), empty.long(), empty, uniform, limits.clamp(min=1).cpu())
    found: list[list[Hypothesis]] = [[] for _ in range(B)]
    logits, state = step(torch.full((B, 1), BOS, device=limits.device), state)
    rows = torch.arange(B, device=limits.device).repeat_interleave(N)
    logits, state = logits.index_select(0, rows), state.select(rows)
    while True:
        _extend(live, logits[:, -1].float().cpu(), filters, masks)
        last = live.tokens[:, :, -1]  # (B, N)
        unfinished = ((last != EOS) & (last != PAD)).any(1)
        for b in (~unfinished).nonzero().flatten().tolist():
            found[live.rows[b]] = _hypotheses(live, b)
        kept = unfinished.nonzero().flatten()
        if not len(kept):
            return found
        if len(kept) < len(unfinished):
            sentences = kept.to(limits.device)
            rows = (sentences[:, None] * N + torch.arange(N, device=sentences.device)).flatten()
            state = state.select(rows, sentences)
            live.keep(kept)
        notify_step(on_step, live.rows, lambda: _first_so_far(live), lambda: _finished(found))
        inputs = live.tokens[:, :, -1].reshape(-1, 1).to(limits.device)
        logits, state = step(inputs, state)


def _extend(live: SampledSequences, logits: Tensor, filters: Filters, masks: LogitMasks) -> None:
    """Sample one more token for every output, from logits (B*N, V)."""
    logp = logits.log_softmax(-1)
    allowed = logits.clone()
    mask_specials(allowed)
    shape = live.tokens.shape[:2]
    outputs = allowed.unflatten(0, shape)
    if not masks.is_empty:
        masks.apply(outputs, live.tokens, live.rows)
    t = live.tokens.shape[-1]
    force_eos(outputs, live.limits <= t + 1)
    last = live.tokens[..., t - 1] if t else torch.full(shape, BOS)
    is_finished = (last == EOS) | (last == PAD)
    outputs.masked_fill_(is_finished[..., None], 0.0)  # samples after EOS are discarded
    token = sample_tokens(filter_logits(allowed, filters), live.uniform[:, :, t].flatten())
    logprob = logp.gather(1, token[:, None]).view(shape).masked_fill(is_finished, 0.0)
    token = token.view(shape).masked_fill(is_finished, PAD)
    live.tokens = torch.cat([live.tokens, token[..., None]], -1)
    live.token_logprobs = torch.cat([live.token_logprobs, logprob[..., None]], -1)


def _finished(found: list[list[Hypothesis]]) -> dict[int, list[Hypothesis]]:
    """Return the hypotheses of the finished sentences, keyed by row."""
    return {row: outputs for row, outputs in enumerate(found) if outputs}


def _first_so_far(live: SampledSequences) -> list[PartialHypothesis]:
    """Return the first output so far of each unfinished sentence."""
    rows = zip(live.tokens[:, 0].tolist(), live.token_logprobs[:, 0].tolist(), strict=True)
    return [_partial(tokens, logprobs) for tokens, logprobs in rows]


def _partial(tokens: list[int], logprobs: list[float]) -> PartialHypothesis:
    """Return an output without EOS. The log probabilities include EOS if it occurs."""
    if EOS not in tokens:
        return PartialHypothesis(tokens, logprobs)
    length = tokens.index(EOS)
    return PartialHypothesis(tokens[:length], logprobs[: length + 1])


def _hypotheses(live: SampledSequences, b: int) -> list[Hypothesis]:
    """Return the hypotheses of sentence b of the batch."""
    found = []
    rows = zip(live.tokens[b].tolist(), live.token_logprobs[b].tolist(), strict=True)
    for tokens, logprobs in rows:
        length = tokens.index(EOS) + 1
        kept = tuple(logprobs[:length])
        truncated = length >= int(live.limits[b])
        found.append(Hypothesis(tuple(tokens[: length - 1]), sum(kept), kept, truncated))
    return found
