"""Maximum sequence lengths of models, for example with learned positions.

A side of a model is its encoder or its decoder.
"""

from torch import nn

from regard.data.corpus.corpora import Corpus
from regard.inputs.frontend import Frontend
from regard.nn.positions.learned import too_long

SIDES = ("encoder", "decoder")


def max_length(model: nn.Module, side: str) -> int | None:
    """Return the maximum length of a side of a model or ensemble, EOS included, or None."""
    members = getattr(model, "models", [model])
    lengths = [getattr(getattr(one, side, None), "length", None) for one in members]
    if side == "encoder":
        lengths += map(_cross_length, members)
    return min((length for length in lengths if length is not None), default=None)


def _cross_length(model: nn.Module) -> int | None:
    """Return the maximum length of a source that the decoder of a model attends to, or None."""
    return getattr(getattr(model, "decoder", None), "source_length", None)


def limiting_section(model: nn.Module, side: str) -> str:
    """Return the section of the settings that limits the length of a side of a model."""
    first = getattr(model, "models", [model])[0]
    limit = _cross_length(first)
    if side == "encoder" and limit is not None and limit == max_length(first, side):
        return "model.decoder.cross"
    return f"model.{side}.{getattr(getattr(first, side, None), 'limited_by', 'positions')}"


def check_length(model: nn.Module, side: str, length: int) -> None:
    """Raise UserError if a sequence of this length is too long for a side of a model."""
    limit = max_length(model, side)
    if limit is not None and length > limit:
        raise too_long(length, limit, limiting_section(model, side))


def has_max_length(model: nn.Module) -> bool:
    """Return whether a side of a model has a maximum length."""
    return any(max_length(model, side) is not None for side in SIDES)


def check_corpus_lengths(model: nn.Module, corpus: Corpus) -> None:
    """Raise UserError if an example is too long for a model."""
    if has_max_length(model):
        sides = [side for side in SIDES if hasattr(model, side)]
        frontend = getattr(model, "frontend", None)
        for side, length in zip(sides, corpus.longest(), strict=False):
            if side == "encoder" and isinstance(frontend, Frontend):
                length = frontend.max_vectors(length)
            check_length(model, side, length)
