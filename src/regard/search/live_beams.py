"""The unfinished beams of a search.

B sentences, W beams per sentence, S source length, t tokens so far.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class LiveBeams:
    """The unfinished beams of B sentences. rows: index of each sentence in the request."""

    rows: list[int]
    tokens: Tensor  # (B, W, t)
    token_logprobs: Tensor  # (B, W, t)
    total: Tensor  # (B, W) log probability
    limits: Tensor  # (B,) maximum tokens, EOS included
    cover: Tensor | None  # (B, W, S) attention that each source position received; 1 for padding

    @classmethod
    def start(cls, limits: Tensor, mask: Tensor | None) -> "LiveBeams":
        """Return one empty beam per sentence. mask: source mask (B, S) if coverage is tracked."""
        empty = torch.zeros(len(limits), 1, 0, device=limits.device)
        cover = None if mask is None else (~mask).float().unsqueeze(1)
        total = empty.sum(-1)
        return cls(list(range(len(limits))), empty.long(), empty, total, limits, cover)

    def extend(self, parent: Tensor, token: Tensor, logprob: Tensor, total: Tensor) -> None:
        """Replace each beam (B, W) by its parent beam with one more token."""

        def of_parent(x: Tensor) -> Tensor:
            return x.gather(1, parent[..., None].expand(-1, -1, x.shape[-1]))

        self.tokens = torch.cat([of_parent(self.tokens), token[..., None]], -1)
        self.token_logprobs = torch.cat([of_parent(self.token_logprobs), logprob[..., None]], -1)
        self.total = total
        self.cover = None if self.cover is None else of_parent(self.cover)

    def keep(self, sentences: Tensor) -> None:
        """Keep only these sentences of the batch."""
        self.rows = [self.rows[b] for b in sentences.tolist()]
        for name in ("tokens", "token_logprobs", "total", "limits", "cover"):
            old = getattr(self, name)
            setattr(self, name, None if old is None else old.index_select(0, sentences))
