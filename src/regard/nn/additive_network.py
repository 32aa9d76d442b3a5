"""The network of additive attention scores.

Shapes: B sentences, S source length, T target length, D width of the decoder.
"""

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded


class AdditiveNetwork(nn.Module):
    """Additive score v . tanh(W h + U m) of state h and memory m (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, width: int, memory_width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(memory_width, width, bias=False)
        self.weigh = nn.Linear(width, 1, bias=False)

    def project(self, memory: Padded) -> Tensor:
        """Return the keys (B, S, D) of the memory."""
        found: Tensor = self.key(memory.data)
        return found

    def score(self, h: Tensor, keys: Tensor) -> Tensor:
        """Return the scores (B, T, S) of states h (B, T, D) and keys (B, S, D)."""
        mixed = torch.tanh(self.query(h).unsqueeze(2) + keys.unsqueeze(1))  # (B, T, S, D)
        found: Tensor = self.weigh(mixed).squeeze(-1)
        return found
