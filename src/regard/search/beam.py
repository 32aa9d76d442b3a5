"""Beam search for any decoder that has a step function and a decoder state (`State`).

B sentences (sources of the batch), W beams per sentence, K continuations per beam, V vocabulary,
t tokens so far.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.special import BOS, PAD
from regard.data.tensors.state import State
from regard.nn.capture_hooks import recording
from regard.search.callbacks import PartialHypothesis, StepCallback, notify_step
from regard.search.constrained import ConstraintsNotMet, DynamicBeamAllocation
from regard.search.finished import Finished
from regard.search.greedy import greedy_search
from regard.search.hypothesis import Hypothesis, Stopping
from regard.search.live_beams import LiveBeams
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials, raise_limits
from regard.search.scoring import Scoring
from regard.search.search import SearchRequest
from regard.search.selection import (
    Continuations,
    DiverseSelector,
    Selection,
    Selector,
    TopSelector,
)
from regard.search.top import (
    StepFn,
    beam_topk,
    can_use_beam_topk,
    check_nan,
    fast_topk,
    log_normalizer,
)
from regard.search.trace import Trace


@dataclass
class BeamSpec:
    """The parameters of a beam search.

    mask: source mask (B, S), True for tokens. Set only if there is a coverage penalty.
    """

    beam: int
    nbest: int = 1
    scoring: Scoring = field(default_factory=Scoring)
    stopping: Stopping = "beam_full"
    masks: LogitMasks = field(default_factory=LogitMasks)
    selector: Selector | None = None
    mask: Tensor | None = None
    trace: Trace | None = None
    on_step: StepCallback | None = None


@torch.inference_mode()
def run_beam(
    options: Any, model: Any, request: SearchRequest, trace: Trace | None = None
) -> list[list[Hypothesis]]:
    """Return the best hypotheses per source. options: a `Beam`. trace: records the search."""
    source, limits, nbest = request.source, request.limits, request.nbest
    assert source is not None and limits is not None
    constraints = request.constraints
    beam = options.beam_groups * -(-max(options.beam, nbest) // options.beam_groups)
    selector: Selector = TopSelector(2 * beam)
    if options.beam_groups > 1:
        selector = DiverseSelector(beam, options.beam_groups, options.diversity_penalty)
    if options.min_length or constraints is not None:
        limits = raise_limits(limits, options.min_length, constraints)
    has_required = constraints is not None and any(one.require for one in constraints)
    if constraints is not None and has_required:
        selector = DynamicBeamAllocation(selector, constraints, limits.tolist())
    masks = LogitMasks(options.min_length, options.no_repeat_ngram, constraints)
    scoring, cover = options.scoring, source.mask if options.coverage_penalty else None
    if beam == 1 and trace is None and cover is None and not has_required:
        start = model.start(source)
        return greedy_search(model.step, start, limits, scoring, masks, request.on_step)
    spec = BeamSpec(
        beam, nbest, scoring, options.stopping_rule, masks, selector, cover, trace, request.on_step
    )
    found = beam_search(model.step, model.start(source), limits, spec)
    for row, hypotheses in enumerate(found):
        if not hypotheses:
            raise ConstraintsNotMet(row)
    return found


@torch.inference_mode()
def beam_search(
    step: StepFn, state: State, limits: Tensor, spec: BeamSpec
) -> list[list[Hypothesis]]:
    """Return the best hypotheses per sentence, best first.

    state: decoder state of B rows, before the first token.
    limits: maximum tokens per sentence (B,), EOS included. At the limit, only EOS is allowed.
    A finished hypothesis leaves the beam, and the next best continuation takes its slot.
    A sentence leaves the batch when its search is done (see `Finished`).
    """
    live = LiveBeams.start(limits.clamp(min=1), spec.mask)
    finished = Finished(len(limits), spec.beam, spec.nbest, spec.stopping, spec.scoring)
    selector = spec.selector or TopSelector(2 * spec.beam)
    last = torch.full((len(limits), 1), BOS, device=limits.device)
    while True:
        if live.cover is None:
            logits, state = step(last, state)
        else:
            logits, state = _step_with_coverage(step, last, state, live)
        found = continuations(live, logits[:, -1].float(), spec.masks, selector)
        check_nan(found.total)
        selection = selector(found, spec.beam, live.rows)
        if spec.trace is not None:
            spec.trace.add(live.rows, live.tokens, found, selection)
        finished.add(live, found, selection)
        parent = _advance(live, found, selection)
        if spec.on_step is not None:
            best = partial(_best_so_far, live, finished)
            notify_step(spec.on_step, live.rows, best, partial(finished.finished_rows, live.rows))
        unfinished = finished.unfinished(live)  # (B,)
        if unfinished is None:  # all sentences are unfinished
            state = state.select(_flat(parent, logits))
        else:
            kept = unfinished.nonzero().flatten()
            if not len(kept):
                return finished.hypotheses()
            state = state.select(_flat(parent, logits).view(parent.shape)[kept].flatten(), kept)
            live.keep(kept)
            finished.keep(kept)
        last = live.tokens[:, :, -1].reshape(-1, 1)


def _best_so_far(live: LiveBeams, finished: Finished) -> list[PartialHypothesis]:
    """Return the best output of each sentence so far, finished or not."""
    scores = finished.scoring.score(live.total[:, :1], max(1, live.tokens.shape[-1]), None)[:, 0]
    best = []
    columns = (live.tokens[:, 0].tolist(), live.token_logprobs[:, 0].tolist(), scores.tolist())
    for row, tokens, logprobs, score in zip(live.rows, *columns, strict=True):
        complete = max(finished.by_row[row], key=lambda one: one.score, default=None)
        if complete is None or complete.score < score:
            best.append(PartialHypothesis(tokens, logprobs))
        else:
            best.append(PartialHypothesis(complete.tokens, complete.token_logprobs))
    return best


def _step_with_coverage(
    step: StepFn, last: Tensor, state: State, live: LiveBeams
) -> tuple[Tensor, State]:
    """Run a decoder step and add its attention to the source to `live.cover`."""
    with recording() as captured:
        logits, state = step(last, state)
    assert live.cover is not None
    live.cover = live.cover + captured.alignment()[:, -1].view_as(live.cover)
    return logits, state


def continuations(
    live: LiveBeams, logits: Tensor, masks: LogitMasks, selector: Selector
) -> Continuations:
    """Return the best continuations of the live beams. Overwrite the logits (B*W, V)."""
    at_limit = live.limits <= live.tokens.shape[-1] + 1
    any_at_limit, count = bool(at_limit.any()), selector.num_candidates
    if selector.joint and masks.is_empty and not any_at_limit and can_use_beam_topk(logits, count):
        return Continuations(*beam_topk(logits, live.total, count))
    logp = logits - log_normalizer(logits)[:, None]  # normalized before masking
    mask_specials(logp)
    beams = logp.unflatten(0, live.total.shape)
    if not masks.is_empty:
        masks.apply(beams, live.tokens, live.rows)
    if any_at_limit:
        force_eos(beams, at_limit)
    top, token = fast_topk(logp, min(count, logp.shape[-1]))
    if isinstance(selector, DynamicBeamAllocation):
        top, token = _add_required(selector, live, logp, top, token)
    B, W = live.total.shape
    parent = torch.arange(W, device=top.device).repeat_interleave(top.shape[1]).expand(B, -1)
    logprob = top.view(B, -1)
    total = live.total.gather(1, parent) + logprob
    return Continuations(parent, token.view(B, -1), logprob, total)


def _add_required(
    selector: DynamicBeamAllocation, live: LiveBeams, logp: Tensor, top: Tensor, token: Tensor
) -> tuple[Tensor, Tensor]:
    """Append the required tokens of each beam to its continuations (B*W, K)."""
    required = selector.required_tokens(live.rows, live.total.shape[1])
    rows = [tokens for beams in required for tokens in beams]
    width = max(map(len, rows))
    padded = [row + [PAD] * (width - len(row)) for row in rows]  # log p of PAD is -inf
    more = torch.tensor(padded, dtype=torch.long, device=logp.device).view(len(rows), width)
    return torch.cat([top, logp.gather(1, more)], 1), torch.cat([token, more], 1)


def _advance(live: LiveBeams, found: Continuations, selection: Selection) -> Tensor:
    """Extend the live beams by the kept continuations. Return the parent beams (B, W)."""
    parent, token, logprob, total = (x.gather(1, selection.kept) for x in found)
    live.extend(parent, token, logprob, total.masked_fill(selection.is_empty, float("-inf")))
    return parent


def _flat(parent: Tensor, logits: Tensor) -> Tensor:
    """Return the rows (B*W,) of the decoder state for parent beams (B, W) of each sentence."""
    B = len(parent)
    first = torch.arange(B, device=parent.device)[:, None] * (len(logits) // B)
    return (parent + first).flatten()
