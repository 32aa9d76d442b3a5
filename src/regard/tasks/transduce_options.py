"""The options of transduction: how both sides are read and cut."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from regard.data.read import Pair
from regard.data.vocabulary import Vocabulary, build_vocabulary, load_vocabulary
from regard.errors import UserError
from regard.files import read_facts
from regard.tasks.base import Choice, Task, TaskOptions
from regard.tasks.symbols import SideOptions, choose_sides
from regard.tasks.texts import read_like
from regard.tasks.transduce import Transduce

Metric = Literal["exact", "ser", "cer", "wer", "bleu", "chrf", "bleu_d2l", "perplexity"]


class TransduceOptions(TaskOptions):
    """A sequence in, a sequence out."""

    kind: Literal["transduce"] = "transduce"
    source: SideOptions = SideOptions()
    target: SideOptions = SideOptions()
    shared: bool | None = Field(None, description="one subword vocabulary for both sides")
    max_length: int | None = Field(
        None, gt=0, description="longer examples (symbols, either side) are left out of training"
    )
    metric: Metric | None = Field(None, description="the measure that picks the best model")

    def usable(
        self, pairs: Sequence[Pair], task: Task | None = None
    ) -> tuple[list[Pair], list[str]]:
        """The pairs that can be trained on, and a line for each reason others cannot."""
        kept = [pair for pair in pairs if not pair.empty()]
        notes = []
        if len(kept) < len(pairs):
            notes.append(
                f"{len(pairs) - len(kept):,} pairs with an empty side are left out of training"
            )
        limit = self.max_length
        if limit is not None and task is not None:
            lengths = task.corpus(kept).lengths.max(1) - 1
            short = [pair for pair, length in zip(kept, lengths, strict=True) if length <= limit]
            if len(short) < len(kept):
                notes.append(
                    f"{len(kept) - len(short):,} pairs longer than task.max_length={limit} symbols "
                    "are left out of training"
                )
            kept = short
        if not kept:
            long = f" or is longer than task.max_length={limit}" if limit else ""
            raise UserError(f"no example is left to train on: every pair has an empty side{long}")
        return kept, notes

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["Transduce", "TransduceOptions", list[Choice]]:
        """The task for these pairs, the options with nothing left open, what was chosen and why."""
        chosen: list[Choice] = []
        if like is not None:
            return self._fit_like(pairs, like)
        options = self._filled(pairs, chosen)
        sources, targets = [p.source for p in pairs], [p.target for p in pairs]
        texts = sources + targets if options.shared else sources
        source = build_vocabulary(options.source.symbols, texts, options.source.size)
        target = source
        if not options.shared:
            target = build_vocabulary(options.target.symbols, targets, options.target.size)
        return _measured(source, target, options, pairs), options, chosen

    def _filled(self, pairs: Sequence[Pair], chosen: list[Choice]) -> "TransduceOptions":
        """The options with nothing left open."""
        tree = self.model_dump()
        choose_sides(tree, pairs, chosen)
        return TransduceOptions.model_validate(tree)

    def _fit_like(
        self, pairs: Sequence[Pair], like: Task
    ) -> tuple["Transduce", "TransduceOptions", list[Choice]]:
        """The task with the vocabularies of another one, as far as it has them."""
        source, _ = read_like(like, self.source.symbols)
        tree = self.model_dump()
        tree["source"] = {"symbols": source.kind, "size": None}
        if isinstance(like, Transduce):
            target = like.target
            tree |= {"target": {"symbols": target.kind, "size": None}}
            tree["shared"] = source is target
            tree["metric"] = self.metric or like.metric
            options = TransduceOptions.model_validate(tree)
            return _measured(source, target, options, pairs), options, []
        chosen: list[Choice] = []
        tree["shared"] = False
        options = TransduceOptions.model_validate(tree)._filled(pairs, chosen)
        targets = [pair.target for pair in pairs]
        target = build_vocabulary(options.target.symbols, targets, options.target.size)
        return _measured(source, target, options, pairs), options, chosen

    def load(self, folder: Path) -> "Transduce":
        """The task that `Transduce.save` wrote into a run folder."""
        place = folder / "vocabulary"
        shared, metric, ratio = read_facts(place / "task.json", "shared", "metric", "ratio")
        source = load_vocabulary(place, "source")
        target = source if shared else load_vocabulary(place, "target")
        return Transduce(source, target, metric, ratio, self.max_length)


def _measured(
    source: Vocabulary, target: Vocabulary, options: TransduceOptions, pairs: Sequence[Pair]
) -> "Transduce":
    """The task of these vocabularies, which knows how long outputs may be."""
    assert options.metric is not None
    task = Transduce(source, target, options.metric, 1.0, options.max_length)
    lengths = task.corpus(pairs).lengths  # (N, 2)
    task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
    return task
