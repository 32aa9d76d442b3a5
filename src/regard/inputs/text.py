"""Texts as sequences of tokens: the input `text` and its frontend `tokens`.

B rows (texts of the batch), S length, D width.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from torch import nn

from regard.core.errors import UserError
from regard.core.files import read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.corpus.ragged import Ragged
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import BOS, EOS, SPECIALS, UNK
from regard.data.tokenizers.build import build_tokenizer, load_tokenizer
from regard.data.tokenizers.display_names import printable
from regard.data.tokenizers.text_reader import TextReader
from regard.data.tokenizers.tokenizer import MAX_WORDS, Tokenizer, WordTokenizer
from regard.inputs.frontend import Embedding, Frontend, FrontendOptions, unk_dropout
from regard.inputs.input import Input, InputOptions, InputShape
from regard.inputs.tokenizers import (
    NORMALIZATION_MEANING,
    Normalization,
    TokenizerKind,
    check_form,
    choose_form,
    choose_side,
    choose_size,
    tokenizer_settings,
)
from regard.nn.fast import fast

MIN_COVERAGE = 0.8  # minimum fraction of the text in words that occur more than once


class TextInput(TextReader, Input):
    """Texts as token ids, followed by EOS."""

    kind = "text"
    mismatch = "--init-from: the pretrained model does not read texts like this task"

    def __init__(
        self, tokenizer: Tokenizer, lowercase: bool, add_bos: bool, folds: bool = True
    ) -> None:
        super().__init__(tokenizer, lowercase, add_bos, folds)
        self.whole_words = tokenizer.subwords
        self.characters = tokenizer.characters

    @property
    def shape(self) -> InputShape:
        return InputShape("text", len(self.tokenizer))

    def settings(self) -> dict[str, Any]:
        """Return the options of this input, for a task that reuses it."""
        return {**tokenizer_settings(self.tokenizer), "lowercase": self.lowercase}

    def encode(self, sources: Sequence[str]) -> Ragged:
        return Ragged.from_flat(*self.encode_flat(sources))

    def names(self, source: str) -> list[str]:
        """Return the tokens with BOS and EOS. Unknown tokens are shown as they are, not as UNK."""
        if not isinstance(source, str):
            raise UserError(f"expected a string, found {source!r}")
        text, name = self.read(source), self.tokenizer.name
        tokens = zip(self.tokenizer.encode(text), self.tokenizer.tokenize(text), strict=True)
        found = [printable(token) if id == UNK else name(id) for id, token in tokens]
        return [*([SPECIALS[BOS]] if self.add_bos else []), *found, SPECIALS[EOS]]

    def token_ids(self, sources: Sequence[str], spelled: bool) -> list[np.ndarray]:
        ids = self.tokenizer.encode_all([self.read(source) for source in sources])
        return [np.asarray(row) for row in ids]

    def alphabet(self) -> list[str]:
        return self.tokenizer.names()

    def content(self) -> bytes:
        flags = self.lowercase, self.add_bos, self._folding is not None
        return self.tokenizer.content() + bytes(flags)

    def save(self, folder: Path) -> None:
        self.tokenizer.save(folder, "source")
        write_json(folder / "input.json", {"lowercase": self.lowercase, "add_bos": self.add_bos})


class Text(InputOptions):
    """Options of the input `text`."""

    examples: ClassVar[tuple[Any, ...]] = ("a text", "another one", "text")
    joint: ClassVar[bool] = True
    kind: Literal["text"] = "text"
    tokenizer: TokenizerKind = Field(
        "auto", description="tokenizer; auto selects one from the data"
    )
    vocab_size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")
    normalization: Normalization = Field("auto", description=NORMALIZATION_MEANING)
    lowercase: bool | None = Field(
        None,
        description="lowercase the texts; None: only with tokenizer word, in classify and regress",
    )

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, str)

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[TextInput, "Text"]:
        """Return the input fitted on these texts, and its options with all values set.

        Classification and regression use this input, so words are preferred to subwords. The
        tokenizer of `like`, the input of a pretrained model, is kept.
        """
        tree = self.model_dump()
        if like is not None:
            known = text_like(like, self)
            tree |= known.settings()
            return TextInput(known.tokenizer, known.lowercase, True), Text(**tree)
        found: list[AutoSetting] = []
        choose_side(tree, path, sources, found)
        if found and tree["tokenizer"] == "bpe":  # words suit classification better than subwords
            tree["tokenizer"] = "word"
            found = [AutoSetting(f"{path}.tokenizer", "word", found[0].reason)]
        auto_settings += found
        choose_form(tree, path, sources, auto_settings)
        choose_size(tree, path, sources, auto_settings)
        if tree["lowercase"] is None:
            tree["lowercase"] = tree["tokenizer"] == "word"
        texts = [text.lower() for text in sources] if tree["lowercase"] else list(sources)
        if tree["tokenizer"] == "word" and tree["vocab_size"] is None:
            _choose_words(tree, path, texts, auto_settings)
        tokenizer = build_tokenizer(
            tree["tokenizer"], texts, tree["vocab_size"], tree["normalization"]
        )
        return TextInput(tokenizer, tree["lowercase"], True), Text(**tree)

    def load(self, folder: Path) -> TextInput:
        metadata = read_fields(folder / "input.json", lowercase=bool, add_bos=bool)
        return TextInput(load_tokenizer(folder, "source"), *metadata)


def _choose_words(
    tree: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Limit the vocabulary to words that occur more than once, if they cover enough of the text.

    A model would only memorize words that occur once.
    """
    counts = Counter(word for text in texts for word in WordTokenizer([]).tokenize(text))
    again = [count for count in counts.values() if count > 1]
    if len(again) > len(SPECIALS) and sum(again) >= MIN_COVERAGE * counts.total():
        tree["vocab_size"] = min(len(again), MAX_WORDS)
        auto_settings.append(
            AutoSetting(f"{path}.vocab_size", tree["vocab_size"], "words that occur more than once")
        )


def text_like(like: Input, options: Text) -> TextInput:
    """Return `like`, the input of a pretrained model. Raise UserError if its tokenizer differs."""
    known, kind = TextInput.like(like), options.tokenizer
    if kind not in ("auto", known.tokenizer.kind):
        raise UserError(f"--init-from: expected tokenizer {kind}, found {known.tokenizer.kind}")
    check_form("task.source", options.normalization, known.tokenizer.normalization)
    return known


class TokenEmbedder(Frontend):
    """A token embedding. During training, a fraction `dropout` of the tokens becomes UNK."""

    def __init__(self, tokens: Embedding, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = tokens
        self.dropout = dropout
        self.width = tokens.weight.shape[1]

    @property
    def table(self) -> Embedding:  # type: ignore[override]
        return self.tokens

    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) of tokens (B, S)."""
        data = unk_dropout(source.data, self.dropout) if self.training else source.data
        return source._replace(data=self.tokens(data))

    def lookup(self) -> nn.Module:
        return self.tokens

    def fast(self) -> Callable[[Padded], Padded]:
        """Return a function with the same result in eval mode but less overhead."""
        embed = fast(self.tokens)
        return lambda source: source._replace(data=embed(source.data))


class TokenEmbedderOptions(FrontendOptions):
    """Options of a token embedding."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    reads: ClassVar[str] = "text"
    kind: Literal["tokens"] = "tokens"
    token_dropout: float = Field(
        0.0, ge=0, lt=1, description="fraction of tokens replaced by UNK during training"
    )

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> TokenEmbedder:
        return TokenEmbedder(Embedding(shape.size, width, scale), self.token_dropout)
