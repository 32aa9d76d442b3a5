"""Attention with a score for every pair of positions, and a key-value cache that beams share.

Kernels that differ from softmax attention in their scores, in their normalization or in which
positions a query attends to are subclasses. Sparse kernels use it for decoding steps, and as the
naive counterpart of their fast path.

Shapes: B sentences, k beams per sentence, R = k * B rows, H heads, G heads of keys and values,
T queries, S keys, n entries of a cache, K head width.
"""

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from regard.data.tensors.state import fold, unfold
from regard.data.tensors.tree import Tree
from regard.nn.kernels.cache import Cache, beam_attention_mask, live_entries
from regard.nn.kernels.kernel import AttentionMask, Kernel, masked_softmax, repeat_heads

PRUNE_MARGIN = 16  # a cache is pruned at twice the entries that beams attend to, plus this many


class Shared(NamedTuple):
    """State that all layers share between the steps of a search.

    entries: entries per cache. max_entries: number of entries above which caches are pruned.
    beam_mask: (R, n), 0 if a beam attends to an entry and -inf otherwise. None: all 0.
    """

    entries: int = 0
    max_entries: int = PRUNE_MARGIN
    beam_mask: Tensor | None = None


class Prepared(NamedTuple):
    """Input that all layers share in one forward pass.

    take: (B, m), indices of the cache entries to keep. None: all.
    mask: (B, 1, k*T, n + k*T), for beams that share a cache. None: only the causal mask.
    beam_mask: (R, n + k*T), 0 if a beam attends to an entry and -inf otherwise. None: all 0.
    """

    take: Tensor | None = None
    mask: Tensor | None = None
    beam_mask: Tensor | None = None


