"""Hooks that record the internals of a running model: attention, hidden states, gates, inputs.

Every module with something to record calls a function here:

- An attention module (with an attribute `heads`, their number) calls
  `record_attention(self, weights, ...)` in each forward. `weights` is a function, called only while
  recording, that returns the attention weights (k*B, H, T, S): a row per query, in input order, and
  a column per position that the query can attend to. Masked positions have weight 0, and each row
  sums to one, unless `kind` declares otherwise. `at="source"` marks cross-attention, which also
  serves as an alignment.
- The same module passes the outputs of its heads through `ablation.zero_ablated` before it joins
  the heads.
- A layer calls `record_hidden(self, x)` with its output (k*B, T, D). A gated layer also passes a
  function that returns its gates by name, each (k*B, T, D).
- An embedding layer returns `record_input(self, x)` instead of x.
- A layer of feature maps returns `record_maps(self, x)` instead of its output x (k*B, H, W, C).
- A layer that reads windows of an image calls `record_filters(self, ...)` with a function that
  returns its filters (F, H, W, C).
- A module that turns an image into positions calls `record_grid(self, rows, columns, before)`.
- Code that processes tokens one by one instead of all at once runs inside `merge_steps()`.
- Code that knows which positions are padding runs inside `padding_mask(mask)`.
- Code that reverses sequences runs inside `reversed_order(indices)`.

A new kernel, layer or decoder that follows these rules is recorded automatically. Nothing is
computed or kept unless a recorder is active in the same thread.

Shapes: B sentences, k beams per sentence, T length, S positions attended to, H heads, D width.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.context import Slot
from regard.nn.capture import Capture, Grid, MapKind

# In this thread: the active recorders, innermost last; a mask (B, T), True unless padding; and the
# indices (B, T, 1) that reverse each sequence.
RECORDERS: Slot[tuple[Capture, ...]] = Slot("recorders", ())
REAL: Slot[Tensor | None] = Slot("real", None)
INDICES: Slot[Tensor | None] = Slot("indices", None)


@contextlib.contextmanager
def recording(model: nn.Module | None = None) -> Iterator[Capture]:
    """Record the internals of a model by module path, in this thread inside the block.

    Without a model, record only attention to the source. Recorders of enclosing blocks stay active.
    """
    names = None
    if model is not None:
        names = {id(part): name for name, part in model.named_modules()}
    captured = Capture(names)
    with RECORDERS.set((*RECORDERS.get(), captured)):
        yield captured


def active_recorder() -> Capture | None:
    """Return the innermost recorder, or None."""
    recorders = RECORDERS.get()
    return recorders[-1] if recorders else None


def is_recording() -> bool:
    """Return whether a recorder records more than attention to the source."""
    return any(recorder.names is not None for recorder in RECORDERS.get())


def recorders_of(part: nn.Module) -> list[Capture]:
    """Return the active recorders of the model that contains this module."""
    return [
        recorder for recorder in RECORDERS.get() if recorder.names and id(part) in recorder.names
    ]


def record_attention(
    part: nn.Module | None,
    weights: Callable[[], Tensor],
    at: Literal["source", "itself"],
    kind: MapKind = MapKind(),  # noqa: B008
) -> None:
    """Record the attention weights (k*B, H, T, S) of a module.

    part: the module; None if the attention belongs to no module. weights: returns the weights.
    kind: whether they are implied, and whether they are normalized.
    """
    recorders = RECORDERS.get()
    if not recorders:
        return
    named = [] if part is None else recorders_of(part)
    nameless = [recorder for recorder in recorders if recorder.names is None and at == "source"]
    if not named and not nameless:
        return
    found = weights()
    for recorder in named:
        assert recorder.names is not None
        name = recorder.names[id(part)]
        recorder.attention.add(name, found)
        recorder.map_kinds[name] = kind
        recorder.real.add(name, REAL.get())
    if at == "source":
        for recorder in (*named, *nameless):
            recorder.cross.append(found)


def record_hidden(
    part: nn.Module, x: Tensor, gates: Callable[[], dict[str, Tensor]] | None = None
) -> None:
    """Record the output (k*B, T, D) of a layer, and its gates, if any."""
    found = recorders_of(part)
    if not found:
        return
    values = {} if gates is None else {name: _in_token_order(g) for name, g in gates().items()}
    for recorder in found:
        assert recorder.names is not None
        recorder.hidden.add(recorder.names[id(part)], _in_token_order(x))
        if values:
            recorder.gates.add(recorder.names[id(part)], values)


def record_input(part: nn.Module, x: Tensor) -> Tensor:
    """Record the token embeddings (B, T, D) and return them; if recorded, they get a gradient."""
    found = recorders_of(part)
    if found and torch.is_grad_enabled() and not x.requires_grad:
        x = x.detach().requires_grad_()
    for recorder in found:
        assert recorder.names is not None
        recorder.inputs.add(recorder.names[id(part)], x)
    return x


def record_maps(part: nn.Module, x: Tensor) -> Tensor:
    """Record feature maps (k*B, H, W, C), the output of a layer, and return them.

    They are also recorded as the hidden states (k*B, T, D) of their cells.
    """
    found = recorders_of(part)
    if not found:
        return x
    record_hidden(part, x.flatten(1, 2))
    for recorder in found:
        assert recorder.names is not None
        recorder.maps.add(recorder.names[id(part)], x)
    return x


def record_filters(part: nn.Module, filters: Callable[[], Tensor]) -> None:
    """Record the filters (F, H, W, C) of a layer. filters: returns them."""
    for recorder in recorders_of(part):
        assert recorder.names is not None
        recorder.filters.add(recorder.names[id(part)], filters())


def record_grid(part: nn.Module, rows: int, columns: int, before: int = 0) -> None:
    """Record that the output of a module has a position per cell, after `before` others."""
    for recorder in recorders_of(part):
        assert recorder.names is not None
        recorder.grids.add(recorder.names[id(part)], Grid(rows, columns, before))


def _in_token_order(x: Tensor) -> Tensor:
    """Return x (B, T, D) in token order, also inside `reversed_order`."""
    indices = INDICES.get()
    return x if indices is None else x.gather(1, indices.expand_as(x))


@contextlib.contextmanager
def merge_steps() -> Iterator[None]:
    """Merge the values that the block records token by token into one value of all tokens."""
    before = [(recorder, recorder.counts()) for recorder in RECORDERS.get()]
    yield
    for recorder, counts in before:
        recorder.join(counts)


def padding_mask(real: Tensor) -> contextlib.AbstractContextManager[None]:
    """Set the mask (B, T) of tokens that are not padding, inside the block."""
    return REAL.set(real)


def reversed_order(indices: Tensor) -> contextlib.AbstractContextManager[None]:
    """Declare that sequences are reversed by these indices (B, T, 1), inside the block."""
    return INDICES.set(indices)
