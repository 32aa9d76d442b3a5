"""Candidates: outputs of the current model, with rewards, for training on sequences.

B batch size, K candidates per source, L candidate length with EOS, R = K * B rows, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Batch, Padded, pad
from regard.data.tensors.special import EOS, PAD
from regard.objectives.objective import Context
from regard.search import Search, SearchRequest, TokenConstraints

EXTRA_LENGTH = 5  # tokens by which an output may exceed twice the length of its reference


class Candidate(NamedTuple):
    """One output without EOS. weight: its fraction of the outputs found, 0 if it was not found."""

    tokens: tuple[int, ...]
    reward: float
    weight: float


def references(batch: Batch) -> list[list[int]]:
    """Return the target tokens of each row, without EOS."""
    assert batch.target is not None
    lengths = (batch.target.mask.sum(1) - 1).tolist()
    rows = zip(batch.target.data.tolist(), lengths, strict=True)
    return [row[:length] for row, length in rows]


def search(
    search: Search,
    batch: Batch,
    context: Context,
    nbest: int = 1,
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[tuple[int, ...]]]:
    """Return the outputs that a search finds with the current model, per row.

    prefixes: the first tokens of the outputs of each row.
    """
    assert batch.source is not None and batch.target is not None and context.decode is not None
    limits = 2 * batch.target.mask.sum(1) + EXTRA_LENGTH
    constraints = [TokenConstraints(prefix=tuple(prefix)) for prefix in prefixes] or None
    request = SearchRequest(
        batch.source, limits, nbest, constraints=constraints, indices=range(batch.rows)
    )
    found = context.decode(search, request)
    return [[hypothesis.tokens for hypothesis in row[:nbest]] for row in found]


def rewarded(
    outputs: Sequence[Sequence[tuple[int, ...]]], batch: Batch, metric: str, context: Context
) -> list[list[Candidate]]:
    """Return the reference and the distinct outputs of each row, with their rewards.

    The reference is first; its weight is 0 unless it is one of the outputs. Weights sum to 1.
    """
    assert context.rewards is not None
    true = references(batch)
    rows = [
        list(dict.fromkeys([tuple(reference), *row]))
        for row, reference in zip(outputs, true, strict=True)
    ]
    flat = [tokens for row in rows for tokens in row]
    each = [reference for row, reference in zip(rows, true, strict=True) for _ in row]
    rewards = iter(context.rewards(metric, flat, each))
    return [
        [Candidate(tokens, next(rewards), row.count(tokens) / len(row)) for tokens in distinct]
        for row, distinct in zip(outputs, rows, strict=True)
    ]


def pack(rows: Sequence[Sequence[Candidate]], like: Tensor) -> dict[str, Tensor]:
    """Return candidates as tensors: tokens (B, K, L); reward, weight and real (B, K).

    Rows with fewer candidates are padded with empty outputs, for which `real` is False.
    """
    count = max(map(len, rows))
    filled = [[*row, *[Candidate((), 0.0, 0.0)] * (count - len(row))] for row in rows]
    tokens = pad([[*one.tokens, EOS] for row in filled for one in row]).data
    real = [[n < len(row) for n in range(count)] for row in rows]
    tensors = {
        "tokens": tokens.unflatten(0, (len(rows), count)),
        "reward": torch.tensor([[one.reward for one in row] for row in filled]),
        "weight": torch.tensor([[one.weight for one in row] for row in filled]),
        "real": torch.tensor(real),
    }
    return {name: tensor.to(like.device) for name, tensor in tensors.items()}


def token_logprobs(model: nn.Module, batch: Batch, tokens: Tensor) -> Tensor:
    """Return the log probability of each token (B, K, L) given those before it; 0 for padding.

    The source is encoded once for all its candidates.
    """
    rows = tokens.flatten(0, 1)
    mask = rows != PAD
    logits = model(Batch(batch.source, Padded(rows, mask))).logits  # (N, V)
    logp = logits.float().log_softmax(-1).gather(1, rows[mask][:, None])[:, 0]
    return logp.new_zeros(rows.shape).masked_scatter(mask, logp).view_as(tokens)
