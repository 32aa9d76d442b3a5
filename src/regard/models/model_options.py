"""Base classes of model options, and their defaults.

A side of a model is its encoder or its decoder. A side is sized if all its options but dropout
are set.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch

from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options, kinds_of
from regard.data.corpus.corpora import Corpus

MIN_HALF_WIDTH = 160  # width from which training in bfloat16 is faster
MIN_HALF_GAIN = 1.6  # of matrix products, below which bfloat16 does not pay
WIDTHS = (128, 192, 256, 384, 512, 768, 1024)
MIN_ROWS = 20  # mean number of rows per batch, as far as MAX_LONG_BATCH allows
MAX_LONG_BATCH = 2048  # tokens
SHORT = 45  # seconds; shorter budgets have smaller batches, for more updates
MIN_EPOCHS = 20
MIN_UPDATES, MANY_EPOCHS = 2_000, 100  # also of a wide model: one of the two
# A budget of s seconds should allow this many examples times sqrt(s):
MIN_EXAMPLES = 24_000  # of characters
MIN_SENTENCES, MIN_SENTENCES_RECURRENT = 6_000, 12_000
# At most, for characters and for subwords:
WEIGHTS_PER_TOKEN = {False: 6, True: 4}
MIN_LIMIT = {False: 2_000_000, True: 0}  # weights


class ModelOptions(Options):
    """Base class of model options.

    derived: settings that follow from other sections, so that runs do not inherit them.
    """

    gives: ClassVar[str] = "labels"
    derived: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield settings that complete the given ones, and the output of a model with them."""
        yield {}, cls.gives

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
        """Return the approximate number of weights without embeddings. Sides must be sized."""
        inner = sum(part.weights_for(stats) for part in self.sides.values())
        return inner + self._output_weights(stats)

    def products(self, stats: DataStats) -> int:
        """Return the approximate number of multiply-adds of one forward pass over the data."""
        targets = stats.target_tokens or stats.tokens // len(self.sides or [1])
        sources = stats.tokens if len(self.sides) < 2 else stats.tokens - targets
        tokens = {"encoder": sources, "decoder": targets}
        inner = sum(part.weights_for(stats) * tokens[side] for side, part in self.sides.items())
        return inner + self._output_weights(stats) * targets or 1

    def _output_weights(self, stats: DataStats) -> int:
        """Return the number of weights of the output layer."""
        return stats.outputs * [1, *(part.width for part in self.sides.values())][-1]

    def trains_in_bfloat16(self, stats: DataStats) -> bool:
        """Return whether training in bfloat16 is faster. For small layers it is slower.

        Only with a budget: a run of a number of steps gives the same result on every machine.
        """
        narrowest = min((part.width or 0 for part in self.sides.values()), default=0)
        fast = stats.machine.half_gain >= MIN_HALF_GAIN
        wide = narrowest >= MIN_HALF_WIDTH
        return bool(stats.budget) and fast and wide and not torch.cuda.is_available()

    def own_default(self, name: str) -> Any:
        """Return a training default of a side, such as `default_lr`, or None."""
        found = [getattr(part, name, None) for part in self.sides.values()]
        return next((value for value in found if value is not None), None)

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

    def default_image_kinds(self, stats: DataStats) -> dict[str, tuple[str, str]]:
        """Return the default kind of sides that depend on images, if the sources are images."""
        return {"encoder": ("cnn", "images")} if any(stats.grid) else {}

    def default_width(self, stats: DataStats) -> int:
        """Return the default width, which grows with the data and the budget."""
        if stats.budget:
            limit = self.max_weights(stats)
            fitting = [width for width in WIDTHS if self._weights_at(width, stats) <= limit]
            return max(fitting, default=WIDTHS[0])
        if stats.subwords:
            return 192 if stats.tokens < 5_000_000 else 256 if stats.tokens < 50_000_000 else 512
        return 256 if stats.is_large else 128

    def max_weights(self, stats: DataStats) -> float:
        """Return how many weights suit the budget and the data.

        The budget should allow a number of epochs or, if the data is too large for that, of
        examples, and enough updates. Larger models would only memorize the data.
        """
        recurrent = all(part.recurrent for part in self.sides.values())
        rate = MIN_EXAMPLES
        if stats.subwords:
            rate = MIN_SENTENCES_RECURRENT if recurrent else MIN_SENTENCES
        epochs = min(MIN_EPOCHS, rate * stats.budget**0.5 / stats.examples)
        batch = self.default_batch_tokens(stats)
        per_epoch = max(1.0, stats.tokens / (len(self.sides) * batch))
        updates = max(epochs * per_epoch, min(MIN_UPDATES, MANY_EPOCHS * per_epoch))
        seconds = stats.budget / updates
        is_half = stats.machine.half_gain >= MIN_HALF_GAIN
        allowed = stats.machine.products(seconds, is_half) / batch
        limit = max(MIN_LIMIT[stats.subwords], WEIGHTS_PER_TOKEN[stats.subwords] * stats.tokens)
        return min(allowed, limit)

    def updates_at(self, width: int, stats: DataStats) -> float:
        """Return about how many updates of a model of this width the budget allows."""
        products = self._weights_at(width, stats) * self.default_batch_tokens(stats)
        is_half = stats.machine.half_gain >= MIN_HALF_GAIN and width >= MIN_HALF_WIDTH
        return stats.budget / stats.machine.seconds(products, is_half)

    def _weights_at(self, width: int, stats: DataStats) -> int:
        """Return the approximate number of weights of a model of this width."""
        sized = {}
        for side, part in self.sides.items():
            sizes = part.default_sizes(stats, width)
            unset = {name: sizes[name] for name in sizes if getattr(part, name) is None}
            sized[side] = part.model_copy(update=unset)
        return self.model_copy(update=sized).weights(stats)

    def default_dropout(self, stats: DataStats, passes: float) -> float:
        """Return the default dropout, which grows with the number of epochs (`passes`)."""
        return 0.0 if passes < 9 else 0.1 if passes < 20 else 0.2 if passes < 35 else 0.3

    def default_batch_tokens(self, stats: DataStats) -> int:
        """Return the default batch size in tokens, which leaves enough updates.

        Batches have enough rows to divide them among threads.
        """
        size = 4096 if stats.tokens >= 5_000_000 else 800 if stats.is_large else 512
        if stats.budget and stats.budget < SHORT:
            size = min(size, 512 if stats.subwords else 256)
        longest = max(stats.target_tokens, stats.tokens - stats.target_tokens)
        rows = round(MIN_ROWS * longest / max(1, stats.examples))
        return max(size, min(rows, MAX_LONG_BATCH))

    def default_lr(self, stats: DataStats) -> float:
        """Return the default peak learning rate of AdamW, higher for gated cells.

        Narrow networks allow higher rates. So does large data with small vocabularies.
        """
        if not all(part.gated for part in self.sides.values()):
            return 2e-3
        widest = max((part.width for part in self.sides.values()), default=1)
        full_width = 256 if stats.has_few_tokens else 192 if stats.subwords else 128
        return max(2e-3, 4e-3 * min(1.0, full_width / widest))

    def default_warmup(self, lr: float) -> float:
        """Return the default warmup, as a fraction of the run or a number of updates."""
        longest = max((part.default_warmup for part in self.sides.values()), default=0.05)
        return longest if longest < 1 else round(longest * max(1.0, lr / 2e-3))

    def default_epochs(self, stats: DataStats) -> float | None:
        """Return the default number of epochs if the model overfits quickly, otherwise None."""
        return None

    def unfit(self, corpus: Corpus, source: str) -> tuple[np.ndarray, str] | None:
        """Return which examples (N,) the model cannot learn, and why; None: it can learn all.

        source: kind of input.
        """
        return None

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield a kind for each side without one: that of the other side, or the default."""
        named = [part.kind for part in self.sides.values() if not part.is_auto]
        for side, part in self.sides.items():
            if part.is_auto:
                kind, reason = self.default_kind(stats)
                if named and named[0] in kinds_of(type(self).model_fields[side].annotation):
                    kind, reason = named[0], "same kind as the other side"
                kind, reason = self.default_image_kinds(stats).get(side, (kind, reason))
                yield AutoSetting(f"{side}.kind", kind, reason)


class TextModelOptions(ModelOptions):
    """Base class of language model options."""

    def default_width(self, stats: DataStats) -> int:
        return max(256, super().default_width(stats)) if stats.budget else 256

    def default_batch_tokens(self, stats: DataStats) -> int:
        return 1024

    def default_lr(self, stats: DataStats) -> float:
        """Return the default peak learning rate, which is twice as high for recurrent models."""
        return 4e-3 if all(part.recurrent for part in self.sides.values()) else 2e-3