class DenseAttention(Kernel):
    """softmax(q k^T / sqrt(K)) v, with an explicit matrix of scores.

    Subclasses override `scores` or `normalize`, or `pattern` if they are `sparse`. The beams of a
    sentence share one cache, so reordering beams is free.
    """

    grouped: ClassVar[bool] = True

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores (B, H, T, S) of queries (B, H, T, K) and keys (B, H, S, K)."""
        return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5

    def normalize(self, scores: Tensor, visible: Tensor | None) -> Tensor:
        """Return the weights for scores (B, H, T, S). visible: a mask, broadcastable, or None."""
        return masked_softmax(scores, visible)

    def pattern(self, at_q: Tensor, at_k: Tensor, mask: AttentionMask) -> Tensor:
        """Return which positions a query of a sparse kernel attends to (R|1, T, S).

        at_q: positions (T,) of queries. at_k: positions (R|1, S) of keys. The future is masked
        anyway if the kernel is causal.
        """
        raise NotImplementedError

    def prepare(
        self, shared: Shared | None, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Prepared, Shared]:
        """Return, for all layers, which entries to keep and what each beam attends to."""
        entries, max_entries, beam_mask = shared or Shared()
        beams, take, mask = rows // sentences, None, None
        if beam_mask is not None and entries > max_entries:
            take = live_entries(beam_mask, beams)  # (B, m)
            entries = take.shape[1]
            max_entries = 2 * entries + PRUNE_MARGIN
            beam_mask = beam_mask.gather(1, take.repeat_interleave(beams, 0))
        if beams > 1 or beam_mask is not None:
            mask, beam_mask = beam_attention_mask(beam_mask, entries, beams, like, rows, new)
        shared = Shared(entries + beams * new, max_entries, beam_mask)
        return Prepared(take, mask, beam_mask), shared

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K), and the new cache."""
        queries, keys, values, after = self._entries(q, k, v, mask, past)
        weights = self._weights(queries, keys, self._mask(q, queries.shape[2], keys.shape[2], mask))
        return unfolded(weights @ repeat_heads(values, q.shape[1]), q), after

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) and the values (R, H, S, K)."""
        queries, keys, values, _ = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        found = unfolded(self._weights(queries, keys, self._mask(q, T, S, mask)), q)
        values = repeat_heads(values, q.shape[1])
        values = values.repeat_interleave(len(q) // len(values), 0)  # (R, H, S, K)
        if mask.prepared is None or mask.prepared.beam_mask is None:
            return found, values
        attended = mask.prepared.beam_mask == 0  # (R, S), the same number in each row
        indices = attended.nonzero()[:, 1].view(len(q), 1, -1).expand(-1, q.shape[1], -1)
        found = found.gather(-1, indices[:, :, None].expand(-1, -1, q.shape[2], -1))
        return found, values.gather(2, indices[..., None].expand(-1, -1, -1, values.shape[-1]))

    def is_whole(self, mask: AttentionMask, past: Tree) -> bool:
        """Return whether a call has all positions of each row: training, or the first step."""
        return past is None and (mask.prepared is None or mask.prepared.mask is None)

    def first_cache(self, k: Tensor, v: Tensor) -> Cache | None:
        """Return the cache after a call with all positions; None if the kernel is not causal."""
        return Cache.of(k, v) if self.causal else None

    def _entries(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Tensor, Tensor, Cache | None]:
        """Return queries (B, H, k*T, K), all keys and values (B, G, n, K), and the new cache."""
        if not self.causal:
            return q, k, v, None
        q, k, v = (folded(x, mask.sentences) for x in (q, k, v))
        if past is None:
            return q, k, v, Cache.of(k, v)
        take = None if mask.prepared is None else mask.prepared.take
        after = (past if take is None else past.take(take)).add(k, v)
        return q, after.keys, after.values, after

    def _weights(self, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
        """Return the weights. mask: boolean (True: visible), or a bias, -inf if masked, or None."""
        scores = self.scores(q, repeat_heads(k, q.shape[1]))
        if mask is None or mask.dtype == torch.bool:
            return self.normalize(scores, mask)
        visible = mask > float("-inf")
        return self.normalize(scores + mask.masked_fill(~visible, 0.0), visible)

    def _mask(self, q: Tensor, T: int, S: int, mask: AttentionMask) -> Tensor | None:
        """Return a boolean mask, or a bias to add to scores; None: everything is visible.

        T: number of queries, beams included. q: queries (R, H, T / k, K).
        """
        shared = None if mask.prepared is None else mask.prepared.mask  # includes the causal mask
        biases = [] if shared is None else [shared]
        biases += [] if mask.bias is None else [mask.bias]
        if mask.positions.biases:
            bias = mask.positions.bias(q, *self._positions(q, S, mask))  # (R|1, H, T, S)
            assert bias is not None
            biases.append(bias if len(bias) == 1 else folded(bias, mask.sentences))
        visible = self._visible(q, T, S, mask, shared is None)
        if not biases:
            return visible
        added = sum(biases[1:], biases[0])
        return added if visible is None else added.masked_fill(~visible, float("-inf"))

    def _visible(
        self, q: Tensor, T: int, S: int, mask: AttentionMask, masks_future: bool
    ) -> Tensor | None:
        """Return which keys queries attend to (B|1, 1, T, S); None: all."""
        visible = None if mask.real is None else mask.real[:, None, None, :]  # (B, 1, 1, S)
        if self.sparse:
            pattern = self.pattern(*self._positions(q, S, mask), mask).unsqueeze(1)
            pattern = pattern if len(pattern) == 1 else folded(pattern, mask.sentences)
            visible = pattern if visible is None else visible & pattern
        if self.causal and masks_future and T > 1:
            causal = causal_mask(T, S, q.device)
            visible = causal if visible is None else visible & causal
        return visible

    def _positions(self, q: Tensor, entries: int, mask: AttentionMask) -> tuple[Tensor, Tensor]:
        """Return the positions (T,) of queries and (R|1, n) of entries.

        In a cache that beams share, the position of an entry for a beam is the number of earlier
        entries that the beam attends to.
        """
        at_q = torch.arange(mask.at, mask.at + q.shape[2], device=q.device)
        if mask.prepared is None or mask.prepared.beam_mask is None:
            return at_q, torch.arange(entries, device=q.device)[None]
        return at_q, (mask.prepared.beam_mask == 0).cumsum(-1) - 1

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the memory: keys and values (B, G, S, K), unchanged."""
        return k, v

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """Return the output (R, H, T, K) of cross-attention for queries q (R, H, T, K)."""
        weights, values = self._cross_weights(q, memory, real)
        return unfolded(weights @ values, q)

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-attention weights (R, H, T, S) and the values (R, H, S, K)."""
        weights, values = self._cross_weights(q, memory, real)
        return unfolded(weights, q), values.repeat_interleave(len(q) // len(values), 0)

    def _cross_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights (B, H, k*T, S) and the values (B, H, S, K)."""
        k, v = memory
        weights = self._weights(folded(q, len(real)), k, real[:, None, None, :])
        return weights, repeat_heads(v, q.shape[1])


def causal_mask(T: int, S: int, device: torch.device) -> Tensor:
    """Return a mask (T, S), True up to the position of each query; queries are the last T of S."""
    return torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)


def folded(x: Tensor, sentences: int) -> Tensor:
    """Reshape x (R, H, T, K) to (B, H, k*T, K): beams become queries of their sentence."""
    if len(x) == sentences:
        return x
    return fold(x.transpose(1, 2), sentences).transpose(1, 2)


def unfolded(x: Tensor, like: Tensor) -> Tensor:
    """Undo `folded`: reshape x (B, H, k*T, K) to (R, H, T, K), with R and T from `like`."""
    if len(x) == len(like):
        return x
    return unfold(x.transpose(1, 2), like.transpose(1, 2)).transpose(1, 2)
