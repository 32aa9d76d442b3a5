"""How long sequences may be, for models whose positions are learned."""

from torch import nn

from regard.data.corpus.corpora import Corpus
from regard.nn.positions import too_long

SIDES = ("encoder", "decoder")


def places(model: nn.Module, side: str) -> int | None:
    """The most tokens that a side of a model, or of each of several that answer together, can
    read, their end included; None: any number."""
    members = getattr(model, "models", [model])
    found = [getattr(getattr(one, side, None), "length", None) for one in members]
    return min((length for length in found if length is not None), default=None)


def refuse_longer(model: nn.Module, side: str, length: int) -> None:
    """Refuses a sequence that is longer than a side can read, before anything is computed."""
    limit = places(model, side)
    if limit is not None and length > limit:
        raise too_long(length, limit, f"model.{side}.positions")


def limited(model: nn.Module) -> bool:
    """Whether some sequences are too long for a model."""
    return any(places(model, side) is not None for side in SIDES)


def refuse_long_corpus(model: nn.Module, corpus: Corpus) -> None:
    """Refuses examples that are longer than a model can read, before any training."""
    if limited(model):
        sides = [side for side in SIDES if hasattr(model, side)]
        for side, length in zip(sides, corpus.longest(), strict=False):
            refuse_longer(model, side, length)
