"""Texts as tokens of a vocabulary: the input `text`, and the frontend `tokens` that reads it.

B rows, S length, D width.
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
from regard.data.tokenizers.split import ATTACHED
from regard.data.tokenizers.tokenizer import MAX_WORDS, Tokenizer, WordTokenizer
from regard.inputs.frontend import Embedding, Frontend, FrontendOptions, unk_dropout
from regard.inputs.input import Input, InputOptions, InputShape
from regard.inputs.tokenizers import TokenizerKind, choose_side, choose_size
from regard.nn.fast import fast

ENOUGH = 0.8  # share of a text that words seen again must make up


class TextInput(Input):
    """Texts as tokens, closed with EOS. lowercase: without case; opened: BOS comes first."""

    kind = "text"
    unlike = "--init-from: that model does not read texts as this task does"

    def __init__(self, tokenizer: Tokenizer, lowercase: bool, opened: bool) -> None:
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.opened = opened
        self.whole_words = tokenizer.subwords

    @property
    def shape(self) -> InputShape:
        return InputShape("text", len(self.tokenizer))

    def read(self, text: str) -> str:
        """A text as it is cut into tokens."""
        return text.lower() if self.lowercase else text

    def encode(self, sources: Sequence[str]) -> Ragged:
        for number, source in enumerate(sources, 1):
            if not isinstance(source, str):
                raise UserError(f"example {number}: expected a text, found {source!r}")
        texts = [self.read(text) for text in sources] if self.lowercase else sources
        if not self.opened:
            return Ragged.from_flat(*self.tokenizer.encode_flat(texts, EOS))
        return Ragged.of([[BOS, *ids] for ids in self.tokenizer.encode_all(texts)], EOS)

    def names(self, source: str) -> list[str]:
        """Tokens between their marks; those that are not known keep their names."""
        if not isinstance(source, str):
            raise UserError(f"expected a text, found {source!r}")
        text, name = self.read(source), self.tokenizer.name
        cut = zip(self.tokenizer.encode(text), self.tokenizer.tokenize(text), strict=True)
        found = [printable(token) if id == UNK else name(id) for id, token in cut]
        return [*([SPECIALS[BOS]] if self.opened else []), *found, SPECIALS[EOS]]

    def unknown(self, source: str, row: np.ndarray | None = None) -> tuple[str, ...]:
        if row is not None and not (row == UNK).any():
            return ()
        text = self.read(source)
        ids = self.tokenizer.encode(text)
        if UNK not in ids:
            return ()
        cut = zip(self.tokenizer.tokenize(text), ids, strict=True)
        return tuple(token.removeprefix(ATTACHED) for token, id in cut if id == UNK)

    def token_ids(self, sources: Sequence[str], spelled: bool) -> list[np.ndarray]:
        ids = self.tokenizer.encode_all([self.read(source) for source in sources])
        return [np.asarray(row) for row in ids]

    def alphabet(self) -> list[str]:
        return self.tokenizer.names()

    def content(self) -> bytes:
        return self.tokenizer.content() + bytes([self.lowercase, self.opened])

    def save(self, place: Path) -> None:
        self.tokenizer.save(place, "source")
        write_json(place / "input.json", {"lowercase": self.lowercase, "opened": self.opened})


class Text(InputOptions):
    """Texts, cut into tokens."""

    examples: ClassVar[tuple[Any, ...]] = ("a text", "another one", "text")
    joint: ClassVar[bool] = True
    kind: Literal["text"] = "text"
    tokenizer: TokenizerKind = Field("auto", description="auto chooses from the data and says why")
    vocab_size: int | None = Field(None, gt=5, description="size of a word or subword vocabulary")
    lowercase: bool | None = Field(
        None, description="read without case; None: words of classified texts, and nothing else"
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
        """The texts of classification and regression: whole words, where texts have them."""
        tree = self.model_dump()
        if like is not None:
            known = text_like(like, self.tokenizer)
            tree |= {
                "tokenizer": known.tokenizer.kind,
                "vocab_size": None,
                "lowercase": known.lowercase,
            }
            return TextInput(known.tokenizer, known.lowercase, True), Text(**tree)
        found: list[AutoSetting] = []
        choose_side(tree, path, sources, found)
        if found and tree["tokenizer"] == "bpe":  # whole words say more about a text than pieces
            tree["tokenizer"] = "word"
            found = [AutoSetting(f"{path}.tokenizer", "word", found[0].reason)]
        auto_settings += found
        choose_size(tree, path, sources, auto_settings)
        if tree["lowercase"] is None:
            tree["lowercase"] = tree["tokenizer"] == "word"
        texts = [text.lower() for text in sources] if tree["lowercase"] else list(sources)
        if tree["tokenizer"] == "word" and tree["vocab_size"] is None:
            _choose_words(tree, path, texts, auto_settings)
        tokenizer = build_tokenizer(tree["tokenizer"], texts, tree["vocab_size"])
        return TextInput(tokenizer, tree["lowercase"], True), Text(**tree)

    def load(self, place: Path) -> TextInput:
        facts = read_fields(place / "input.json", "lowercase", "opened")
        return TextInput(load_tokenizer(place, "source"), *facts)


def _choose_words(
    tree: dict[str, Any], path: str, texts: Sequence[str], auto_settings: list[AutoSetting]
) -> None:
    """Leaves out words that occur once, which are learned by heart, where others say enough."""
    counts = Counter(word for text in texts for word in WordTokenizer([]).tokenize(text))
    again = [count for count in counts.values() if count > 1]
    if len(again) > len(SPECIALS) and sum(again) >= ENOUGH * counts.total():
        tree["vocab_size"] = min(len(again), MAX_WORDS)
        auto_settings.append(
            AutoSetting(f"{path}.vocab_size", tree["vocab_size"], "words that occur again")
        )


def text_like(like: Input, wanted: str) -> TextInput:
    """The input of a model to start from, if it reads texts cut in this way."""
    known = TextInput.like(like)
    if wanted not in ("auto", known.tokenizer.kind):
        raise UserError(
            f"--init-from: that model reads {known.tokenizer.kind} tokens, {wanted} were asked for"
        )
    return known


class TokenEmbedder(Frontend):
    """Tokens of a vocabulary, each a vector; in training a share `dropout` of them is UNK."""

    def __init__(self, tokens: Embedding, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = tokens
        self.dropout = dropout
        self.width = tokens.weight.shape[1]

    @property
    def table(self) -> Embedding:  # type: ignore[override]
        return self.tokens

    def forward(self, source: Padded) -> Padded:
        """Tokens (B, S) to vectors (B, S, D)."""
        data = unk_dropout(source.data, self.dropout) if self.training else source.data
        return source._replace(data=self.tokens(data))

    def lookup(self) -> nn.Module:
        return self.tokens

    def fast(self) -> Callable[[Padded], Padded]:
        """The same without what modules do around it, in eval mode."""
        embed = fast(self.tokens)
        return lambda source: source._replace(data=embed(source.data))


class TokenEmbedderOptions(FrontendOptions):
    """A vector for each token."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    reads: ClassVar[str] = "text"
    kind: Literal["tokens"] = "tokens"
    token_dropout: float = Field(
        0.0, ge=0, lt=1, description="share of tokens that training reads as unknown"
    )

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> TokenEmbedder:
        return TokenEmbedder(Embedding(shape.size, width, scale), self.token_dropout)
