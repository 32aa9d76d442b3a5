"""How a model is recorded while it runs: attention, hidden vectors, gates, inputs.

Every part of a model that has something to record calls a function here, under its own module:

- An attention (a module with `heads`, a number) calls `record_attention(self, weights, ...)` in
  each forward. `weights` is a function, called only if somebody records, that gives the map
  (k*B, H, T, S): a row for each query, in the order of the rows of its input; a column for each
  position it can attend to; 0 where it must not; each row sums to one. Attention to the source says
  so (`at="source"`), since it is an alignment as well.
- The same module passes the output of its heads through `ablation.zero_ablated`, before they are
  joined.
- A layer calls `record_hidden(self, x)` with its output, (k*B, T, D); one that has gates adds a
  function that gives them, each (k*B, T, D), by their names.
- What makes vectors of tokens returns `record_input(self, x)`.
- Code that goes token by token where others go all at once does so within `merge_steps()`;
  code that knows which positions are padding computes within `padding_mask(mask)`, code that
  reverses rows within `reversed_order(places)`.

A new kernel, layer or decoder that keeps to this is seen by everything that records. Nothing is
computed and nothing kept unless somebody records, and only in the thread that records.

B rows, k beams, T length, S positions attended to, H heads, D width.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from regard.core.context import Slot
from regard.nn.capture import Capture

# Of this thread: who records, the innermost last; which positions are real (B, T); and the places
# (B, T, 1) by which rows are reversed.
RECORDERS: Slot[tuple[Capture, ...]] = Slot("recorders", ())
REAL: Slot[Tensor | None] = Slot("real", None)
PLACES: Slot[Tensor | None] = Slot("places", None)


@contextlib.contextmanager
def recording(model: nn.Module | None = None) -> Iterator[Capture]:
    """Within, in this thread, what the parts of the model show is kept, by their paths.

    Without a model only attention to the source is kept. Those who watch around it see it too.
    """
    names = None
    if model is not None:
        names = {id(part): name for name, part in model.named_modules()}
    seen = Capture(names)
    with RECORDERS.set((*RECORDERS.get(), seen)):
        yield seen


def active_recorder() -> Capture | None:
    """Where attention to the source is kept, if anybody is watching."""
    recorders = RECORDERS.get()
    return recorders[-1] if recorders else None


def is_recording() -> bool:
    """Whether anybody looks at more than attention to the source."""
    return any(seen.names is not None for seen in RECORDERS.get())


def recorders_of(part: nn.Module) -> list[Capture]:
    """Those who look at a module."""
    return [seen for seen in RECORDERS.get() if seen.names and id(part) in seen.names]


def record_attention(
    part: nn.Module | None, weights: Callable[[], Tensor], at: Literal["source", "itself"]
) -> None:
    """An attention shows its map (k*B, H, T, S).

    part: None where there is no module, so that it has no name.
    """
    recorders = RECORDERS.get()
    if not recorders:
        return
    named = [] if part is None else recorders_of(part)
    nameless = [seen for seen in recorders if seen.names is None and at == "source"]
    if not named and not nameless:
        return
    found = weights()
    for seen in named:
        assert seen.names is not None
        name = seen.names[id(part)]
        seen.attention.add(name, found)
        seen.real.add(name, REAL.get())
    if at == "source":
        for seen in (*named, *nameless):
            seen.cross.append(found)


def record_hidden(
    part: nn.Module, x: Tensor, gates: Callable[[], dict[str, Tensor]] | None = None
) -> None:
    """A layer shows what it gives, (k*B, T, D), and its gates where it has any."""
    found = recorders_of(part)
    if not found:
        return
    opened = {} if gates is None else {name: _turned_back(g) for name, g in gates().items()}
    for seen in found:
        assert seen.names is not None
        seen.hidden.add(seen.names[id(part)], _turned_back(x))
        if opened:
            seen.gates.add(seen.names[id(part)], opened)


def record_input(part: nn.Module, x: Tensor) -> Tensor:
    """The vectors of tokens (B, T, D) as they go in: with a gradient if somebody looks."""
    found = recorders_of(part)
    if found and torch.is_grad_enabled() and not x.requires_grad:
        x = x.detach().requires_grad_()
    for seen in found:
        assert seen.names is not None
        seen.inputs.add(seen.names[id(part)], x)
    return x


def _turned_back(x: Tensor) -> Tensor:
    """(B, T, D) in the order of the tokens, where they were turned round."""
    places = PLACES.get()
    return x if places is None else x.gather(1, places.expand_as(x))


@contextlib.contextmanager
def merge_steps() -> Iterator[None]:
    """Within, what is shown of one token after the other becomes one view of them all."""
    before = [(seen, seen.counts()) for seen in RECORDERS.get()]
    yield
    for seen, counts in before:
        seen.join(counts)


def padding_mask(real: Tensor) -> contextlib.AbstractContextManager[None]:
    """Within, rows of attention are those of tokens of which these (B, T) are no padding."""
    return REAL.set(real)


def reversed_order(places: Tensor) -> contextlib.AbstractContextManager[None]:
    """Within, rows are turned round by these places (B, T, 1); layers show them in order."""
    return PLACES.set(places)
