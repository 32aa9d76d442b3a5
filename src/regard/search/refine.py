"""Mask-predict: fill in all tokens of an output at once, then mask and rewrite the least sure ones.

Shapes: B sentences, k candidate lengths per sentence, R = k * B rows, T positions, V vocabulary,
L lengths.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, MASK, PAD
from regard.search.callbacks import notify_rows
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.refinement import Refinement
from regard.search.search import SearchRequest
from regard.search.top import check_nan

IMPOSSIBLE = float("-inf")


@dataclass
class Canvas:
    """The outputs so far of all rows.

    tokens: (R, T), MASK where unknown. logprobs: (R, T), of the tokens. sizes: (R,), positions per
    row, EOS included; beyond them is padding. limits: (R,), maximum lengths, EOS included.
    by_eos: whether a row ends at its first EOS; otherwise EOS is at its last position and is no
    prediction. length_logprobs: (R,), of the lengths; 0 if the rows end at EOS.
    """

    tokens: Tensor
    logprobs: Tensor
    sizes: Tensor
    limits: Tensor
    by_eos: bool
    length_logprobs: Tensor

    @property
    def real(self) -> Tensor:
        """The mask (R, T) of all positions but padding."""
        return torch.arange(self.tokens.shape[1], device=self.sizes.device) < self.sizes[:, None]

    def ends(self) -> Tensor:
        """Return the position (R,) of EOS."""
        if not self.by_eos:
            return self.sizes - 1
        return (self.tokens == EOS).long().argmax(1)  # EOS is forced at the limit

    def rewritable(self) -> Tensor:
        """Return which tokens (R, T) are part of the output and predicted by the model."""
        steps = torch.arange(self.tokens.shape[1], device=self.sizes.device)
        ends = self.ends()[:, None]
        return steps <= ends if self.by_eos else steps < ends

    def write(self, logits: Tensor, minimum: int) -> None:
        """Replace each MASK by its most probable token. logits: (R, T, V)."""
        check_nan(logits)
        logp = logits.float().log_softmax(-1)
        logp[..., NON_OUTPUT_IDS] = IMPOSSIBLE
        if self.by_eos:
            logp[:, :minimum, EOS] = IMPOSSIBLE
            last = torch.zeros_like(self.real).scatter_(1, self.limits[:, None] - 1, True)
            logp = torch.where(last[..., None] & ~_is_eos(logp), IMPOSSIBLE, logp)
        else:
            logp[..., EOS] = IMPOSSIBLE
        best = logp.max(-1)
        masked = (self.tokens == MASK) & self.real
        self.tokens = torch.where(masked, best.indices, self.tokens)
        self.logprobs = torch.where(masked, best.values, self.logprobs)

    def mask(self, fraction: float) -> Tensor:
        """Mask this fraction of the tokens of each row, the least probable; return which (R, T).

        Tokens after EOS are masked too, since they are not part of the output.
        """
        shown = self.rewritable()
        count = (shown.sum(1, keepdim=True) * fraction).long()
        rank = (
            self.logprobs.masked_fill(~shown, float("inf")).argsort(dim=1, stable=True).argsort(1)
        )
        chosen = (rank < count) & shown
        beyond = ~shown & self.real if self.by_eos else torch.zeros_like(shown)
        # rows in which nothing is masked keep their tokens
        self.tokens = self.tokens.masked_fill(chosen | (beyond & chosen.any(1, keepdim=True)), MASK)
        return chosen

    def scores(self) -> Tensor:
        """Return the mean log probability (R,) of the tokens and of their number (or EOS)."""
        steps = torch.arange(self.tokens.shape[1], device=self.sizes.device)
        inside = steps < self.ends()[:, None]
        total = self.logprobs.double().masked_fill(~inside, 0.0).sum(1)
        return (total + self.end_logprobs().double()) / (inside.sum(1) + 1)

    def end_logprobs(self) -> Tensor:
        """Return the log probability (R,) of EOS, or of the length that implies it."""
        if not self.by_eos:
            return self.length_logprobs
        return self.logprobs.gather(1, self.ends()[:, None])[:, 0]


def _is_eos(logp: Tensor) -> Tensor:
    return torch.arange(logp.shape[-1], device=logp.device) == EOS


@torch.inference_mode()
def refine(
    options: Any, model: Any, request: SearchRequest, trace: Refinement | None = None
) -> list[list[Hypothesis]]:
    """Return the hypotheses per source, best first, one per length. options: a `Refine`.

    trace: records the lengths and the passes of a request of one row.
    """
    source, limits = request.sequences()
    state = model.start(source)
    limits = limits.clamp(min=options.min_length + 1)
    canvas, copies = _first_canvas(options, model, state, limits, request.nbest)
    if trace is not None:
        trace.add_lengths(canvas.sizes - 1, canvas.length_logprobs, canvas.by_eos)
    masked = canvas.rewritable() if not canvas.by_eos else canvas.real
    for number in range(options.passes):
        if number:
            masked = canvas.mask((options.passes - number) / options.passes)
            if not bool(masked.any()):
                break
        canvas.write(model.fill(canvas.tokens, canvas.real, state), options.min_length)
        if trace is not None:
            trace.add_pass(canvas.tokens, canvas.logprobs, masked, canvas.ends())
        _notify(request, canvas, copies)
    return _hypotheses(canvas, copies, request.nbest)


def _first_canvas(
    options: Any, model: Any, state: Any, limits: Tensor, nbest: int
) -> tuple[Canvas, int]:
    """Return the canvas before the first pass, and the number of candidates per sentence."""
    scores = model.lengths(state)
    if scores is None:
        sizes = torch.full_like(limits, model.positions)
        tokens = torch.full((len(sizes), model.positions), MASK, device=sizes.device)
        zeros = torch.zeros(tokens.shape, device=sizes.device)
        return Canvas(tokens, zeros, sizes, limits.minimum(sizes), True, zeros[:, 0]), 1
    logp = scores.logits.log_softmax(-1)  # (B, L)
    lengths = scores.shortest[:, None] + torch.arange(logp.shape[1], device=logp.device)
    fits = (lengths <= limits[:, None]) & (lengths > options.min_length)
    fits |= ~fits.any(1, keepdim=True)  # all are too long or too short: they are clamped
    best = logp.masked_fill(~fits, IMPOSSIBLE).topk(min(max(options.lengths, nbest), logp.shape[1]))
    sizes = lengths.gather(1, best.indices).clamp(min=options.min_length + 1)
    sizes = sizes.minimum(limits[:, None])
    rows = limits.repeat_interleave(sizes.shape[1])
    return _masked_canvas(sizes.flatten(), rows, best.values.flatten()), sizes.shape[1]


def _masked_canvas(sizes: Tensor, limits: Tensor, logprobs: Tensor) -> Canvas:
    """Return a canvas of rows with these lengths, EOS included, in which all tokens are MASK."""
    steps = torch.arange(int(sizes.max()), device=sizes.device)
    tokens = torch.full((len(sizes), len(steps)), MASK, device=sizes.device)
    tokens = tokens.masked_fill(steps == sizes[:, None] - 1, EOS)
    tokens = tokens.masked_fill(steps >= sizes[:, None], PAD)
    zeros = torch.zeros_like(tokens, dtype=logprobs.dtype)
    return Canvas(tokens, zeros, sizes, limits, False, logprobs)


def _notify(request: SearchRequest, canvas: Canvas, copies: int) -> None:
    """Call the callback of a request with the best outputs so far."""
    if request.on_step is not None:
        best = _hypotheses(canvas, copies, 1)
        notify_rows(request.on_step, range(len(best)), [one.tokens for (one,) in best])


def _hypotheses(canvas: Canvas, copies: int, nbest: int) -> list[list[Hypothesis]]:
    """Return the hypotheses per sentence, best first. A length that is impossible is omitted."""
    scores, ends = canvas.scores().tolist(), canvas.ends().tolist()
    tokens, logprobs = canvas.tokens.tolist(), canvas.logprobs.tolist()
    of_end, maximum = canvas.end_logprobs().tolist(), canvas.limits.tolist()
    found = []
    for first in range(0, len(tokens), copies):
        hypotheses = []
        for row in range(first, first + copies):
            if of_end[row] == IMPOSSIBLE and row > first:
                continue
            ids = tuple(tokens[row][: ends[row]])
            each = (*logprobs[row][: ends[row]], of_end[row])
            hypotheses.append(Hypothesis(ids, scores[row], each, ends[row] + 1 >= maximum[row]))
        hypotheses.sort(key=lambda one: -one.score)  # of equal scores, the more probable length
        found.append(hypotheses[:nbest])
    return found
