"""What self-attention remembers: the keys and values of all tokens so far.

B sentences, k beams of each, T new tokens, H heads, n entries, K head width.
"""

from functools import lru_cache

import torch
from torch import Tensor

from regard.data.tensors.tree import Selects

ROOM = 32  # entries that a new cache has room for, at least


class Cache(Selects):
    """Keys and values (B, H, n, K), in memory that grows without being copied at each step.

    The beams of a sentence share its row: each step adds an entry for each beam, and which
    entries a beam sees is a matter of the mask (`sight`). So beams that change places cost
    nothing here. A cache never changes for those who hold it: where its next entry was taken by
    another step already, `add` copies first.
    """

    def __init__(self, both: Tensor | tuple[Tensor, Tensor], count: int, taken: list[int]) -> None:
        self._both = both  # (2, B, H, room, K): keys and values; side by side only when needed
        self.count = count
        self._taken = taken  # how many entries of the memory are in use, for all who share it

    @classmethod
    def of(cls, keys: Tensor, values: Tensor) -> "Cache":
        """A cache of these entries alone; in training nobody adds to it, so nothing is copied."""
        count = keys.shape[2]
        return cls((keys, values), count, [count])

    @property
    def memory(self) -> Tensor:
        """(2, B, H, room, K): keys and values."""
        if isinstance(self._both, tuple):
            self._both = torch.stack(self._both)
        return self._both

    @property
    def keys(self) -> Tensor:
        """(B, H, n, K)"""
        return self._both[0][:, :, : self.count]

    @property
    def values(self) -> Tensor:
        """(B, H, n, K)"""
        return self._both[1][:, :, : self.count]

    def add(self, keys: Tensor, values: Tensor) -> "Cache":
        """The cache with these entries (B, H, new, K) behind the others."""
        if keys.requires_grad:
            return Cache.of(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        return self.extend(torch.stack([keys, values]))

    def extend(self, both: Tensor) -> "Cache":
        """The cache with these keys and values (2, B, H, new, K) behind the others."""
        after = self.reserve(both.shape[3])
        after.memory.narrow(3, self.count, both.shape[3]).copy_(both)
        return after

    def reserve(self, new: int) -> "Cache":
        """The cache with so many entries more, which the caller fills in: `memory` from `count` on.

        memory: (2, B, H, room, K).
        """
        count = self.count + new
        own = self
        if self._taken[0] != self.count or count > self.memory.shape[3]:
            own = self._copy(max(ROOM, 2 * count))
        own._taken[0] = count
        return Cache(own.memory, count, own._taken)

    @classmethod
    def empty(cls, like: Tensor, rows: int, heads: int, head_width: int) -> "Cache":
        """A cache of no entries, of numbers such as those of `like`."""
        memory = like.new_empty(2, rows, heads, ROOM, head_width)
        return cls(memory, 0, [0])

    def _copy(self, room: int) -> "Cache":
        """The same entries in memory of their own, with room for more."""
        shape = list(self.memory.shape)
        both = self.memory.new_empty([*shape[:3], room, shape[4]])
        both[:, :, :, : self.count] = self.memory[:, :, :, : self.count]
        return Cache(both, self.count, [self.count])

    def select(self, rows: Tensor, sentences: Tensor | None) -> "Cache":
        """The cache of these sentences: it has a row for each of them, whatever their beams do."""
        if sentences is None:
            return self
        return Cache(self.memory.index_select(1, sentences), self.count, [self.count])

    def take(self, entries: Tensor) -> "Cache":
        """The cache of these entries (B, m) of each sentence alone."""
        parts, B, H, room, K = self.memory.shape
        m = entries.shape[1]
        first = torch.arange(parts * B * H, device=entries.device).view(parts, B, H, 1) * room
        rows = (first + entries[None, :, None]).flatten()
        kept = self.memory.reshape(-1, K).index_select(0, rows)
        return Cache(kept.view(parts, B, H, m, K), m, [m])


def sight(
    seen: Tensor | None, entries: int, beams: int, like: Tensor, rows: int, T: int = 1
) -> tuple[Tensor, Tensor]:
    """What each new token sees: a mask (B, 1, k*T, n + k*T), and its last rows (k*B, n + k*T).

    seen: (k*B, n), 0 where a beam sees an entry and -inf elsewhere; None: all see all entries.
    A new token sees what its beam sees, the new tokens before it in its beam, and itself.
    like: any tensor of the kind of numbers wanted; rows: k*B.
    """
    B = rows // beams
    old = like.new_zeros(rows, entries) if seen is None else seen
    old = old.view(B, beams, 1, entries).expand(-1, -1, T, -1)
    own = _own(beams, T, like.dtype, like.device).expand(B, -1, -1, -1)  # (B, k, T, k*T)
    mask = torch.cat([old, own], -1)
    return mask.flatten(1, 2).unsqueeze(1), mask[:, :, -1].flatten(0, 1)


@lru_cache(maxsize=64)
def _own(beams: int, T: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(k, T, k*T): 0 where a new token of a beam sees another one, -inf elsewhere."""
    with torch.inference_mode(False):
        before = torch.ones(T, T, device=device).tril().bool()
        same = torch.eye(beams, device=device).bool()[:, None, :, None] & before[None, :, None, :]
        own = torch.zeros(beams, T, beams, T, dtype=dtype, device=device)
        return own.masked_fill(~same, float("-inf")).flatten(2)


def alive(seen: Tensor, beams: int) -> Tensor:
    """(B, m): the entries that some beam of a sentence sees, m of the sentence with most."""
    used = (seen == 0).unflatten(0, (-1, beams)).any(1)  # (B, n)
    most = int(used.sum(1).max())
    return used.byte().sort(stable=True, dim=1, descending=True).indices[:, :most]
