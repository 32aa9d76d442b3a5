"""How surprised a language model is by a text: -log p of each token.

N tokens, B rows, T length of a window.
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

READ = 512  # tokens a model that carries its memory reads at once


def windowed_nll(model: nn.Module, corpus: StreamCorpus, batch_size: int) -> np.ndarray:
    """(N,) by windows, each read on its own."""
    found = np.zeros(len(corpus.side.flat), np.float32)
    spans = np.concatenate(list(corpus.windows()))  # (windows, 3)
    order = (spans[:, 2] - spans[:, 0]).argsort(kind="stable")
    for start in range(0, len(order), batch_size):
        part = spans[order[start : start + batch_size]]
        nats, _ = _nats(model, corpus.scored(part))
        places = [np.arange(counted, end) for _, counted, end in part]
        found[np.concatenate(places)] = nats
    return found


def stateful_nll(model: nn.Module, corpus: StreamCorpus, batch_size: int) -> np.ndarray:
    """(N,) document by document from left to right, several side by side."""
    found = np.zeros(len(corpus.side.flat), np.float32)
    starts, lengths = corpus.side.starts, corpus.side.lengths
    order = (-lengths).argsort(kind="stable")  # the longest first: those that end leave the batch
    for first in range(0, len(order), batch_size):
        part, carry = order[first : first + batch_size], None
        for at in range(0, int(lengths[part[0]]), READ):
            part = part[lengths[part] > at]
            rows = np.stack(
                [starts[part] + at, starts[part] + np.minimum(at + READ, lengths[part])]
            )
            carry = tree_map(partial(_first, len(part)), carry)
            nats, carry = _nats(model, corpus.batch(rows.T)._replace(carry=carry))
            found[np.concatenate([np.arange(*row) for row in rows.T])] = nats
    return found


def _first(rows: int, tensor: Tensor) -> Tensor:
    return tensor[:rows]


def _nats(model: nn.Module, batch: Batch) -> tuple[np.ndarray, Any]:
    """-log p of the tokens that count, row by row, and what to carry on."""
    batch = batch.to(device_of(model))
    assert batch.target is not None
    found = model(batch)
    labels: Tensor = batch.target.data[batch.target.mask]
    nats = torch.nn.functional.cross_entropy(found.logits.float(), labels, reduction="none")
    return nats.cpu().numpy(), found.carry


def document_row(nats: np.ndarray, text: str) -> dict[str, float]:
    """The sums of one document."""
    sums = {
        "nats": float(nats.sum(dtype=np.float64)),
        "tokens": len(nats),
        "characters": len(text),
    }
    return sums | figures(**sums)


def figures(nats: float, tokens: float, characters: float) -> dict[str, float]:
    """loss in nats a token, perplexity, and bits per character."""
    loss = nats / max(1.0, tokens)
    return {
        "loss": loss,
        "perplexity": math.exp(min(loss, 700.0)),
        "bits_per_character": nats / math.log(2) / max(1.0, characters),
    }
