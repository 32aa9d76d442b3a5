"""The key-value cache of self-attention. An entry is the key and the value of one token.

Shapes: B sentences, k beams per sentence, T new tokens, H heads, n entries, K head width. room:
the capacity in entries.
"""

from functools import lru_cache

import torch
from torch import Tensor

from regard.data.tensors.tree import Selects

MIN_CAPACITY = 32  # entries


class Cache(Selects):
    """Keys and values (B, H, n, K), in memory that grows without a copy at each step.

    The beams of a sentence share one row. Each step adds an entry per beam, and a mask
    (`beam_attention_mask`) selects the entries that a beam attends to. So reordering beams is
    free. Caches may share memory, but never change each other: `add` copies the memory if another
    cache already uses the next entry.
    """

    def __init__(self, both: Tensor | tuple[Tensor, Tensor], count: int, used: list[int]) -> None:
        self._both = both  # (2, B, H, room, K): keys and values; stacked only when needed
        self.count = count
        self._used = used  # number of entries in use, for all caches that share the memory

    @classmethod
    def of(cls, keys: Tensor, values: Tensor) -> "Cache":
        """Return a cache with these keys and values (B, H, n, K), without a copy."""
        count = keys.shape[2]
        return cls((keys, values), count, [count])

    @property
    def memory(self) -> Tensor:
        """Return keys and values (2, B, H, room, K), unused capacity included."""
        if isinstance(self._both, tuple):
            self._both = torch.stack(self._both)
        return self._both

    @property
    def keys(self) -> Tensor:
        """Return the keys (B, H, n, K)."""
        return self._both[0][:, :, : self.count]

    @property
    def values(self) -> Tensor:
        """Return the values (B, H, n, K)."""
        return self._both[1][:, :, : self.count]

    def add(self, keys: Tensor, values: Tensor) -> "Cache":
        """Return the cache with these entries (B, H, new, K) appended."""
        if keys.requires_grad:
            return Cache.of(torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2))
        return self.extend(torch.stack([keys, values]))

    def extend(self, both: Tensor) -> "Cache":
        """Return the cache with these keys and values (2, B, H, new, K) appended."""
        after = self.reserve(both.shape[3])
        after.memory.narrow(3, self.count, both.shape[3]).copy_(both)
        return after

    def reserve(self, new: int) -> "Cache":
        """Return the cache with `new` more entries, which the caller fills in.

        The new entries of `memory` (2, B, H, room, K) start at the previous `count`.
        """
        count = self.count + new
        cache = self
        if self._used[0] != self.count or count > self.memory.shape[3]:
            cache = self._copy(max(MIN_CAPACITY, 2 * count))
        cache._used[0] = count
        return Cache(cache.memory, count, cache._used)

    @classmethod
    def empty(cls, like: Tensor, rows: int, heads: int, head_width: int) -> "Cache":
        """Return an empty cache with dtype and device of `like`."""
        memory = like.new_empty(2, rows, heads, MIN_CAPACITY, head_width)
        return cls(memory, 0, [0])

    def _copy(self, room: int) -> "Cache":
        """Return a copy with its own memory for `room` entries."""
        shape = list(self.memory.shape)
        both = self.memory.new_empty([*shape[:3], room, shape[4]])
        both[:, :, :, : self.count] = self.memory[:, :, :, : self.count]
        return Cache(both, self.count, [self.count])

    def select(self, rows: Tensor, sentences: Tensor | None) -> "Cache":
        """Return the cache of these sentences (None: all). rows: ignored, as beams share rows."""
        if sentences is None:
            return self
        return Cache(self.memory.index_select(1, sentences), self.count, [self.count])

    def take(self, entries: Tensor) -> "Cache":
        """Return the cache with only the entries at these indices (B, m)."""
        parts, B, H, room, K = self.memory.shape
        m = entries.shape[1]
        first = torch.arange(parts * B * H, device=entries.device).view(parts, B, H, 1) * room
        rows = (first + entries[None, :, None]).flatten()
        kept = self.memory.reshape(-1, K).index_select(0, rows)
        return Cache(kept.view(parts, B, H, m, K), m, [m])


def beam_attention_mask(
    beam_mask: Tensor | None, entries: int, beams: int, like: Tensor, rows: int, T: int = 1
) -> tuple[Tensor, Tensor]:
    """Return the mask (B, 1, k*T, n + k*T) of new tokens, and the new beam_mask (k*B, n + k*T).

    beam_mask: (k*B, n), 0 if a beam attends to an entry and -inf otherwise. None: all 0.
    A new token attends to the entries of its beam, to earlier new tokens of its beam, and to
    itself. like: a tensor with the dtype and device of the result. rows: k*B.
    """
    B = rows // beams
    old = like.new_zeros(rows, entries) if beam_mask is None else beam_mask
    old = old.view(B, beams, 1, entries).expand(-1, -1, T, -1)
    new = _new_token_mask(beams, T, like.dtype, like.device)
    new = new.expand(B, -1, -1, -1)  # (B, k, T, k*T)
    mask = torch.cat([old, new], -1)
    return mask.flatten(1, 2).unsqueeze(1), mask[:, :, -1].flatten(0, 1)


@lru_cache(maxsize=64)
def _new_token_mask(beams: int, T: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the mask (k, T, k*T) of new tokens: causal within a beam, -inf between beams."""
    with torch.inference_mode(False):
        before = torch.ones(T, T, device=device).tril().bool()
        same = torch.eye(beams, device=device).bool()[:, None, :, None] & before[None, :, None, :]
        mask = torch.zeros(beams, T, beams, T, dtype=dtype, device=device)
        return mask.masked_fill(~same, float("-inf")).flatten(2)


def live_entries(beam_mask: Tensor, beams: int) -> Tensor:
    """Return the indices (B, m) of entries that at least one beam of the sentence attends to.

    m: the largest count. Sentences with a smaller count are filled up with other entries.
    """
    used = (beam_mask == 0).unflatten(0, (-1, beams)).any(1)  # (B, n)
    count = int(used.sum(1).max())
    return used.byte().sort(stable=True, dim=1, descending=True).indices[:, :count]
