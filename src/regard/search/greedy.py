"""Greedy search: beam search with one beam, without what only several beams need.

B sentences, V vocabulary, t tokens so far.
"""

from functools import partial

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, EOS
from regard.data.tensors.state import State
from regard.search.callbacks import StepCallback, notify_rows
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.logit_masks import LogitMasks, force_eos, mask_specials
from regard.search.scoring import Scoring
from regard.search.top import NOT_FINITE, Step, fast_topk, log_normalizer

FORBIDDEN = frozenset(NON_OUTPUT_IDS)


@torch.inference_mode()
def greedy_search(
    step: Step,
    state: State,
    limits: Tensor,
    scoring: Scoring,
    masks: LogitMasks,
    on_step: StepCallback | None = None,
) -> list[list[Hypothesis]]:
    """The output of each sentence that takes the most probable token each time."""
    limits = limits.clamp(min=1)
    rows = list(range(len(limits)))
    ends = limits.tolist()
    tokens: list[list[int]] = [[] for _ in rows]
    scores: list[list[float]] = [[] for _ in rows]
    last, t = torch.full((len(rows), 1), BOS, device=limits.device), 0
    while rows:
        logits, state = step(last, state)
        best, last = _best(logits[:, -1].float(), t, rows, ends, tokens, masks)
        found = last[:, 0].tolist()
        for row, token, score in zip(rows, found, best.tolist(), strict=True):
            if score != score:  # nan; asked of a number, since tensors take longer
                raise UserError(NOT_FINITE)
            tokens[row].append(token)
            scores[row].append(score)
        t += 1
        if EOS in found:
            kept = [b for b, token in enumerate(found) if token != EOS]
            rows = [rows[b] for b in kept]
            if rows:
                at = torch.tensor(kept, device=last.device)
                state, last = state.select(at, at), last.index_select(0, at)
        settled = partial(_settled, rows, tokens, scores, ends, scoring)
        notify_rows(on_step, rows, tokens, scores, settled)
    return [*_settled([], tokens, scores, ends, scoring).values()]


def _best(
    logits: Tensor,
    t: int,
    rows: list[int],
    ends: list[int],
    tokens: list[list[int]],
    masks: LogitMasks,
) -> tuple[Tensor, Tensor]:
    """The best tokens (B, 1) and their log probabilities (B,)."""
    full = [ends[row] <= t + 1 for row in rows]
    if masks.is_empty and not any(full):
        p = logits.softmax(-1)
        top, token = fast_topk(p, 1)
        if not FORBIDDEN.isdisjoint(token.view(-1).tolist()):
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
    if any(full):
        force_eos(logp.unsqueeze(1), torch.tensor(full, device=logp.device))
    top, token = fast_topk(logp, 1)
    return top[:, 0], token


def _settled(
    going: list[int],
    tokens: list[list[int]],
    scores: list[list[float]],
    ends: list[int],
    scoring: Scoring,
) -> dict[int, list[Hypothesis]]:
    """The outputs of all rows but those that go on."""
    totals = torch.tensor([sum(row) for row in scores])
    return {
        row: [_hypothesis(tokens[row], scores[row], totals[row], ends[row], scoring)]
        for row in range(len(ends))
        if row not in going
    }


def _hypothesis(
    tokens: list[int], scores: list[float], total: Tensor, end: int, scoring: Scoring
) -> Hypothesis:
    length = len(tokens)
    score = float(scoring.score(total, length, None))
    return Hypothesis(tuple(tokens[:-1]), score, tuple(scores), length >= end)
