"""Fast top-k and log-sum-exp of logits.

B sentences, W beams per sentence, R rows, V values per row, C chunks of a row.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.state import State
from regard.search.hypothesis import NON_OUTPUT_IDS

StepFn = Callable[[Tensor, State], tuple[Tensor, State]]

CHUNK = 64
MIN_ROWS = 8  # minimum number of rows for which chunks are faster


def nan_error() -> UserError:
    """Return the error for NaN logits."""
    return UserError(
        "the model produced NaN logits",
        help="training diverged or the weights are corrupted; run regard diagnose",
    )


def check_nan(values: Tensor) -> None:
    """Raise UserError if a value is NaN, for example because training diverged."""
    if bool(values.isnan().any()):
        raise nan_error()


def fast_topk(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row (R, V) and their indices, like `torch.topk`.

    It is faster: the k largest values are in the k chunks with the largest maxima, and only these
    chunks are searched.
    """
    R, V = values.shape
    C = V // CHUNK
    if values.device.type != "cpu" or 4 * k > C or R < MIN_ROWS or not values.is_contiguous():
        return values.topk(k) if k > 1 else values.max(1, keepdim=True)
    maxima = values[:, : C * CHUNK].view(R, C, CHUNK).amax(-1)  # (R, C)
    chunks = maxima.topk(k).indices if k > 1 else maxima.argmax(1, keepdim=True)  # (R, k)
    indices = (chunks[..., None] * CHUNK + _arange(CHUNK)).flatten(1)  # (R, k * CHUNK)
    if C * CHUNK < V:
        indices = torch.cat([indices, _arange(V)[C * CHUNK :].expand(R, -1)], 1)
    found = values.view(-1).index_select(0, (indices + _arange(R)[:, None] * V).view(-1))
    best = found.view(R, -1).topk(k)
    return best.values, indices.gather(1, best.indices)


def log_normalizer(logits: Tensor) -> Tensor:
    """Return log-sum-exp of each row (R, V), from the softmax of its maximum, which is faster."""
    return logits.amax(-1) - logits.softmax(-1).amax(-1).log()


def can_use_beam_topk(logits: Tensor, k: int) -> bool:
    """Return whether `beam_topk` applies: on a CPU, with at least k chunks per row."""
    return logits.device.type == "cpu" and logits.shape[1] // CHUNK >= k


def beam_topk(logits: Tensor, total: Tensor, k: int) -> tuple[Tensor, ...]:
    """Return parent, token, logprob and total (B, k) of the k best continuations per sentence.

    logits: (B*W, V) after each beam. total: log probabilities of the beams (B, W). As in
    `fast_topk`, only the best chunks are searched, here of all beams of a sentence together.
    Tokens that are never generated are excluded. Probabilities below e^-87 underflow to 0.
    """
    (B, W), (R, V) = total.shape, logits.shape
    p = logits.softmax(-1)
    p[:, NON_OUTPUT_IDS] = 0.0
    C = V // CHUNK
    chunks = p[:, : C * CHUNK].view(R, C, CHUNK).amax(-1).log_()  # (R, C)
    first = (chunks.view(B, W, C) + total[..., None]).view(B, -1).topk(k).indices  # (B, k)
    rows = first // C + _arange(B)[:, None] * W
    indices = ((rows * V + first % C * CHUNK)[..., None] + _arange(CHUNK)).flatten(1)
    if C * CHUNK < V:  # the rest after the last complete chunk
        rest = _arange(R)[:, None] * V + _arange(V)[C * CHUNK :]
        indices = torch.cat([indices, rest.view(B, -1)], 1)
    logprob = p.view(-1).index_select(0, indices.view(-1)).log_().view(B, -1)
    parent = indices // V - _arange(B)[:, None] * W
    best = (logprob + total.gather(1, parent)).topk(k)
    at = best.indices
    return parent.gather(1, at), indices.gather(1, at) % V, logprob.gather(1, at), best.values


_aranges: dict[int, Tensor] = {}


def _arange(count: int) -> Tensor:
    """Return a cached tensor of 0, 1, ..., count - 1."""
    steps = _aranges.get(count)
    if steps is None:
        with torch.inference_mode(False):
            steps = _aranges[count] = torch.arange(count)
    return steps
