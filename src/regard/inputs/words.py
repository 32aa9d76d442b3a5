"""Words with their characters: the input `words` and its frontend.

B rows (sentences of the batch), S length, D width, U distinct words, L characters per word,
E width of character embeddings, C width of character-level representations.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.errors import UserError
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

KERNEL_SIZES = (2, 3, 4, 5)  # sizes of convolutions in characters
CHAR_EMBEDDING = 32  # width of character embeddings
MAX_WORD = 2_000  # characters


class WordInput(Input):
    """Sequences of words, with vocabularies of words and of characters."""

    kind = "words"
    mismatch = (
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
        longest = max((word for source in sources for word in source), key=len, default="")
        if len(longest) > MAX_WORD:  # all words of a batch are padded to its length
            raise UserError(
                f"word of {len(longest):,} characters ({longest[:20]}...): expected at most "
                f"{MAX_WORD:,}",
                help="separate the words by spaces",
            )
        return split_words(sources, self.words, self.chars)

    def names(self, source: Sequence[str]) -> list[str]:
        return list(map(printable, source))

    def text(self, source: Sequence[str]) -> str:
        return " ".join(source)

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the whitespace-separated words of a line."""
        return tuple(text.split())

    def knows(self, word: str) -> bool:
        """Return whether the word is in the vocabulary."""
        return self.words.knows(word_key(word))

    def unknown(self, source: Sequence[str], row: np.ndarray | None = None) -> tuple[str, ...]:
        """Return the out-of-vocabulary characters of the words."""
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

    def save(self, folder: Path) -> None:
        self.words.save(folder, "words")
        self.chars.save(folder, "chars")


class Words(InputOptions):
    """Options of the input `words`."""

    examples: ClassVar[tuple[Any, ...]] = (("some", "words"), ("some", "more", "words"), ("one",))
    kind: Literal["words"] = "words"
    vocab_size: int | None = Field(
        None, gt=0, description="maximum number of words in the vocabulary; None: all"
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
        """Return the input with the vocabularies of these sources or of a pretrained model."""
        if like is None:
            words = count_tokens(
                (word_key(word) for row in sources for word in row), self.vocab_size
            )
            chars = count_tokens(c for row in sources for word in row for c in word)
            return WordInput(words, chars), self
        known = WordInput.like(like)
        return WordInput(known.words, known.chars), self

    def load(self, folder: Path) -> WordInput:
        return WordInput(load_table(folder, "words"), load_table(folder, "chars"))


class WordFrontend(Frontend):
    """A frontend that concatenates word and character-level vectors and projects them.

    Characters give unknown words a useful representation (Ma and Hovy 2016; Lample et al. 2016).
    During training, a fraction `dropout` of the words becomes UNK (word dropout). So the model
    learns to use characters alone.
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
        """Return the vectors (B, S, D) of words (B, S, 2).

        A word is its id and its index in the table of characters, `source.shared`.
        """
        words, indices = source.data.unbind(-1)  # (B, S) each
        x = self.words(unk_dropout(words, self.dropout) if self.training else words)
        if self.spelling is not None:
            assert source.shared is not None
            spelled = self.spelling(source.shared)  # (U, C)
            x = torch.cat([x, F.embedding(indices, spelled)], -1)
        return source._replace(data=record_input(self, self.join(x)), shared=None)


class CharCNN(nn.Module):
    """A character CNN with max pooling (Kim et al. 2016; Ma and Hovy 2016)."""

    def __init__(self, chars: Embedding, width: int, kernel_sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.chars = chars
        inner = chars.weight.shape[1]
        n = len(kernel_sizes)
        widths = [width // n + (i < width % n) for i in range(n)]
        self.convolutions = nn.ModuleList(
            nn.Linear(size * inner, out) for size, out in zip(kernel_sizes, widths, strict=True)
        )
        self.kernel_sizes = kernel_sizes

    def forward(self, words: SharedRows) -> Tensor:
        """Return one vector per word (U, C) for characters (U, L)."""
        padding = max(self.kernel_sizes) - 1
        x = self.chars(words.data) * words.mask.unsqueeze(-1)
        x = F.pad(x, (0, 0, padding, padding))  # (U, L + 2 padding, E)
        mask = F.pad(words.mask, (padding, padding))
        found = []
        for size, linear in zip(self.kernel_sizes, self.convolutions, strict=True):
            windows = x.unfold(1, size, 1).transpose(2, 3).flatten(2)  # (U, positions, size * E)
            real = mask.unfold(1, size, 1).any(-1, keepdim=True)  # (U, positions, 1)
            found.append(linear(windows).masked_fill(~real, float("-inf")).amax(1))
        return torch.cat(found, -1).relu()


class CharLSTM(nn.Module):
    """A bidirectional character LSTM, which returns its final states (Ling et al. 2015)."""

    def __init__(self, chars: Embedding, width: int) -> None:
        super().__init__()
        self.chars = chars
        self.body = Bidirectional("lstm", chars.weight.shape[1], width, 1, 0.0)

    def forward(self, words: SharedRows) -> Tensor:
        """Return one vector per word (U, C) for characters (U, L)."""
        states = self.body(self.chars(words.data), words.mask)
        return final_states(Padded(states, words.mask), both=True)


class WordFrontendOptions(FrontendOptions):
    """Options of word embeddings with a character encoder."""

    reads: ClassVar[str] = "words"
    kind: Literal["words"] = "words"
    width: int = Field(128, gt=0, description="width of the word embedding")
    char_encoder: Literal["cnn", "lstm", "none"] = Field(
        "cnn", description="character-level encoder"
    )
    char_width: int = Field(
        128, ge=4, description="width of the character-level representation; must be even for lstm"
    )
    word_dropout: float = Field(
        0.15, ge=0, lt=1, description="fraction of words replaced by UNK during training"
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
            size += size % 2  # even: half the width per direction
        if self.spelled:
            each = Embedding(shape.characters, CHAR_EMBEDDING, CHAR_EMBEDDING**0.5)
            spelling = (
                CharCNN(each, size, KERNEL_SIZES)
                if self.char_encoder == "cnn"
                else CharLSTM(each, size)
            )
        inputs = self.width + (size if spelling is not None else 0)
        join = nn.Sequential(Dropout(dropout), nn.Linear(inputs, width))
        return WordFrontend(whole, spelling, join, self.word_dropout)
