"""What the options of all models promise, and which defaults suit them."""

from collections.abc import Iterator
from typing import Any

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options, kinds_of


class ModelOptions(Options):
    """What the options of all models can do."""

    @property
    def sides(self) -> dict[str, Any]:
        """The options of its encoder and decoder, as far as it has them."""
        return {name: part for name, part in self if name in ("encoder", "decoder")}

    def describe(self) -> list[dict[str, Any]]:
        """Return what its parts are, each with its kind and sizes, ready for JSON."""
        return [part.describe(name) for name, part in self.sides.items()]

    @property
    def is_sized(self) -> bool:
        """Whether nothing of its sides is open but dropout."""
        return not any(
            part.is_auto or any(value is None for name, value in part if name != "dropout")
            for part in self.sides.values()
        )

    def width_of(self, side: Any, stats: DataStats) -> int:
        """The width of a side: as given, or that of the other side, or what suits the data."""
        widths = [part.width for part in (side, *self.sides.values()) if part.width]
        return widths[0] if widths else self.usual_width(stats)

    def weights(self, stats: DataStats) -> int:
        """How many weights it has, about; its sides must be sized."""
        sides = list(self.sides.values())
        count = sum(12 * getattr(part, "layers", 1) * part.width**2 for part in sides)
        return count + (stats.outputs * sides[-1].width if sides else 1)

    def is_convex(self, stats: DataStats) -> bool:
        """Whether it has a single best answer, which large steps find."""
        return bool(stats.vectors) and all(part.linear for part in self.sides.values())

    def closed_form(self, stats: DataStats, objective: Any) -> bool:
        """Whether its best weights for an objective are given by a formula."""
        return self.is_convex(stats) and objective.least_squares

    def usual_kind(self, stats: DataStats) -> tuple[str, str]:
        """The kind of network that suits the data, and why."""
        if stats.subwords:
            return "transformer", "sentences of words and subwords"
        return "recurrent", "short strings of letters, which an LSTM learns sooner"

    def usual_width(self, stats: DataStats) -> int:
        """Larger data, wider vectors."""
        if stats.subwords:
            return 192 if stats.tokens < 5_000_000 else 256 if stats.tokens < 50_000_000 else 512
        return 256 if stats.is_large else 128

    def usual_dropout(self, stats: DataStats, passes: float) -> float:
        """More where the data is seen often; none where time allows few passes."""
        return 0.0 if passes < 4.5 else 0.1 if passes < 15 else 0.2 if passes < 40 else 0.3

    def usual_tokens(self, stats: DataStats) -> int:
        """Batches that leave enough updates in an epoch."""
        return 4096 if stats.tokens >= 5_000_000 else 800 if stats.is_large else 512

    def usual_lr(self, stats: DataStats) -> float:
        """The highest learning rate for AdamW; gates over characters bear twice as much."""
        gated = all(part.gated for part in self.sides.values())
        return 4e-3 if stats.has_few_tokens and gated else 2e-3

    def few_epochs(self, stats: DataStats) -> float | None:
        """Passes over data that is soon known by heart; None: it is not."""
        return None

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Kinds that are open: as the other side where that is given, else what suits the data."""
        named = [part.kind for part in self.sides.values() if not part.is_auto]
        for side, part in self.sides.items():
            if part.is_auto:
                kind, reason = self.usual_kind(stats)
                if named and named[0] in kinds_of(type(self).model_fields[side].annotation):
                    kind, reason = named[0], "the kind of the other side"
                yield AutoSetting(f"{side}.kind", kind, reason)


class TextModelOptions(ModelOptions):
    """What the options of all language models can do."""

    def usual_width(self, stats: DataStats) -> int:
        return 256

    def usual_tokens(self, stats: DataStats) -> int:
        return 1024

    def usual_lr(self, stats: DataStats) -> float:
        """Recurrent ones bear twice as much."""
        return 4e-3 if all(part.recurrent for part in self.sides.values()) else 2e-3
