"""The door through which a model is seen from outside while it runs.

Every part of a model that has something to show comes to this door, under its own module:

- An attention (a module with `heads`, a number) calls `look(self, weights, ...)` in each forward.
  `weights` is a function, called only if somebody looks, that gives the map (k*B, H, T, S): a row
  for each query, in the order of the rows of its input; a column for each place it can see; 0
  where it must not look; each row sums to one. The function is the explicit twin of the fast
  path: an inner attention (a kernel) has `weights(q, keys, mask, causal)` for it, with the keys of
  all places; what it keeps of the past has them as `keys` and `values`. `attention.explicit`
  checks that weights times values is what the fast path gave. Attention to the source says so
  (`at="source"`), since it is an alignment as well.
- The same module passes what its heads found through `silence.hush`, before they are joined.
- A layer calls `show(self, x)` with what it gives, (k*B, T, D); one that has gates adds a
  function that gives them, each (k*B, T, D), by their names.
- What makes vectors of symbols returns `entered(self, x)`.
- Code that goes symbol by symbol where others go all at once does so within `together()`;
  code that knows which places are padding computes within `reading(mask)`, code that turns rows
  round within `turned(places)`.

A new kernel, layer or decoder that keeps to this is seen by everything that looks. Nothing is
computed and nothing kept where nobody looks, and only the thread that looks sees anything.

B rows, k beams, T length, S places looked at, H heads, D width.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn

from regard.nn.capture import Seen


class _Here(threading.local):
    """What is looked at in a thread. watchers: the innermost last."""

    watchers: tuple[Seen, ...] = ()
    real: Tensor | None = None
    places: Tensor | None = None


_here = _Here()


@contextlib.contextmanager
def watching(model: nn.Module | None = None) -> Iterator[Seen]:
    """Within, in this thread, what the parts of the model show is kept, by their paths.

    Without a model only attention to the source is kept. Those who watch around it see it too.
    """
    names = None
    if model is not None:
        names = {id(part): name for name, part in model.named_modules()}
    before, seen = _here.watchers, Seen(names)
    _here.watchers = (*before, seen)
    try:
        yield seen
    finally:
        _here.watchers = before


def watched() -> Seen | None:
    """Where attention to the source is kept, if anybody is watching."""
    return _here.watchers[-1] if _here.watchers else None


def captured() -> bool:
    """Whether anybody looks at more than attention to the source."""
    return any(seen.names is not None for seen in _here.watchers)


def captures(part: nn.Module) -> list[Seen]:
    """Those who look at a module."""
    return [seen for seen in _here.watchers if seen.names and id(part) in seen.names]


def look(
    part: nn.Module | None, weights: Callable[[], Tensor], at: Literal["source", "itself"]
) -> None:
    """An attention shows its map (k*B, H, T, S).

    part: None where there is no module, so that it has no name.
    """
    if not _here.watchers:
        return
    named = [] if part is None else captures(part)
    nameless = [seen for seen in _here.watchers if seen.names is None and at == "source"]
    if not named and not nameless:
        return
    found = weights()
    for seen in named:
        assert seen.names is not None
        name = seen.names[id(part)]
        seen.attention.add(name, found)
        seen.real.add(name, _here.real)
    if at == "source":
        for seen in (*named, *nameless):
            seen.cross.append(found)


def show(part: nn.Module, x: Tensor, gates: Callable[[], dict[str, Tensor]] | None = None) -> None:
    """A layer shows what it gives, (k*B, T, D), and its gates where it has any."""
    found = captures(part) if _here.watchers else []
    if not found:
        return
    opened = {} if gates is None else {name: _turned_back(g) for name, g in gates().items()}
    for seen in found:
        assert seen.names is not None
        seen.hidden.add(seen.names[id(part)], _turned_back(x))
        if opened:
            seen.gates.add(seen.names[id(part)], opened)


def entered(part: nn.Module, x: Tensor) -> Tensor:
    """The vectors of symbols (B, T, D) as they go in: with a gradient if somebody looks."""
    found = captures(part) if _here.watchers else []
    if found and torch.is_grad_enabled() and not x.requires_grad:
        x = x.detach().requires_grad_()
    for seen in found:
        assert seen.names is not None
        seen.inputs.add(seen.names[id(part)], x)
    return x


def _turned_back(x: Tensor) -> Tensor:
    """(B, T, D) in the order of the symbols, where they were turned round."""
    places = _here.places
    return x if places is None else x.gather(1, places.expand_as(x))


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Within, what is shown of one symbol after the other becomes one view of them all."""
    before = [(seen, seen.counts()) for seen in _here.watchers]
    yield
    for seen, counts in before:
        seen.join(counts)


@contextlib.contextmanager
def reading(real: Tensor) -> Iterator[None]:
    """Within, rows of attention are those of symbols of which these (B, T) are no padding."""
    before, _here.real = _here.real, real
    try:
        yield
    finally:
        _here.real = before


@contextlib.contextmanager
def turned(places: Tensor) -> Iterator[None]:
    """Within, rows are turned round by these places (B, T, 1); layers show them in order."""
    before, _here.places = _here.places, places
    try:
        yield
    finally:
        _here.places = before
