"""Full softmax attention.

Shapes: B sentences, k beams per sentence, R = k * B rows, H heads, T queries, S keys, n entries of
a cache, K head width.
"""

from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.tensors.state import fold, unfold
from regard.data.tensors.tree import Tree
from regard.nn.kernels.cache import Cache, beam_attention_mask, live_entries
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape

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


class SoftmaxAttention(Kernel):
    """softmax(q k^T / sqrt(K)) v (Vaswani et al. 2017, eq. 1), by torch's fused kernel.

    The beams of a sentence share one cache, so reordering beams is free.
    """

    fuses: ClassVar[bool] = True

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

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
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Cache | None]:
        """Return the output (R, H, T, K) for q, k and v (R, H, T, K), and the new cache."""
        queries, keys, values, after = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        attn_mask = self._mask(q, T, S, mask)
        is_causal = self.causal and attn_mask is None and T == S and T > 1
        if self.causal and attn_mask is None and 1 < T < S:
            attn_mask = _causal_mask(T, S, q)
        out = _attend(queries, keys, values, attn_mask, is_causal)
        return _unfolded(out, q), after

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) and the values (R, H, S, K)."""
        queries, keys, values, _ = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        attn_mask = self._mask(q, T, S, mask)
        if self.causal and attn_mask is None:
            attn_mask = _causal_mask(T, S, q)
        found = _unfolded(_softmax(queries, keys, attn_mask), q)  # (R, H, T, S)
        values = values.repeat_interleave(len(q) // len(values), 0)  # (R, H, S, K)
        if mask.prepared is None or mask.prepared.beam_mask is None:
            return found, values
        attended = mask.prepared.beam_mask == 0  # (R, S), the same number in each row
        indices = attended.nonzero()[:, 1].view(len(q), 1, -1).expand(-1, q.shape[1], -1)
        found = found.gather(-1, indices[:, :, None].expand(-1, -1, q.shape[2], -1))
        return found, values.gather(2, indices[..., None].expand(-1, -1, -1, values.shape[-1]))

    def _entries(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Tensor, Tensor, Cache | None]:
        """Return queries (B, H, k*T, K), all keys and values (B, H, n, K), and the new cache."""
        if not self.causal:
            return q, k, v, None
        q, k, v = (_folded(x, mask.sentences) for x in (q, k, v))
        if past is None:
            return q, k, v, Cache.of(k, v)
        take = mask.prepared.take
        after = (past if take is None else past.take(take)).add(k, v)
        return q, after.keys, after.values, after

    def _mask(self, q: Tensor, T: int, S: int, mask: AttentionMask) -> Tensor | None:
        """Return a boolean mask, or a bias to add to scores; None: only the causal mask, if any."""
        shared = None if mask.prepared is None else mask.prepared.mask  # includes the causal mask
        biases = [] if shared is None else [shared]
        biases += [] if mask.bias is None else [mask.bias]
        if mask.positions.biases:
            biases.append(self._positions_bias(q, S, mask))
        visible = None if mask.real is None else mask.real[:, None, None, :]  # (B, 1, 1, S)
        if self.causal and shared is None and (biases or visible is not None):
            causal = _causal_mask(T, S, q)
            visible = causal if visible is None else visible & causal
        if not biases:
            return visible
        added = sum(biases[1:], biases[0])
        return added if visible is None else added.masked_fill(~visible, float("-inf"))

    def _positions_bias(self, q: Tensor, entries: int, mask: AttentionMask) -> Tensor:
        """Return the bias (B|1, H, k*T, n) that the positional encoding adds to scores.

        In a cache that beams share, the position of an entry for a beam is the number of earlier
        entries that the beam attends to.
        """
        at_q = torch.arange(mask.at, mask.at + q.shape[2], device=q.device)
        at_k = torch.arange(entries, device=q.device)[None]
        if mask.prepared is not None and mask.prepared.beam_mask is not None:
            at_k = (mask.prepared.beam_mask == 0).cumsum(-1) - 1  # (R, n)
        bias = mask.positions.bias(q, at_q, at_k)  # (R|1, H, T, n)
        assert bias is not None
        return bias if len(bias) == 1 else _folded(bias, mask.sentences)

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the memory: keys and values (B, H, S, K), unchanged."""
        return k, v

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """Return the output (R, H, T, K) of cross-attention for queries q (R, H, T, K)."""
        k, v = memory
        mask = real[:, None, None, :]  # (B, 1, 1, S)
        out = F.scaled_dot_product_attention(_folded(q, len(real)), k, v, attn_mask=mask)
        return _unfolded(out, q)

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cross-attention weights (R, H, T, S) and the values (R, H, S, K)."""
        k, v = memory
        found = _softmax(_folded(q, len(real)), k, real[:, None, None, :])
        return _unfolded(found, q), v.repeat_interleave(len(q) // len(v), 0)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Return the output of torch's fused attention.

    On a CPU it runs in float32, also under autocast: the gradient of the fused kernel takes ten
    times as long in bfloat16.
    """
    fused = F.scaled_dot_product_attention
    if q.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return fused(q, k, v, attn_mask=mask, is_causal=is_causal)
    with torch.autocast("cpu", enabled=False):
        mask = mask.float() if mask is not None and mask.is_floating_point() else mask
        return fused(q.float(), k.float(), v.float(), attn_mask=mask, is_causal=is_causal)


def _causal_mask(T: int, S: int, like: Tensor) -> Tensor:
    """Return a mask (T, S), True up to the position of each query; queries are the last T of S."""
    return torch.ones(T, S, dtype=torch.bool, device=like.device).tril(S - T)


def _softmax(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention weights. mask: boolean (True: visible), or a bias to add to scores."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1)


def _folded(x: Tensor, sentences: int) -> Tensor:
    """Reshape x (R, H, T, K) to (B, H, k*T, K): beams become queries of their sentence."""
    if len(x) == sentences:
        return x
    return fold(x.transpose(1, 2), sentences).transpose(1, 2)


def _unfolded(x: Tensor, like: Tensor) -> Tensor:
    """Undo `_folded`: reshape x (B, H, k*T, K) to (R, H, T, K), with R and T from `like`."""
    if len(x) == len(like):
        return x
    return unfold(x.transpose(1, 2), like.transpose(1, 2)).transpose(1, 2)


class Softmax(KernelOptions):
    """Full softmax attention: every position attends to every other."""

    kind: Literal["softmax"] = "softmax"
    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})

    def build(self, shape: Shape) -> Kernel:
        return SoftmaxAttention(shape.causal)
