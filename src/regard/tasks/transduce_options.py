"""Options of transduction: how sources and targets are read and tokenized."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

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
from regard.data.sources.media import Targets, as_texts, read_media, with_hint
from regard.data.sources.open import DataSpec
from regard.data.sources.open_large import split_large
from regard.data.tokenizers.build import build_tokenizer, load_tokenizer
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inputs import Inputs, fit_input
from regard.inputs.input import Input
from regard.inputs.text import Text, TextInput, text_like
from regard.inputs.tokenizers import (
    SideOptions,
    check_form,
    choose_sides,
    choose_target,
    tokenizer_settings,
)
from regard.tasks.task import Task
from regard.tasks.task_options import TaskOptions
from regard.tasks.transduce import TransduceTask

MAX_RATIO = 100_000  # output tokens per source token
Ratio = Annotated[float, Field(gt=0, le=MAX_RATIO)]
Metric = Literal["exact_match", "ser", "cer", "wer", "bleu", "chrf", "short_bleu", "perplexity"]


class TransduceOptions(TaskOptions):
    """Options of transduction (sequence-to-sequence)."""

    kind: Literal["transduce"] = "transduce"
    source: Inputs = Field(Text(), description="input type and tokenizer")
    target: SideOptions = SideOptions()
    shared_vocab: bool | None = Field(None, description="one subword vocabulary for both sides")
    max_length: int | None = Field(
        None,
        gt=0,
        description="maximum tokens of source and target; longer training examples are skipped",
    )
    metric: Metric | None = Field(None, description="metric that selects the best checkpoint")

    @model_validator(mode="after")
    def _check_case(self) -> "TransduceOptions":
        if getattr(self.source, "lowercase", False):
            raise ValueError("source.lowercase: only supported for tasks classify and regress")
        return self

    def read(self, spec: DataSpec) -> Pairs:
        """Return the pairs of one or two files. Large files of texts are not loaded into memory."""
        spec.check_known()
        targets = Targets("texts", DataSpec.read, as_texts)
        if (media := read_media(spec, targets, self.source.prepare)) is not None:
            return media
        return spec.read_large() or with_hint(spec, spec.read())

    def hold_out(self, pairs: Sequence[Pair]) -> tuple[Sequence[Pair], list[Pair]]:
        """Split the pairs into a training set and a dev set."""
        return split_large(pairs) if isinstance(pairs, LargePairs) else split_dev(list(pairs))

    def trainable(
        self, pairs: Sequence[Pair], task: Any = None
    ) -> tuple[Sequence[Pair], list[str]]:
        """Return the pairs to train on, and one message per reason for skipped pairs."""
        kept = nonempty_pairs(pairs)
        notes = []
        if len(kept) < len(pairs):
            notes.append(
                f"skipped: {len(pairs) - len(kept):,} pairs with an empty source or target"
            )
        limit = self.max_length
        if limit is not None and task is not None:
            short = select_pairs(kept, task.lengths(kept).max(1) <= limit)
            if len(short) < len(kept):
                notes.append(
                    f"skipped: {len(kept) - len(short):,} pairs longer than {limit} tokens "
                    "(task.max_length)"
                )
            kept = short
        if not kept:
            long = f" or is longer than task.max_length={limit}" if limit else ""
            raise UserError(f"no pairs to train on: all have an empty side{long}")
        return kept, notes

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """Fit the task to pairs. Return the task, complete options and automatic settings."""
        if like is not None:
            return self._fit_like(pairs, like)
        if isinstance(pairs, PairSubset) and large_base(pairs) is not None:
            return self._fit_once(pairs)
        return self._fit(pairs)

    def _fit_once(
        self, pairs: PairSubset
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """Fit the task to pairs of a large file, or load it from the cache."""

        def build(folder: Path) -> dict[str, Any]:
            task, options, auto_settings = self._fit(pairs)
            task.save(folder)
            return {"options": options.model_dump(), "auto": [asdict(one) for one in auto_settings]}

        key = make_key(pairs.key, self.model_dump(), sentencepiece.__version__)
        folder, record = cached("tasks", key, build)
        options = TransduceOptions.model_validate(record["options"])
        return options.load(folder), options, [AutoSetting(**one) for one in record["auto"]]

    def _fit(
        self, pairs: Sequence[Pair]
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """Fit the task to pairs, with new vocabularies."""
        auto_settings: list[AutoSetting] = []
        if not self.source.joint or not self.source.accepts(pairs[0].source):
            return self._fit_target(pairs, auto_settings)
        options = self._filled(pairs, auto_settings)
        assert isinstance(options.source, Text)
        sides = ("source", "target") if options.shared_vocab else ("source",)
        texts = side_texts(pairs, *sides)
        source = build_tokenizer(
            options.source.tokenizer,
            texts,
            options.source.vocab_size,
            options.source.normalization,
        )
        target = source if options.shared_vocab else options.target_tokenizer(pairs)
        return (
            _with_length_ratio(_text_input(source), target, options, pairs),
            options,
            auto_settings,
        )

    def _fit_target(
        self, pairs: Sequence[Pair], auto_settings: list[AutoSetting]
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """Fit the task to pairs whose sources are not texts."""
        tree, sources = self.model_dump(), [pair.source for pair in pairs]
        source, section = fit_input(self.source, sources, "task.source", auto_settings)
        tree["source"] = section.model_dump()
        choose_target(tree, side_texts(pairs, "target"), auto_settings)
        options = TransduceOptions.model_validate(tree)
        return (
            _with_length_ratio(source, options.target_tokenizer(pairs), options, pairs),
            options,
            auto_settings,
        )

    def target_tokenizer(self, pairs: Sequence[Pair]) -> Tokenizer:
        """Train a tokenizer on the targets of these pairs."""
        return build_tokenizer(
            self.target.tokenizer,
            side_texts(pairs, "target"),
            self.target.vocab_size,
            self.target.normalization,
        )

    def _filled(
        self, pairs: Sequence[Pair], auto_settings: list[AutoSetting]
    ) -> "TransduceOptions":
        """Return the options with automatic settings chosen from the pairs."""
        tree = self.model_dump()
        tree["source"]["lowercase"] = False
        choose_sides(tree, pairs, auto_settings)
        return TransduceOptions.model_validate(tree)

    def _fit_like(
        self, pairs: Sequence[Pair], like: Any
    ) -> tuple["TransduceTask", "TransduceOptions", list[AutoSetting]]:
        """Fit the task with the vocabularies of `like`, which may lack a target vocabulary."""
        if not self.source.joint or not self.source.accepts(pairs[0].source):
            raise UserError("--init-from: task transduce only supports models of texts")
        assert isinstance(self.source, Text)
        source = text_like(like.source, self.source).tokenizer
        tree = self.model_dump()
        tree["source"] = Text(**tokenizer_settings(source), lowercase=False).model_dump()
        if like.kind == self.kind:
            target = like.target
            check_form("task.target", self.target.normalization, target.normalization)
            tree["target"] = tokenizer_settings(target)
            tree["shared_vocab"] = like.shared
            tree["metric"] = self.metric or like.metric
            options = TransduceOptions.model_validate(tree)
            return _with_length_ratio(_text_input(source), target, options, pairs), options, []
        auto_settings: list[AutoSetting] = []
        tree["shared_vocab"] = False
        options = TransduceOptions.model_validate(tree)._filled(pairs, auto_settings)
        target = options.target_tokenizer(pairs)
        return (
            _with_length_ratio(_text_input(source), target, options, pairs),
            options,
            auto_settings,
        )

    def load(self, folder: Path) -> "TransduceTask":
        """Return the task that `TransduceTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        fields = {"shared": bool, "metric": Metric, "ratio": Ratio}
        shared, metric, ratio = read_fields(path / "task.json", **fields)
        source = self.source.load(path)
        source_tokenizer = getattr(source, "tokenizer", None)
        target = source_tokenizer if shared else None
        if target is None:
            target = load_tokenizer(path, "target")
        return TransduceTask(
            source, target, metric, ratio, self.max_length, bool(self.shared_vocab)
        )


def _text_input(tokenizer: Tokenizer) -> TextInput:
    """Return the text input with this tokenizer."""
    return TextInput(tokenizer, lowercase=False, add_bos=False)


def _with_length_ratio(
    source: Input, target: Tokenizer, options: TransduceOptions, pairs: Sequence[Pair]
) -> "TransduceTask":
    """Return the task, with `ratio` = 1.3 times the 99.9 % quantile of target / source length."""
    assert options.metric is not None
    shared = bool(options.shared_vocab)
    task = TransduceTask(source, target, options.metric, 1.0, options.max_length, shared)
    lengths = task.lengths(pairs) + 1.0  # (N, 2), with EOS
    task.ratio = round(1.3 * float(np.quantile(lengths[:, 1] / lengths[:, 0], 0.999)), 3)
    return task
