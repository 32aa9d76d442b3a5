"""What a search asks of logits: the largest of each row, and what makes them probabilities.

R rows, V numbers in each, C chunks.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.state import State
from regard.search.hypothesis import NON_OUTPUT_IDS

Step = Callable[[Tensor, State], tuple[Tensor, State]]

CHUNK = 64
FEW = 8  # rows from which chunks are worth their while
NOT_FINITE = (
    "the model's numbers are not finite (nan), so it has no answer; its training went wrong, or "
    "its weights are damaged: see regard diagnose"
)


def refuse_nan(numbers: Tensor) -> None:
    """Refuses the numbers of a model that has diverged."""
    if bool(numbers.isnan().any()):
        raise UserError(NOT_FINITE)


def fast_topk(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row (R, V), largest first, and their places: as `topk`, but faster.

    The k largest lie in the k chunks with the largest maxima, so only these are looked into.
    """
    R, V = values.shape
    C = V // CHUNK
    if values.device.type != "cpu" or 4 * k > C or R < FEW or not values.is_contiguous():
        return values.topk(k) if k > 1 else values.max(1, keepdim=True)
    whole = values[:, : C * CHUNK].view(R, C, CHUNK).amax(-1)  # (R, C)
    chunks = whole.topk(k).indices if k > 1 else whole.argmax(1, keepdim=True)  # (R, k)
    places = (chunks[..., None] * CHUNK + _steps(CHUNK)).flatten(1)  # (R, k * CHUNK)
    if C * CHUNK < V:
        places = torch.cat([places, _steps(V)[C * CHUNK :].expand(R, -1)], 1)
    found = values.view(-1).index_select(0, (places + _steps(R)[:, None] * V).view(-1))
    best = found.view(R, -1).topk(k)
    return best.values, places.gather(1, best.indices)


def log_normalizer(logits: Tensor) -> Tensor:
    """log sum exp of each row (R, V): by the softmax of the largest, which is fused and faster."""
    return logits.amax(-1) - logits.softmax(-1).amax(-1).log()


def can_use_beam_topk(logits: Tensor, k: int) -> bool:
    """Whether `beam_topk` can be used: on a CPU, for a vocabulary of many chunks."""
    return logits.device.type == "cpu" and logits.shape[1] // CHUNK >= k


def beam_topk(logits: Tensor, total: Tensor, k: int) -> tuple[Tensor, ...]:
    """The k best continuations of each sentence, best first: parent, token, gained, total (B, k).

    logits: (B*W, V) after each beam; total: (B, W), log probabilities of the beams. All beams of
    a sentence are looked at together, by the best of each chunk. Tokens that are no output are
    left out; so is what is less probable than e^-87, which a softmax cannot tell from nothing.
    """
    (B, W), (R, V) = total.shape, logits.shape
    p = logits.softmax(-1)
    p[:, NON_OUTPUT_IDS] = 0.0
    C = V // CHUNK
    chunks = p[:, : C * CHUNK].view(R, C, CHUNK).amax(-1).log_()  # (R, C)
    first = (chunks.view(B, W, C) + total[..., None]).view(B, -1).topk(k).indices  # (B, k)
    rows = first // C + _steps(B)[:, None] * W
    places = ((rows * V + first % C * CHUNK)[..., None] + _steps(CHUNK)).flatten(1)
    if C * CHUNK < V:  # what is behind the last whole chunk
        rest = _steps(R)[:, None] * V + _steps(V)[C * CHUNK :]
        places = torch.cat([places, rest.view(B, -1)], 1)
    gained = p.view(-1).index_select(0, places.view(-1)).log_().view(B, -1)
    parent = places // V - _steps(B)[:, None] * W
    best = (gained + total.gather(1, parent)).topk(k)
    at = best.indices
    return parent.gather(1, at), places.gather(1, at) % V, gained.gather(1, at), best.values


_known: dict[int, Tensor] = {}


def _steps(count: int) -> Tensor:
    """0, 1, 2, ... count - 1; made once."""
    steps = _known.get(count)
    if steps is None:
        with torch.inference_mode(False):
            steps = _known[count] = torch.arange(count)
    return steps
