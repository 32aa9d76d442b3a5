"""The options of transduction: how both sides are read and cut."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sentencepiece
from pydantic import Field, model_validator

from regard.core.cache import cached, make_key
from regard.core.errors import UserError
from regard.core.files import read_fields
from regard.core.options import AutoSetting
from regard.data.checks.column import side_texts
from regard.data.reading.read import Pair, Pairs, split_dev
from regard.data.sources.large import (
    LargePairs,
    PairSubset,
    large_base,
    nonempty_pairs,
    select_pairs,
)
from regard.data.sources.open import DataSpec
from regard.data.sources.open_large import split_large
from regard.data.tokenizers.build import build_tokenizer, load_tokenizer
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs import Inputs, fit_input
from regard.inputs.input import Input
from regard.inputs.text import Text, TextInput, text_like
from regard.inputs.tokenizers import SideOptions, choose_sides, choose_target
from regard.tasks.task import Task
from regard.tasks.task_options import TaskOptions
from regard.tasks.transduce import TransduceTask

Metric = Literal["exact_match", "ser", "cer", "wer", "bleu", "chrf", "short_bleu", "perplexity"]


class TransduceOptions(TaskOptions):
    """A sequence in, a sequence out."""

    kind: Literal["transduce"] = "transduce"
    source: Inputs = Field(Text(), description="input type and tokenizer")
    target: SideOptions = SideOptions()
    shared_vocab: bool | None = Field(None, description="one subword vocabulary for both sides")
    max_length: int | None = Field(
        None, gt=0, description="skip longer examples in training (tokens, either side)"
    )
    metric: Metric | None = Field(None, description="metric that selects the best checkpoint")

    @model_validator(mode="after")
    def _case_counts(self) -> "TransduceOptions":
        if getattr(self.source, "lowercase", False):
            raise ValueError("source.lowercase: only for classification and regression")
        return self

    def read(self, place: DataSpec) -> Pairs:
        """The pairs of a file or of two; large ones stay where they are."""
        return place.read_large() or place.read()

    def hold_out(self, pairs: Sequence[Pair]) -> tuple[Sequence[Pair], list[Pair]]:
        """Train and dev parts of pairs that came without a dev part."""
        return split_large(pairs) if isinstance(pairs, LargePairs) else split_dev(list(pairs))

    def trainable(
        self, pairs: Sequence[Pair], task: Any = None
    ) -> tuple[Sequence[Pair], list[str]]:
        """The pairs that can be trained on, and a line for each reason others cannot."""
        kept = nonempty_pairs(pairs)
        notes = []
        if len(kept) < len(pairs):
            notes.append(
                f"{len(pairs) - len(kept):,} pairs with an empty side are left out of training"
            )
        limit = self.max_length
        if limit is not None and task is not None:
            short = select_pairs(kept, task.lengths(kept).max(1) <= limit)
            if len(short) < len(kept):
                notes.append(
                    f"{len(kept) - len(short):,} pairs longer than task.max_length={limit} tokens "
                    "are left out of training"
                )
            kept = short
        if not kept:
            long = f" or is longer than task.max_length={limit}" if limit else ""
            raise UserError(f"no example is left to train on: every pair has an empty side{long}")
        return kept, notes

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """The task for these pairs, the options with nothing left open, what was chosen and why."""
        if like is not None:
            return self._fit_like(pairs, like)
        if isinstance(pairs, PairSubset) and large_base(pairs) is not None:
            return self._fit_once(pairs)
        return self._fit(pairs)

    def _fit_once(
        self, pairs: PairSubset
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """The task for large pairs, which a second run finds in the cache."""

        def build(folder: Path) -> dict[str, Any]:
            task, options, auto_settings = self._fit(pairs)
            task.save(folder)
            return {"options": options.model_dump(), "auto": [asdict(one) for one in auto_settings]}

        key = make_key(pairs.key, self.model_dump(), sentencepiece.__version__)
        folder, facts = cached("tasks", key, build)
        options = TransduceOptions.model_validate(facts["options"])
        return options.load(folder), options, [AutoSetting(**one) for one in facts["auto"]]

    def _fit(
        self, pairs: Sequence[Pair]
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """The task for these pairs, with vocabularies of its own."""
        auto_settings: list[AutoSetting] = []
        if not self.source.joint or not self.source.accepts(pairs[0].source):
            return self._fit_target(pairs, auto_settings)
        options = self._filled(pairs, auto_settings)
        assert isinstance(options.source, Text)
        sides = ("source", "target") if options.shared_vocab else ("source",)
        texts = side_texts(pairs, *sides)
        source = build_tokenizer(options.source.tokenizer, texts, options.source.vocab_size)
        target = source if options.shared_vocab else options.target_tokenizer(pairs)
        return _measured(_read(source), target, options, pairs), options, auto_settings

    def _fit_target(
        self, pairs: Sequence[Pair], auto_settings: list[AutoSetting]
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """The task for sources that are no texts."""
        tree, sources = self.model_dump(), [pair.source for pair in pairs]
        source, section = fit_input(self.source, sources, "task.source", auto_settings)
        tree["source"] = section.model_dump()
        choose_target(tree, side_texts(pairs, "target"), auto_settings)
        options = TransduceOptions.model_validate(tree)
        return (
            _measured(source, options.target_tokenizer(pairs), options, pairs),
            options,
            auto_settings,
        )

    def target_tokenizer(self, pairs: Sequence[Pair]) -> Tokenizer:
        """The vocabulary of the targets of these pairs."""
        return build_tokenizer(
            self.target.tokenizer, side_texts(pairs, "target"), self.target.vocab_size
        )

    def _filled(
        self, pairs: Sequence[Pair], auto_settings: list[AutoSetting]
    ) -> "TransduceOptions":
        """The options with nothing left open."""
        tree = self.model_dump()
        tree["source"]["lowercase"] = False
        choose_sides(tree, pairs, auto_settings)
        return TransduceOptions.model_validate(tree)

    def _fit_like(
        self, pairs: Sequence[Pair], like: Any
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """The task with the vocabularies of another one, as far as it has them."""
        assert isinstance(self.source, Text)
        source = text_like(like.source, self.source.tokenizer).tokenizer
        tree = self.model_dump()
        tree["source"] = Text(tokenizer=source.kind, lowercase=False).model_dump()
        if like.kind == self.kind:
            target = like.target
            tree |= {"target": {"tokenizer": target.kind, "vocab_size": None}}
            tree["shared_vocab"] = like.shared
            tree["metric"] = self.metric or like.metric
            options = TransduceOptions.model_validate(tree)
            return _measured(_read(source), target, options, pairs), options, []
        auto_settings: list[AutoSetting] = []
        tree["shared_vocab"] = False
        options = TransduceOptions.model_validate(tree)._filled(pairs, auto_settings)
        target = options.target_tokenizer(pairs)
        return _measured(_read(source), target, options, pairs), options, auto_settings

    def load(self, folder: Path) -> "TransduceTask":
        """The task that `TransduceTask.save` wrote into a run folder."""
        place = folder / "vocabulary"
        shared, metric, ratio = read_fields(place / "task.json", "shared", "metric", "ratio")
        source = self.source.load(place)
        own = getattr(source, "tokenizer", None)
        target = own if shared and own is not None else load_tokenizer(place, "target")
        return TransduceTask(
            source, target, metric, ratio, self.max_length, bool(self.shared_vocab)
        )


def _read(tokenizer: Tokenizer) -> TextInput:
    """How texts of this vocabulary are read."""
    return TextInput(tokenizer, lowercase=False, opened=False)


def _measured(
    source: Input, target: Tokenizer, options: TransduceOptions, pairs: Sequence[Pair]
) -> "TransduceTask":
    """The task of these sides, which knows how long outputs may be."""
    assert options.metric is not None
    shared = bool(options.shared_vocab)
    task = TransduceTask(source, target, options.metric, 1.0, options.max_length, shared)
    lengths = task.lengths(pairs) + 1.0  # (N, 2), with EOS
    task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
    return task
