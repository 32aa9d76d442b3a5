"""Options of language modeling: how plain text is read and tokenized."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from regard.core.errors import UserError
from regard.core.files import read_fields
from regard.core.options import AutoSetting
from regard.data.corpus.words import word_key
from regard.data.reading.documents import read_documents
from regard.data.reading.read import Pair, Pairs
from regard.data.sources.media import check_no_media
from regard.data.sources.open import DataSpec, TrainDev, read_train_dev
from regard.data.tokenizers.build import build_tokenizer, load_table, load_tokenizer
from regard.data.tokenizers.tokenizer import count_tokens
from regard.inputs.tokenizers import choose_size
from regard.models.masked import MaskedOptions
from regard.tasks.language_model import LanguageModelTask
from regard.tasks.task_options import TaskOptions

MAX_CHAR_LEVEL = 20_000_000  # maximum characters for which tokenizer=auto means char


class LanguageModelOptions(TaskOptions):
    """Options of language modeling on plain text."""

    kind: Literal["language-model"] = "language-model"
    tokenizer: Literal["auto", "char", "word", "whitespace", "bpe", "unigram", "word_char"] = Field(
        "auto",
        description="word_char: whitespace-separated words with their characters, as in taggers",
    )
    vocab_size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")
    document_unit: Literal["file", "paragraph", "line"] = Field(
        "file", description="what a document is; paragraphs are separated by blank lines"
    )
    context_length: int = Field(64, gt=0, description="tokens per window")
    eval_overlap: int = Field(
        0, ge=0, description="context tokens per evaluation window that are not scored"
    )
    window_order: Literal["auto", "sequential", "shuffled"] = Field(
        "auto", description="sequential: in order, state carried over; auto: if the model has state"
    )
    metric: Literal["perplexity", "bits_per_character", "loss"] = "perplexity"

    @model_validator(mode="after")
    def _check_overlap(self) -> "LanguageModelOptions":
        if self.eval_overlap >= self.context_length:
            raise ValueError(
                f"eval_overlap {self.eval_overlap} must be less than context_length "
                f"{self.context_length}"
            )
        return self

    @property
    def spelled(self) -> bool:
        """Whether the model also reads the characters of words."""
        return self.tokenizer == "word_char"

    def read(self, spec: DataSpec) -> Pairs:
        """Return the documents of a file."""
        check_no_media(spec, self.kind, "plain text")
        return read_documents(spec.file(), self.document_unit, spec.target_column)

    def open(self, spec: DataSpec, dev: DataSpec) -> TrainDev:
        """Return the training set and the dev set. Default dev set: the last tenth of the text."""
        data = read_train_dev(spec, dev, self.read)
        if data.dev:
            return data
        if dev.is_given():
            read = self.read(dev)
            data.dev, data.notes = list(read.pairs), [*data.notes, *read.notes]
            return data
        data.train, data.dev = self.hold_out(list(data.train))
        train, held_out = (sum(len(p.target) for p in part) for part in (data.train, data.dev))
        data.notes.append(
            f"dev set: last {held_out:,} of {train + held_out:,} characters held out "
            "(--dev FILE overrides)"
        )
        return data

    def hold_out(self, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Split off the last tenth of the documents, or of the text of a single document."""
        if len(pairs) > 1:
            count = max(1, min(1_000, len(pairs) // 10))
            return pairs[:-count], pairs[-count:]
        text, line = pairs[0].target, pairs[0].line
        end = len(text) - len(text) // 10
        split = text.rfind("\n", 0, end) + 1 or end
        if split in (0, len(text)):
            raise UserError(
                f"{len(text)} characters are too few to hold out a dev set", help="use --dev FILE"
            )
        after = line + text.count("\n", 0, split)
        return [Pair("", text[:split], line)], [Pair("", text[split:], after)]

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Any = None
    ) -> tuple["LanguageModelTask", "LanguageModelOptions", list[AutoSetting]]:
        """Fit the task to documents. Return the task, complete options and automatic settings."""
        masked = isinstance(model, MaskedOptions)
        if like is not None and like.kind == self.kind:
            return *self._fit_like(like, masked, len(pairs) > 1), []
        texts, auto_settings = [pair.target for pair in pairs], list[AutoSetting]()
        tree = self.model_dump(include={"tokenizer", "vocab_size"})
        if self.tokenizer == "auto":
            characters = sum(map(len, texts))
            tree["tokenizer"] = "char" if characters < MAX_CHAR_LEVEL else "bpe"
            reason = f"{characters:,} characters of text"
            auto_settings.append(AutoSetting("task.tokenizer", tree["tokenizer"], reason))
        choose_size(tree, "task", texts, auto_settings)
        options, chars = self.model_copy(update=tree), None
        if not options.spelled:
            tokenizer = build_tokenizer(options.tokenizer, texts, options.vocab_size)
        elif not masked:
            raise UserError(
                "task.tokenizer=word_char: only supported for model.kind=masked",
                help="use word or whitespace",
            )
        else:
            words = [word for text in texts for word in text.split()]
            tokenizer = count_tokens(map(word_key, words), options.vocab_size)
            chars = count_tokens(character for word in words for character in word)
        task = LanguageModelTask(tokenizer, chars, options, masked, len(pairs) > 1)
        return task, options, auto_settings

    def _fit_like(
        self, like: LanguageModelTask, masked: bool, scores_eos: bool
    ) -> tuple[LanguageModelTask, "LanguageModelOptions"]:
        """Return the task with the vocabulary of `like`, and its options."""
        kind = like.tokenizer.kind if like.chars is None else "word_char"
        if self.tokenizer not in ("auto", kind):
            raise UserError(
                f"task.tokenizer: expected {kind} as in --init-from, found {self.tokenizer}"
            )
        options = self.model_copy(update={"tokenizer": kind, "vocab_size": None})
        if options.spelled and not masked:
            raise UserError(
                "--init-from: task.tokenizer=word_char is only supported for model.kind=masked"
            )
        return LanguageModelTask(like.tokenizer, like.chars, options, masked, scores_eos), options

    def load(self, folder: Path) -> "LanguageModelTask":
        """Return the task that `LanguageModelTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        masked, scores_eos = read_fields(path / "task.json", masked=bool, scores_eos=bool)
        chars = load_table(path, "chars") if self.spelled else None
        return LanguageModelTask(load_tokenizer(path, "text"), chars, self, masked, scores_eos)
