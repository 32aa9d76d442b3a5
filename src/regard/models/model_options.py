"""Base classes of model options, and their defaults.

A side of a model is its encoder or its decoder. A side is sized if all its options but dropout
are set.
"""

from collections.abc import Iterator
from typing import Any

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options, kinds_of


class ModelOptions(Options):
    """Base class of model options."""

    @property
    def sides(self) -> dict[str, Any]:
        """Return the options of the encoder and the decoder, if any."""
        return {name: part for name, part in self if name in ("encoder", "decoder")}

    def describe(self) -> list[dict[str, Any]]:
        """Return the kind and sizes of each side, for JSON."""
        return [part.describe(name) for name, part in self.sides.items()]

    @property
    def is_sized(self) -> bool:
        """Return whether all options of the sides, except dropout, are set."""
        return not any(
            part.is_auto or any(value is None for name, value in part if name != "dropout")
            for part in self.sides.values()
        )

    def shared_width(self, side: Any, stats: DataStats) -> int:
        """Return the width of a side, of the other side if that is unset, or the default."""
        widths = [part.width for part in (side, *self.sides.values()) if part.width]
        return widths[0] if widths else self.default_width(stats)

    def weights(self, stats: DataStats) -> int:
        """Return the approximate number of weights. The sides must be sized."""
        sides = list(self.sides.values())
        count = sum(12 * getattr(part, "layers", 1) * part.width**2 for part in sides)
        return count + (stats.outputs * sides[-1].width if sides else 1)

    def is_convex(self, stats: DataStats) -> bool:
        """Return whether the loss is convex, so that large steps find the optimum."""
        return bool(stats.vectors) and all(part.linear for part in self.sides.values())

    def closed_form(self, stats: DataStats, objective: Any) -> bool:
        """Return whether there is a closed-form solution for the objective."""
        return self.is_convex(stats) and objective.least_squares

    def default_kind(self, stats: DataStats) -> tuple[str, str]:
        """Return the default kind of network for the data, and the reason."""
        if stats.subwords:
            return "transformer", "sentences of words and subwords"
        return "recurrent", "short character sequences: an LSTM converges faster"

    def default_width(self, stats: DataStats) -> int:
        """Return the default width, which grows with the data."""
        if stats.subwords:
            return 192 if stats.tokens < 5_000_000 else 256 if stats.tokens < 50_000_000 else 512
        return 256 if stats.is_large else 128

    def default_dropout(self, stats: DataStats, passes: float) -> float:
        """Return the default dropout, which grows with the number of epochs (`passes`)."""
        return 0.0 if passes < 4.5 else 0.1 if passes < 15 else 0.2 if passes < 40 else 0.3

    def default_batch_tokens(self, stats: DataStats) -> int:
        """Return the default batch size in tokens, which leaves enough updates per epoch."""
        return 4096 if stats.tokens >= 5_000_000 else 800 if stats.is_large else 512

    def default_lr(self, stats: DataStats) -> float:
        """Return the default peak learning rate of AdamW.

        It is twice as high for gated cells on large data with small vocabularies.
        """
        gated = all(part.gated for part in self.sides.values())
        return 4e-3 if stats.has_few_tokens and gated else 2e-3

    def default_epochs(self, stats: DataStats) -> float | None:
        """Return the default number of epochs if the model overfits quickly, otherwise None."""
        return None

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield a kind for each side without one: that of the other side, or the default."""
        named = [part.kind for part in self.sides.values() if not part.is_auto]
        for side, part in self.sides.items():
            if part.is_auto:
                kind, reason = self.default_kind(stats)
                if named and named[0] in kinds_of(type(self).model_fields[side].annotation):
                    kind, reason = named[0], "same kind as the other side"
                yield AutoSetting(f"{side}.kind", kind, reason)


class TextModelOptions(ModelOptions):
    """Base class of language model options."""

    def default_width(self, stats: DataStats) -> int:
        return 256

    def default_batch_tokens(self, stats: DataStats) -> int:
        return 1024

    def default_lr(self, stats: DataStats) -> float:
        """Return the default peak learning rate, which is twice as high for recurrent models."""
        return 4e-3 if all(part.recurrent for part in self.sides.values()) else 2e-3
