"""Beam search over any decoder, by its step function and its State.

B sentences, W beams of each, K continuations of a beam, V vocabulary, t tokens so far.
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
from regard.search.constrained import ConstraintsNotMet, Must
from regard.search.finished import Finished
from regard.search.greedy import greedy_search
from regard.search.hypothesis import Hypothesis, Stopping
from regard.search.live_beams import LiveBeams
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials, raise_limits
from regard.search.scoring import Scoring
from regard.search.search import SearchRequest
from regard.search.selection import Best, Choose, Chosen, Continuations, Diverse
from regard.search.top import (
    Step,
    beam_topk,
    can_use_beam_topk,
    fast_topk,
    log_normalizer,
    refuse_nan,
)
from regard.search.trace import Trace


@dataclass
class Plan:
    """How to search. mask: (B, S) of the source, where coverage counts."""

    beam: int
    nbest: int = 1
    scoring: Scoring = field(default_factory=Scoring)
    stopping: Stopping = "beam_full"
    masks: LogitMasks = field(default_factory=LogitMasks)
    choose: Choose | None = None
    mask: Tensor | None = None
    trace: Trace | None = None
    on_step: StepCallback | None = None


@torch.inference_mode()
def run_beam(
    options: Any, model: Any, request: SearchRequest, trace: Trace | None = None
) -> list[list[Hypothesis]]:
    """Return the best outputs for each row of the source. options: of `Beam`; trace: records."""
    source, limits, nbest = request.source, request.limits, request.nbest
    assert source is not None and limits is not None
    constraints = request.constraints
    beam = options.beam_groups * -(-max(options.beam, nbest) // options.beam_groups)
    choose: Choose = Best(2 * beam)
    if options.beam_groups > 1:
        choose = Diverse(beam, options.beam_groups, options.diversity_penalty)
    if options.min_length or constraints is not None:
        limits = raise_limits(limits, options.min_length, constraints)
    must = constraints is not None and any(one.require for one in constraints)
    if constraints is not None and must:
        choose = Must(choose, constraints, limits.tolist())
    masks, scoring = (
        LogitMasks(options.min_length, options.no_repeat_ngram, constraints),
        options.scoring,
    )
    if beam == 1 and trace is None and not options.coverage_penalty and not must:
        start = model.start(source)
        return greedy_search(model.step, start, limits, scoring, masks, request.on_step)
    cover = source.mask if options.coverage_penalty else None
    plan = Plan(
        beam, nbest, scoring, options.stopping, masks, choose, cover, trace, request.on_step
    )
    found = beam_search(model.step, model.start(source), limits, plan)
    for row, hypotheses in enumerate(found):
        if not hypotheses:
            raise ConstraintsNotMet(row)
    return found


@torch.inference_mode()
def beam_search(step: Step, state: State, limits: Tensor, plan: Plan) -> list[list[Hypothesis]]:
    """The best outputs of each sentence, best first.

    state: before the first token, B rows. limits: (B,) the most tokens of each, EOS included;
    at its limit a sentence may only end. An output that ends leaves the beam, and as many go on
    as before. A sentence leaves the batch when it is settled (`Finished`). beam 1 is greedy.
    """
    live = LiveBeams.start(limits.clamp(min=1), plan.mask)
    finished = Finished(len(limits), plan.beam, plan.nbest, plan.stopping, plan.scoring)
    choose = plan.choose or Best(2 * plan.beam)
    last = torch.full((len(limits), 1), BOS, device=limits.device)
    while True:
        if live.cover is None:
            logits, state = step(last, state)
        else:
            logits, state = _covered(step, last, state, live)
        found = continuations(live, logits[:, -1].float(), plan.masks, choose)
        refuse_nan(found.total)
        chosen = choose(found, plan.beam, live.rows)
        if plan.trace is not None:
            plan.trace.add(live.rows, live.tokens, found, chosen)
        finished.add(live, found, chosen)
        parent = _go_on(live, found, chosen)
        if plan.on_step is not None:
            best = partial(_best_so_far, live, finished)
            notify_step(plan.on_step, live.rows, best, partial(finished.without, live.rows))
        going = finished.going(live)  # (B,)
        if going is None:  # all of them
            state = state.select(_flat(parent, logits))
        else:
            kept = going.nonzero().flatten()
            if not len(kept):
                return finished.hypotheses()
            state = state.select(_flat(parent, logits).view(parent.shape)[kept].flatten(), kept)
            live.keep(kept)
            finished.keep(kept)
        last = live.tokens[:, :, -1].reshape(-1, 1)


def _best_so_far(live: LiveBeams, finished: Finished) -> list[PartialHypothesis]:
    """For each sentence what it would be answered with now: an output that ended, or goes on."""
    now = finished.scoring.score(live.total[:, :1], max(1, live.tokens.shape[-1]), None)[:, 0]
    best = []
    going = (live.tokens[:, 0].tolist(), live.token_logprobs[:, 0].tolist(), now.tolist())
    for row, tokens, scores, score in zip(live.rows, *going, strict=True):
        ended = max(finished.found[row], key=lambda one: one.score, default=None)
        if ended is None or ended.score < score:
            best.append(PartialHypothesis(tokens, scores))
        else:
            best.append(PartialHypothesis(ended.tokens, ended.token_logprobs))
    return best


def _covered(step: Step, last: Tensor, state: State, live: LiveBeams) -> tuple[Tensor, State]:
    """A step whose attention is added to the coverage."""
    with recording() as seen:
        logits, state = step(last, state)
    assert live.cover is not None
    live.cover = live.cover + seen.alignment()[:, -1].view_as(live.cover)
    return logits, state


def continuations(
    live: LiveBeams, logits: Tensor, masks: LogitMasks, choose: Choose
) -> Continuations:
    """The best tokens after the beams, from logits (B*W, V), which are used up."""
    full = live.limits <= live.tokens.shape[-1] + 1
    ending = bool(full.any())
    if choose.joint and masks.is_empty and not ending and can_use_beam_topk(logits, choose.spare):
        return Continuations(*beam_topk(logits, live.total, choose.spare))
    logp = logits - log_normalizer(logits)[:, None]  # over all tokens, also those struck out
    mask_specials(logp)
    beams = logp.unflatten(0, live.total.shape)
    if not masks.is_empty:
        masks.apply(beams, live.tokens, live.rows)
    if ending:
        force_eos(beams, full)
    top, token = fast_topk(logp, min(choose.spare, logp.shape[-1]))
    if isinstance(choose, Must):
        top, token = _wished(choose, live, logp, top, token)
    B, W = live.total.shape
    parent = torch.arange(W, device=top.device).repeat_interleave(top.shape[1]).expand(B, -1)
    gained = top.view(B, -1)
    return Continuations(parent, token.view(B, -1), gained, live.total.gather(1, parent) + gained)


def _wished(
    choose: Must, live: LiveBeams, logp: Tensor, top: Tensor, token: Tensor
) -> tuple[Tensor, Tensor]:
    """The continuations (B*W, K) with the tokens that are wished for behind them."""
    wished = [w for beams in choose.extra(live.rows, live.total.shape[1]) for w in beams]
    most = max(map(len, wished))
    filled = [row + [PAD] * (most - len(row)) for row in wished]  # PAD is struck out
    more = torch.tensor(filled, dtype=torch.long, device=logp.device).view(len(wished), most)
    return torch.cat([top, logp.gather(1, more)], 1), torch.cat([token, more], 1)


def _go_on(live: LiveBeams, found: Continuations, chosen: Chosen) -> Tensor:
    """Makes the live beams the chosen ones; the beams (B, W) they came from."""
    parent, token, gained, total = (x.gather(1, chosen.goes) for x in found)
    live.follow(parent, token, gained, total.masked_fill(chosen.dead, float("-inf")))
    return parent


def _flat(parent: Tensor, logits: Tensor) -> Tensor:
    """Beams (B, W) within their sentence as rows of the past."""
    B = len(parent)
    first = torch.arange(B, device=parent.device)[:, None] * (len(logits) // B)
    return (parent + first).flatten()
