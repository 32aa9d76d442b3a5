"""The beams of a search that go on.

B sentences, W beams of each, S source length, t tokens so far.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LiveBeams:
    """The beams that go on: B sentences of W beams. rows: which sentence each is."""

    rows: list[int]
    tokens: Tensor  # (B, W, t)
    token_logprobs: Tensor  # (B, W, t)
    total: Tensor  # (B, W) log probability
    limits: Tensor  # (B,)
    cover: Tensor | None  # (B, W, S) attention that each place received; 1 for padding

    @classmethod
    def start(cls, limits: Tensor, mask: Tensor | None) -> "LiveBeams":
        """One empty beam for each sentence."""
        nothing = torch.zeros(len(limits), 1, 0, device=limits.device)
        cover = None if mask is None else (~mask).float().unsqueeze(1)
        total = nothing.sum(-1)
        return cls(list(range(len(limits))), nothing.long(), nothing, total, limits, cover)

    def follow(self, parent: Tensor, token: Tensor, gained: Tensor, total: Tensor) -> None:
        """Each of the next beams (B, W) goes on from its parent with its token."""

        def behind(x: Tensor) -> Tensor:
            return x.gather(1, parent[..., None].expand(-1, -1, x.shape[-1]))

        self.tokens = torch.cat([behind(self.tokens), token[..., None]], -1)
        self.token_logprobs = torch.cat([behind(self.token_logprobs), gained[..., None]], -1)
        self.total = total
        self.cover = None if self.cover is None else behind(self.cover)

    def keep(self, sentences: Tensor) -> None:
        """Only these sentences go on."""
        self.rows = [self.rows[b] for b in sentences.tolist()]
        for name in ("tokens", "token_logprobs", "total", "limits", "cover"):
            old = getattr(self, name)
            setattr(self, name, None if old is None else old.index_select(0, sentences))
