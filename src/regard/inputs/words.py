"""Words, each as a whole and as its characters: the input `words`, and the frontend that reads it.

B rows, S length, D width, U different words, L characters, E size of their vectors.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import AutoSetting
from regard.data.corpus.words import WordRows, split_words, word_key
from regard.data.tensors.padded import Padded, SharedRows
from regard.data.tensors.special import UNK
from regard.data.tokenizers.build import load_table
from regard.data.tokenizers.display_names import printable
from regard.data.tokenizers.tokenizer import TableTokenizer, count_tokens
from regard.inputs.frontend import Embedding, Frontend, FrontendOptions, unk_dropout
from regard.inputs.input import Input, InputOptions, InputShape
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import Dropout
from regard.nn.recurrent import Bidirectional, final_states

SPANS = (2, 3, 4, 5)  # characters that convolutions see at once
CHARACTER = 32  # size of the vector of a character


class WordInput(Input):
    """Sequences of words."""

    kind = "words"
    unlike = (
        "--init-from: a tagger starts from a tagger, or from a language model that reads words: "
        "--task language-model --set model.kind=masked --set task.tokenizer=word_char"
    )
    whole_words = True

    def __init__(self, words: TableTokenizer, chars: TableTokenizer) -> None:
        self.words = words
        self.chars = chars

    @property
    def shape(self) -> InputShape:
        return InputShape("words", len(self.words), len(self.chars))

    def encode(self, sources: Sequence[Sequence[str]]) -> WordRows:
        return split_words(sources, self.words, self.chars)

    def names(self, source: Sequence[str]) -> list[str]:
        return list(map(printable, source))

    def text(self, source: Sequence[str]) -> str:
        return " ".join(source)

    def parse(self, text: str) -> tuple[str, ...]:
        """The words between the spaces of a line."""
        return tuple(text.split())

    def knows(self, word: str) -> bool:
        """Whether training saw this word."""
        return self.words.knows(word_key(word))

    def unknown(self, source: Sequence[str], row: np.ndarray | None = None) -> tuple[str, ...]:
        """The characters that training never saw."""
        return tuple(c for word in source for c in word if not self.chars.knows(c))

    def token_ids(self, sources: Sequence[Sequence[str]], spelled: bool) -> list[np.ndarray]:
        def readable(word: str) -> bool:
            return self.knows(word) or (spelled and any(map(self.chars.knows, word)))

        return [
            np.array([UNK + 1 if readable(word) else UNK for word in source]) for source in sources
        ]

    def alphabet(self) -> list[str]:
        return self.chars.names()

    def content(self) -> bytes:
        return self.words.content() + self.chars.content()

    def save(self, place: Path) -> None:
        self.words.save(place, "words")
        self.chars.save(place, "chars")


class Words(InputOptions):
    """Words, by a vocabulary and by their characters."""

    examples: ClassVar[tuple[Any, ...]] = (("some", "words"), ("some", "more", "words"), ("one",))
    kind: Literal["words"] = "words"
    vocab_size: int | None = Field(
        None, gt=0, description="most words in the vocabulary; None: all"
    )

    @classmethod
    def accepts(cls, source: Any) -> bool:
        return isinstance(source, tuple) and all(isinstance(word, str) for word in source)

    def fit(
        self,
        sources: Sequence[Any],
        path: str,
        auto_settings: list[AutoSetting],
        like: Input | None = None,
    ) -> tuple[WordInput, "Words"]:
        """The words of these sequences, or those of a model to start from."""
        if like is None:
            words = count_tokens(
                (word_key(word) for row in sources for word in row), self.vocab_size
            )
            chars = count_tokens(c for row in sources for word in row for c in word)
            return WordInput(words, chars), self
        known = WordInput.like(like)
        return WordInput(known.words, known.chars), self

    def load(self, place: Path) -> WordInput:
        return WordInput(load_table(place, "words"), load_table(place, "chars"))


class WordFrontend(Frontend):
    """Words as wholes and as their characters, side by side, mapped to the width of the encoder.

    Characters give a word that training never saw a vector that is of use (Ma and Hovy 2016;
    Lample et al. 2016). In training a share `dropout` of the words is UNK, so that the model
    learns to read by characters alone.
    """

    def __init__(
        self, words: Embedding, spelling: nn.Module | None, join: nn.Sequential, dropout: float
    ) -> None:
        super().__init__()
        self.words = words
        self.spelling = spelling
        self.join = join
        self.dropout = dropout
        self.width: int = join[-1].out_features  # type: ignore[assignment]

    @property
    def table(self) -> Embedding:  # type: ignore[override]
        return self.words

    def forward(self, source: Padded) -> Padded:
        """Words (B, S, 2) to vectors (B, S, D)."""
        words, places = source.data.unbind(-1)  # (B, S) each
        x = self.words(unk_dropout(words, self.dropout) if self.training else words)
        if self.spelling is not None:
            assert source.shared is not None
            spelled = self.spelling(source.shared)  # (U, C)
            x = torch.cat([x, F.embedding(places, spelled)], -1)
        return source._replace(data=record_input(self, self.join(x)), shared=None)


class CharCNN(nn.Module):
    """Convolutions over the characters, the largest value of each (Kim et al. 2016; Ma, Hovy
    2016)."""

    def __init__(self, chars: Embedding, width: int, spans: tuple[int, ...]) -> None:
        super().__init__()
        self.chars = chars
        inner = chars.weight.shape[1]
        shares = [width // len(spans) + (i < width % len(spans)) for i in range(len(spans))]
        self.spans = nn.ModuleList(
            nn.Linear(span * inner, share) for span, share in zip(spans, shares, strict=True)
        )
        self.sizes = spans

    def forward(self, words: SharedRows) -> Tensor:
        """Characters (U, L) to one vector a word (U, C)."""
        reach = max(self.sizes) - 1
        x = self.chars(words.data) * words.mask.unsqueeze(-1)
        x = F.pad(x, (0, 0, reach, reach))  # (U, L + 2 reach, E)
        mask = F.pad(words.mask, (reach, reach))
        found = []
        for size, linear in zip(self.sizes, self.spans, strict=True):
            seen = x.unfold(1, size, 1).transpose(2, 3).flatten(2)  # (U, places, size * E)
            real = mask.unfold(1, size, 1).any(-1, keepdim=True)  # (U, places, 1)
            found.append(linear(seen).masked_fill(~real, float("-inf")).amax(1))
        return torch.cat(found, -1).relu()


class CharLSTM(nn.Module):
    """An LSTM from each end of the word, their last states (Ling et al. 2015)."""

    def __init__(self, chars: Embedding, width: int) -> None:
        super().__init__()
        self.chars = chars
        self.body = Bidirectional("lstm", chars.weight.shape[1], width, 1, 0.0)

    def forward(self, words: SharedRows) -> Tensor:
        """Characters (U, L) to one vector a word (U, C)."""
        states = self.body(self.chars(words.data), words.mask)
        return final_states(Padded(states, words.mask), both=True)


class Spelled(FrontendOptions):
    """Words by their embedding and by their characters."""

    reads: ClassVar[str] = "words"
    kind: Literal["words"] = "words"
    width: int = Field(128, gt=0, description="size of the vector of a whole word")
    char_encoder: Literal["cnn", "lstm", "none"] = Field(
        "cnn", description="how a word is read character by character"
    )
    char_width: int = Field(128, ge=4, description="size of the vector of its spelling; even")
    word_dropout: float = Field(
        0.15, ge=0, lt=1, description="share of words hidden in training, so that spelling counts"
    )

    @property
    def spelled(self) -> bool:
        return self.char_encoder != "none"

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> WordFrontend:
        whole = Embedding(shape.size, self.width, 1.0)
        spelling: nn.Module | None = None
        size = self.char_width
        if self.char_encoder == "lstm":
            size += size % 2  # half of it from each end
        if self.spelled:
            each = Embedding(shape.characters, CHARACTER, CHARACTER**0.5)
            spelling = (
                CharCNN(each, size, SPANS) if self.char_encoder == "cnn" else CharLSTM(each, size)
            )
        inputs = self.width + (size if spelling is not None else 0)
        join = nn.Sequential(Dropout(dropout), nn.Linear(inputs, width))
        return WordFrontend(whole, spelling, join, self.word_dropout)
