"""Greedy search: a faster implementation of beam search with one beam.

B sentences (sources of the batch), V vocabulary, t tokens so far.
"""

from functools import partial

import torch
from torch import Tensor

from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.search.callbacks import StepCallback, notify_rows
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials
from regard.search.scoring import Scoring
from regard.search.top import StepFn, fast_topk, log_normalizer, nan_error

NON_OUTPUTS = frozenset(NON_OUTPUT_IDS)


@torch.inference_mode()
def greedy_search(
    step: StepFn,
    state: State,
    limits: Tensor,
    scoring: Scoring,
    masks: LogitMasks,
    on_step: StepCallback | None = None,
) -> list[list[Hypothesis]]:
    """Return one hypothesis per sentence, with the most probable token at each step."""
    limits = limits.clamp(min=1)
    rows = list(range(len(limits)))
    max_lengths = limits.tolist()
    tokens: list[list[int]] = [[] for _ in rows]
    logprobs: list[list[float]] = [[] for _ in rows]
    last, t = torch.full((len(rows), 1), BOS, device=limits.device), 0
    while rows:
        logits, state = step(last, state)
        best, last = _best(logits[:, -1].float(), t, rows, max_lengths, tokens, masks)
        new = last[:, 0].tolist()
        for row, token, logprob in zip(rows, new, best.tolist(), strict=True):
            if logprob != logprob:  # NaN; faster than a check of the tensor
                raise nan_error()
            tokens[row].append(token)
            logprobs[row].append(logprob)
        t += 1
        if EOS in new:
            kept = [b for b, token in enumerate(new) if token != EOS]
            rows = [rows[b] for b in kept]
            if rows:
                at = torch.tensor(kept, device=last.device)
                state, last = state.select(at, at), last.index_select(0, at)
        finished = partial(_finished, rows, tokens, logprobs, max_lengths, scoring)
        notify_rows(on_step, rows, tokens, logprobs, finished)
    return [*_finished([], tokens, logprobs, max_lengths, scoring).values()]


def _best(
    logits: Tensor,
    t: int,
    rows: list[int],
    max_lengths: list[int],
    tokens: list[list[int]],
    masks: LogitMasks,
) -> tuple[Tensor, Tensor]:
    """Return the log probability (B,) and the id (B, 1) of the best token per sentence."""
    at_limit = [max_lengths[row] <= t + 1 for row in rows]
    if masks.is_empty and not any(at_limit):
        p = logits.softmax(-1)
        top, token = fast_topk(p, 1)
        if not NON_OUTPUTS.isdisjoint(token.view(-1).tolist()):
            p[:, NON_OUTPUT_IDS] = 0.0
            top, token = fast_topk(p, 1)
        return top[:, 0].log_(), token
    logp = logits - log_normalizer(logits)[:, None]
    mask_specials(logp)
    if not masks.is_empty:
        so_far = torch.empty(len(rows), 1, t, dtype=torch.long, device=logp.device)
        if masks.needs_tokens and t:
            so_far[:, 0] = torch.tensor([tokens[row] for row in rows], device=logp.device)
        masks.apply(logp.unsqueeze(1), so_far, rows)
    if any(at_limit):
        force_eos(logp.unsqueeze(1), torch.tensor(at_limit, device=logp.device))
    top, token = fast_topk(logp, 1)
    return top[:, 0], token


def _finished(
    unfinished: list[int],
    tokens: list[list[int]],
    logprobs: list[list[float]],
    max_lengths: list[int],
    scoring: Scoring,
) -> dict[int, list[Hypothesis]]:
    """Return the hypothesis of each row that is not in `unfinished`."""
    totals = torch.tensor([sum(row) for row in logprobs])
    return {
        row: [_hypothesis(tokens[row], logprobs[row], totals[row], max_lengths[row], scoring)]
        for row in range(len(max_lengths))
        if row not in unfinished
    }


def _hypothesis(
    tokens: list[int], logprobs: list[float], total: Tensor, max_length: int, scoring: Scoring
) -> Hypothesis:
    length = len(tokens)
    score = float(scoring.score(total, length, None))
    return Hypothesis(tuple(tokens[:-1]), score, tuple(logprobs), length >= max_length)
