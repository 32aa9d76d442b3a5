"""CTC decoding: from log probabilities per frame to outputs.

A path has a token or a blank per frame. Its output is the path without repeats and then without
blanks, so many paths have the same output.

Shapes: B sentences, F frames, V vocabulary, n output tokens.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.data.tensors.padded import Padded
from regard.data.tensors.special import BLANK, EOS
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.refinement import FrameAlignment
from regard.search.search import SearchRequest
from regard.search.top import check_nan

NEVER = -math.inf
NO_FRAMES = [*({*NON_OUTPUT_IDS, EOS} - {BLANK})]  # tokens that no frame can be


@torch.inference_mode()
def decode_frames(options: Any, model: Any, request: SearchRequest) -> list[list[Hypothesis]]:
    """Return the best hypotheses per source. options: a `Collapse`."""
    source, _ = request.sequences()
    frames = frame_logprobs(model, source)
    beam = max(options.beam, request.nbest)
    if beam == 1:
        return [[one] for one in best_paths(frames)]
    sizes = frames.mask.sum(1).tolist()
    return [
        prefix_beam_search(logp[:size], beam, request.nbest, options.tokens)
        for logp, size in zip(frames.data.cpu().double().numpy(), sizes, strict=True)
    ]


def frame_logprobs(model: Any, source: Padded) -> Padded:
    """Return the log probabilities (B, F, V) of the frames of a model, -inf for no outputs."""
    frames = model.frames(source)
    check_nan(frames.data)
    logp = frames.data.log_softmax(-1)
    logp[..., NO_FRAMES] = NEVER
    return Padded(logp, frames.mask)


def best_paths(frames: Padded) -> list[Hypothesis]:
    """Return the output of the most probable path of each row. The score is that of the path.

    The log probability of an output token is that of its frames and of the blanks before them.
    """
    top = frames.data.max(-1)
    sizes = frames.mask.sum(1).tolist()
    columns = zip(top.indices.tolist(), top.values.tolist(), sizes, strict=True)
    return [_collapsed(path[:size], logps[:size]) for path, logps, size in columns]


def _collapsed(path: list[int], logps: list[float]) -> Hypothesis:
    """Return the output of a path. logps: the log probability of each frame."""
    tokens: list[int] = []
    each, last = [0.0], BLANK  # each: of the output tokens, and of what comes after them
    for token, logp in zip(path, logps, strict=True):
        if token not in (BLANK, last):
            tokens.append(token)
            each[-1] += logp
            each.append(0.0)
        elif token == last and token != BLANK:
            each[-2] += logp
        else:
            each[-1] += logp
        last = token
    return Hypothesis(tuple(tokens), math.fsum(each), tuple(each))


class Ends(NamedTuple):
    """Log probabilities of an output so far: of its paths that end in a blank, or in a token."""

    blank: float
    token: float

    @property
    def total(self) -> float:
        return logaddexp(self.blank, self.token)


def prefix_beam_search(
    logp: np.ndarray, beam: int, nbest: int, num_tokens: int
) -> list[Hypothesis]:
    """Return the most probable outputs for frames (F, V) (Graves 2008, 7.5.3; Hannun et al. 2014).

    Sums over paths, unlike `best_paths`. The score is the log probability of the output, and those
    of its tokens are conditional on the tokens before them. num_tokens: tokens per frame that can
    extend an output.
    """
    live: dict[tuple[int, ...], Ends] = {(): Ends(0.0, NEVER)}
    for frame in logp:
        tokens = _best_tokens(frame, num_tokens)
        row = frame.tolist()
        found: dict[tuple[int, ...], list[float]] = {}
        for prefix, ends in live.items():
            last, total = prefix[-1] if prefix else BLANK, ends.total
            _add(found, prefix, 0, total + row[BLANK])
            if prefix:
                _add(found, prefix, 1, ends.token + row[last])
            for token in tokens:
                before = ends.blank if token == last else total
                if before > NEVER:
                    _add(found, (*prefix, token), 1, before + row[token])
        kept = sorted(found.items(), key=lambda item: (-logaddexp(*item[1]), item[0]))[:beam]
        live = {prefix: Ends(*ends) for prefix, ends in kept}
    hypotheses = [output_probability(logp, prefix) for prefix in live]
    return sorted(hypotheses, key=lambda one: -one.score)[:nbest]


def _best_tokens(frame: np.ndarray, count: int) -> list[int]:
    """Return the most probable tokens of a frame (V,), without blank and impossible tokens."""
    scores = frame.copy()
    scores[BLANK] = NEVER
    order = np.argsort(-scores, kind="stable")[:count]
    return [int(token) for token in order if scores[token] > NEVER]


def _add(
    found: dict[tuple[int, ...], list[float]], key: tuple[int, ...], end: int, p: float
) -> None:
    """Add a log probability to an output. end: 0 if its path ends in a blank, otherwise 1."""
    ends = found.setdefault(key, [NEVER, NEVER])
    ends[end] = logaddexp(ends[end], p)


def logaddexp(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    low, high = (a, b) if a < b else (b, a)
    return high if low == NEVER else high + math.log1p(math.exp(low - high))


def output_probability(logp: np.ndarray, tokens: Sequence[int]) -> Hypothesis:
    """Return an output with its exact log probability for frames (F, V).

    p(y_i | y_<i) is the probability of all outputs that start with y_1 ... y_i, divided by the same
    for i - 1 (Graves 2008, 7.5.3).
    """
    y, n = np.array(tokens, np.int64), len(tokens)
    fresh = np.ones(n, bool)
    fresh[1:] = y[1:] != y[:-1]
    blank, token = np.full(n + 1, NEVER), np.full(n + 1, NEVER)  # paths of the first i tokens
    blank[0] = 0.0
    starts = np.full(n + 1, NEVER)  # of all outputs that start with the first i tokens
    starts[0] = 0.0
    for frame in logp:
        both = np.logaddexp(blank, token)
        new = np.where(fresh, both[:-1], blank[:-1]) + frame[y]  # token i starts in this frame
        starts[1:] = np.logaddexp(starts[1:], new)
        token[1:] = np.logaddexp(token[1:] + frame[y], new)
        blank = both + frame[BLANK]
    total = float(np.logaddexp(blank[-1], token[-1]))
    with np.errstate(invalid="ignore"):
        each = np.diff(np.append(starts, total))
    return Hypothesis(tuple(int(t) for t in tokens), total, tuple(each.tolist()))


@torch.inference_mode()
def frame_alignment(model: Any, request: SearchRequest, tokens: Sequence[int]) -> FrameAlignment:
    """Return the most probable path of an output, for a request of one row."""
    source, _ = request.sequences()
    frames = frame_logprobs(model, source)
    logp = frames.data[0, : int(frames.mask.sum())]
    path = viterbi(logp.cpu().double().numpy(), tokens)
    ids = [BLANK if index < 0 else tokens[index] for index in path]
    chosen = torch.tensor(ids, device=logp.device)[:, None]
    return FrameAlignment(
        tuple(ids),
        tuple(logp.gather(1, chosen)[:, 0].exp().tolist()),
        tuple(path),
        tuple(logp.argmax(1).tolist()),
        len(ids) / int(source.mask.sum()),
    )


def viterbi(logp: np.ndarray, tokens: Sequence[int]) -> list[int]:
    """Return the index of the output token of each frame (F, V); -1 for blanks."""
    labels = [BLANK]
    for token in tokens:
        labels += [token, BLANK]
    y = np.array(labels)
    jump = np.zeros(len(y), bool)  # whether the blank before a label can be omitted
    jump[3:] = (y[3:] != BLANK) & (y[3:] != y[1:-2])
    best = np.full(len(y), NEVER)
    best[:2] = logp[0, y[:2]]
    back = np.zeros((len(logp), len(y)), np.int64)
    for number, frame in enumerate(logp[1:], 1):
        options = np.full((3, len(y)), NEVER)
        options[0] = best
        options[1, 1:] = best[:-1]
        options[2, 2:] = np.where(jump[2:], best[:-2], NEVER)
        back[number] = options.argmax(0)
        best = options.max(0) + frame[y]
    at = len(y) - 1 - int(len(y) > 1 and best[-2] > best[-1])
    found = []
    for steps in back[::-1]:
        found.append(at // 2 if at % 2 else -1)
        at -= int(steps[at])
    return found[::-1]
