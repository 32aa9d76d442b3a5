"""Negative log-likelihood of each token of a text under a language model.

A window is a slice of a document of at most `context_length` tokens. N tokens in all documents.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.corpus.stream import StreamCorpus
from regard.data.tensors.padded import Batch
from regard.data.tensors.tree import tree_map
from regard.tasks.task_loss import device_of

CHUNK_LENGTH = 512  # tokens per forward pass of a model with state


def windowed_nll(model: nn.Module, corpus: StreamCorpus, batch_size: int) -> np.ndarray:
    """Return -log p (N,) of each token; the context of a token is its own window only."""
    found = np.zeros(len(corpus.side.flat), np.float32)
    spans = np.concatenate(list(corpus.windows()))  # (windows, 3)
    order = (spans[:, 2] - spans[:, 0]).argsort(kind="stable")
    for start in range(0, len(order), batch_size):
        part = spans[order[start : start + batch_size]]
        nats, _ = _nats(model, corpus.eval_batch(part))
        positions = [np.arange(scored, end) for _, scored, end in part]
        found[np.concatenate(positions)] = nats
    return found


def stateful_nll(model: nn.Module, corpus: StreamCorpus, batch_size: int) -> np.ndarray:
    """Return -log p (N,) of each token; the state of the model carries over within a document."""
    found = np.zeros(len(corpus.side.flat), np.float32)
    starts, lengths = corpus.side.starts, corpus.side.lengths
    order = (-lengths).argsort(kind="stable")  # longest first: finished documents leave the batch
    for first in range(0, len(order), batch_size):
        part, carry = order[first : first + batch_size], None
        for at in range(0, int(lengths[part[0]]), CHUNK_LENGTH):
            part = part[lengths[part] > at]
            rows = np.stack(
                [starts[part] + at, starts[part] + np.minimum(at + CHUNK_LENGTH, lengths[part])]
            )
            carry = tree_map(partial(_first, len(part)), carry)
            nats, carry = _nats(model, corpus.batch(rows.T)._replace(carry=carry))
            found[np.concatenate([np.arange(*row) for row in rows.T])] = nats
    return found


def _first(rows: int, tensor: Tensor) -> Tensor:
    return tensor[:rows]


def _nats(model: nn.Module, batch: Batch) -> tuple[np.ndarray, Any]:
    """Return -log p of all scored tokens of a batch, and the recurrent state after the batch."""
    batch = batch.to(device_of(model))
    assert batch.target is not None
    found = model(batch)
    labels: Tensor = batch.target.data[batch.target.mask]
    nats = torch.nn.functional.cross_entropy(found.logits.float(), labels, reduction="none")
    return nats.cpu().numpy(), found.carry


def document_metrics(nats: np.ndarray, text: str) -> dict[str, float]:
    """Return nats, tokens, characters and the metrics of one document."""
    sums = {
        "nats": float(nats.sum(dtype=np.float64)),
        "tokens": len(nats),
        "characters": len(text),
    }
    return sums | nll_metrics(**sums)


def nll_metrics(nats: float, tokens: float, characters: float) -> dict[str, float]:
    """Return loss (nats per token), perplexity and bits per character."""
    loss = nats / max(1.0, tokens)
    return {
        "loss": loss,
        "perplexity": math.exp(min(loss, 700.0)),
        "bits_per_character": nats / math.log(2) / max(1.0, characters),
    }
