"""Softmax attention, the full kind.

B sentences, k beams, R = k * B rows, H heads, T queries, S keys, n entries of a cache,
K head width.
"""

from typing import ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.tensors.state import fold, unfold
from regard.data.tensors.tree import Tree
from regard.nn.kernels.cache import Cache, alive, sight
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape

PRUNE = 16  # entries of a cache beyond twice those in use, from which it is pruned


class Shared(NamedTuple):
    """What all layers remember of a search. entries: of their caches; room: entries from which on
    they are pruned; seen: (R, n), 0 for entries that a beam sees and -inf elsewhere, or None."""

    entries: int = 0
    room: int = PRUNE
    seen: Tensor | None = None


class Prepared(NamedTuple):
    """What all layers of a pass need. take: (B, m), the entries that are left of a cache, None:
    all; mask: (B, 1, k*T, n + k*T) for beams that share a cache, None: all see all before them;
    own: (R, n + k*T), the entries that each beam sees."""

    take: Tensor | None = None
    mask: Tensor | None = None
    seen: Tensor | None = None


class SoftmaxAttention(Kernel):
    """softmax(q k^T / sqrt(K)) v (Vaswani et al. 2017, eq. 1), by torch's fused kernel.

    The beams of a sentence share one cache, so that beams that change places cost nothing.
    """

    fuses: ClassVar[bool] = True

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    def prepare(
        self, shared: Shared | None, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Prepared, Shared]:
        """Decides once a step for all layers what is pruned, and what each beam sees."""
        entries, room, seen = shared or Shared()
        beams, take, mask = rows // sentences, None, None
        if seen is not None and entries > room:
            take = alive(seen, beams)  # (B, m)
            entries = take.shape[1]
            room = 2 * entries + PRUNE
            seen = seen.gather(1, take.repeat_interleave(beams, 0))
        if beams > 1 or seen is not None:
            mask, seen = sight(seen, entries, beams, like, rows, new)
        return Prepared(take, mask, seen), Shared(entries + beams * new, room, seen)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Cache | None]:
        """q, k and v (R, H, T, K) to (R, H, T, K), and the keys and values so far."""
        queries, keys, values, after = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        hidden = self._mask(q, T, S, mask)
        whole = self.causal and hidden is None and T == S and T > 1
        if self.causal and hidden is None and 1 < T < S:
            hidden = _before(T, S, q)
        out = F.scaled_dot_product_attention(
            queries, keys, values, attn_mask=hidden, is_causal=whole
        )
        return _unfolded(out, q), after

    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Tensor]:
        """The attention itself (R, H, T, S), and the values (R, H, S, K)."""
        queries, keys, values, _ = self._entries(q, k, v, mask, past)
        T, S = queries.shape[2], keys.shape[2]
        hidden = self._mask(q, T, S, mask)
        if self.causal and hidden is None:
            hidden = _before(T, S, q)
        found = _unfolded(_softmax(queries, keys, hidden), q)  # (R, H, T, S)
        values = values.repeat_interleave(len(q) // len(values), 0)  # (R, H, S, K)
        if mask.prepared is None or mask.prepared.seen is None:
            return found, values
        own = mask.prepared.seen == 0  # (R, S), as many in each row: all beams are as long
        places = own.nonzero()[:, 1].view(len(q), 1, -1).expand(-1, q.shape[1], -1)  # in order
        found = found.gather(-1, places[:, :, None].expand(-1, -1, q.shape[2], -1))
        return found, values.gather(2, places[..., None].expand(-1, -1, -1, values.shape[-1]))

    def _entries(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Cache | None
    ) -> tuple[Tensor, Tensor, Tensor, Cache | None]:
        """Queries (B, H, k*T, K), keys and values (B, H, n, K) of all so far, and their cache."""
        if not self.causal:
            return q, k, v, None
        q, k, v = (_folded(x, mask.sentences) for x in (q, k, v))
        if past is None:
            return q, k, v, Cache.of(k, v)
        take = mask.prepared.take
        after = (past if take is None else past.take(take)).add(k, v)
        return q, after.keys, after.values, after

    def _mask(self, q: Tensor, T: int, S: int, mask: AttentionMask) -> Tensor | None:
        """What hides keys (boolean) or is added to scores; None: at most the future is hidden."""
        shared = None if mask.prepared is None else mask.prepared.mask  # hides the future as well
        numbers = [] if shared is None else [shared]
        numbers += [] if mask.bias is None else [mask.bias]
        if mask.positions.biases:
            numbers.append(self._positions_bias(q, S, mask))
        visible = None if mask.real is None else mask.real[:, None, None, :]  # (B, 1, 1, S)
        if self.causal and shared is None and (numbers or visible is not None):
            before = _before(T, S, q)
            visible = before if visible is None else visible & before
        if not numbers:
            return visible
        added = sum(numbers[1:], numbers[0])
        return added if visible is None else added.masked_fill(~visible, float("-inf"))

    def _positions_bias(self, q: Tensor, entries: int, mask: AttentionMask) -> Tensor:
        """(B|1, H, k*T, n): what the positions add to the scores.

        Of a cache that beams share, the position of an entry for a beam is how many entries
        before it the beam sees.
        """
        at_q = torch.arange(mask.at, mask.at + q.shape[2], device=q.device)
        at_k = torch.arange(entries, device=q.device)[None]
        if mask.prepared is not None and mask.prepared.seen is not None:
            at_k = (mask.prepared.seen == 0).cumsum(-1) - 1  # (R, n)
        bias = mask.positions.bias(q, at_q, at_k)  # (R|1, H, T, n)
        assert bias is not None
        return bias if len(bias) == 1 else _folded(bias, mask.sentences)

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """The keys and values (B, H, S, K) themselves."""
        return k, v

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """q (R, H, T, K) to (R, H, T, K)."""
        k, v = memory
        mask = real[:, None, None, :]  # (B, 1, 1, S)
        out = F.scaled_dot_product_attention(_folded(q, len(real)), k, v, attn_mask=mask)
        return _unfolded(out, q)

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """The attention (R, H, T, S) to another sequence, and its values (R, H, S, K)."""
        k, v = memory
        found = _softmax(_folded(q, len(real)), k, real[:, None, None, :])
        return _unfolded(found, q), v.repeat_interleave(len(q) // len(v), 0)


def _before(T: int, S: int, like: Tensor) -> Tensor:
    """(T, S): True for what is not after each of the last T of S positions."""
    return torch.ones(T, S, dtype=torch.bool, device=like.device).tril(S - T)


def _softmax(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The explicit attention; mask: boolean (True is visible), or numbers to add."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    return scores.softmax(-1)


def _folded(x: Tensor, sentences: int) -> Tensor:
    """(R, H, T, K) as (B, H, k*T, K)."""
    if len(x) == sentences:
        return x
    return fold(x.transpose(1, 2), sentences).transpose(1, 2)


def _unfolded(x: Tensor, like: Tensor) -> Tensor:
    """(B, H, k*T, K) as (R, H, T, K), for like (R, H, T, K)."""
    if len(x) == len(like):
        return x
    return unfold(x.transpose(1, 2), like.transpose(1, 2)).transpose(1, 2)


class Softmax(KernelOptions):
    """Every position attends to every other."""

    kind: Literal["softmax"] = "softmax"
    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})

    def build(self, shape: Shape) -> Kernel:
        return SoftmaxAttention(shape.causal)
