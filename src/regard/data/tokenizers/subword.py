"""Subword tokenizers: BPE and unigram models of sentencepiece.

A piece is a token of sentencepiece: a word or a part of it. Decoding is exact.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import sentencepiece
from typing_extensions import Self

from regard.core.errors import UserError, info
from regard.core.files import read_bytes, write_bytes
from regard.data.tensors.special import BOS, EOS, PAD, SPECIALS, UNK
from regard.data.tokenizers.amount import amount_of
from regard.data.tokenizers.tokenizer import COPY, Tokenizer
from regard.data.tokenizers.word_pieces import MARKER, WordPieces, append_eos, drop_leading_marker

MAX_TEXTS = 500_000  # texts to train on, enough for a vocabulary of 32,000
MAX_CHARACTERS = 100_000_000  # to train on; sentencepiece needs several times this memory

MAX_ALONE = 16  # texts or words that are encoded one by one

# Sentencepiece reserves these characters and would lose them, so they are replaced by
# characters from the end of the private use area.
SPACE = "\u2581"
RESERVED = "\t\n\r\0\u2581\u2585"
HIDE = {ord(character): 0x10FFF0 + at for at, character in enumerate(RESERVED)}
SHOW = {hidden: chr(character) for character, hidden in HIDE.items()}
FIRST_HIDDEN = chr(min(SHOW))
# A text may contain "<mask>", so inside sentencepiece the special tokens have a prefix.
META = [f"\U0010fffd{name}" for name in SPECIALS]


class PieceTokenizer(Tokenizer):
    """Base class of sentencepiece tokenizers.

    model: serialized sentencepiece model. tokens: a separate vocabulary, if any.
    """

    subwords = True

    def __init__(self, model: bytes, tokens: Sequence[str] = ()) -> None:
        super().__init__(tokens)
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)

    def encode_attached(self, text: str) -> list[int]:
        return drop_leading_marker(self.tokenize(MARKER + text), self.encode(MARKER + text))

    def save_model(self, path: Path) -> None:
        write_bytes(path, self._model)


class SubwordTokenizer(PieceTokenizer):
    """A subword tokenizer; a piece at the start of a word begins with U+2581 (SPACE).

    by_word: whether each word can be encoded separately, with the same result.
    """

    by_word: ClassVar[bool]

    def __init__(self, model: bytes) -> None:
        super().__init__(model)
        count = self._processor.get_piece_size()
        self._names += self._processor.id_to_piece(list(range(len(SPECIALS), count)))
        by_word = self.by_word and not any(SPACE in piece[1:] for piece in self._names)
        space = self._processor.piece_to_id(SPACE)
        self._words = WordPieces(self._encode_hidden, space) if by_word and space != UNK else None

    def _encode_hidden(self, hidden: list[str]) -> list[list[int]]:
        if len(hidden) <= MAX_ALONE:  # for a list, sentencepiece starts a thread
            return [self._processor.encode(text, out_type=int) for text in hidden]
        ids: list[list[int]] = self._processor.encode(hidden, out_type=int, num_threads=1)
        return ids

    def tokenize(self, text: str) -> list[str]:
        pieces = self._processor.encode(text.translate(HIDE), out_type=str)
        return [piece.translate(SHOW) for piece in pieces]

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._processor.encode(text.translate(HIDE), out_type=int)
        return ids

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encode_hidden([text.translate(HIDE) for text in texts])

    def encode_flat(self, texts: Sequence[str], end: int) -> tuple[np.ndarray, np.ndarray]:
        if self._words is None or len(texts) == 1:
            return super().encode_flat(texts, end)
        joined = " ".join(texts)
        if any(character in joined for character in RESERVED):
            texts = [text.translate(HIDE) for text in texts]
        return append_eos(*self._words.encode(texts), end)

    def content(self) -> bytes:
        return self.kind.encode() + self._model

    def join(self, tokens: Iterable[str]) -> str:
        # Sentencepiece adds a space before every text: remove this space.
        text = "".join(tokens).removeprefix(SPACE).replace(SPACE, " ")
        return text.translate(SHOW) if text and max(text) >= FIRST_HIDDEN else text

    def token(self, id: int) -> str:
        return self._names[id].translate(SHOW)

    @classmethod
    def load(cls, model: Path, tokens: Sequence[str]) -> Self:
        """Return the tokenizer of a saved model; raise UserError if its tokens differ."""
        try:
            tokenizer = cls(read_bytes(model))
        except FileNotFoundError:
            raise UserError(f"{model}: missing vocabulary", help=COPY) from None
        except (OSError, RuntimeError, IndexError) as error:
            raise UserError(f"{model}: corrupted vocabulary ({error})", help=COPY) from None
        if tokenizer._names[len(SPECIALS) :] != tokens:
            raise UserError(f"{model}: does not match {model.with_suffix('.json')}", help=COPY)
        return tokenizer

    @classmethod
    def build(cls, texts: Sequence[str], size: int | None) -> Self:
        """Train a subword model with `size` pieces, or fewer if the texts do not have as many."""
        if isinstance(texts, list):  # texts in a file are never empty
            texts = [text for text in texts if text]
        if not texts:
            raise UserError(
                f"tokenizer {cls.kind}: cannot train a subword model: all texts are empty"
            )
        counts = amount_of(texts).characters
        characters = {character.translate(HIDE) for character in counts} - {" "}
        size = size or default_size(texts)
        needed = len(characters) + 1  # 1: the space
        if size < needed:
            raise UserError(
                f"tokenizer {cls.kind}: vocab_size {size} is smaller than the {needed} distinct "
                "characters of the data",
                help="increase vocab_size, or use tokenizer=char",
            )

        step = max(-(-len(texts) // MAX_TEXTS), -(-counts.total() // MAX_CHARACTERS))
        hidden = [text.translate(HIDE) for text in texts[::step]]
        if step > 1:
            info(
                f"training the subword model on {len(hidden):,} of {len(texts):,} texts, evenly "
                "sampled"
            )
        model = io.BytesIO()
        try:
            _train(cls.kind, hidden, size + len(SPECIALS), "".join(sorted(characters)), model)
        except RuntimeError as error:
            largest = re.search(r"value <= (\d+)", str(error))
            if not largest:
                raise UserError(
                    f"tokenizer {cls.kind}: sentencepiece failed: {error}",
                    help="use tokenizer=char",
                ) from None
            model = io.BytesIO()
            _train(cls.kind, hidden, int(largest[1]), "".join(sorted(characters)), model)
        return cls(model.getvalue())


class BpeTokenizer(SubwordTokenizer):
    """Byte-pair encoding (BPE), which merges the most frequent pairs of pieces."""

    kind = "bpe"
    by_word = True


class UnigramTokenizer(SubwordTokenizer):
    """Unigram language model, which returns the most probable segmentation of the text.

    by_word is False: scores are summed over the entire text, so rounding depends on other words.
    """

    kind = "unigram"
    by_word = False


def default_size(texts: Sequence[str]) -> int:
    """Return the default vocabulary size, which grows with the number of words.

    It is 4,000 for 700,000 words and 16,500 for 40 million. In scripts without spaces, ten
    characters count as a word. Every character of the texts fits.
    """
    amount = amount_of(texts)
    size = min(32000, max(500, 4000 * (amount.words / 700_000) ** 0.35))
    return max(round(size / 100) * 100, len(amount.characters) + 100)


def _train(kind: str, texts: list[str], size: int, characters: str, model: io.BytesIO) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        required_chars=characters,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=1 << 30,
        num_threads=1,  # the same pieces on every machine
        minloglevel=2,
        pad_id=PAD,
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        pad_piece=META[0],
        unk_piece=META[1],
        bos_piece=META[2],
        eos_piece=META[3],
        control_symbols=META[4:],  # takes the first free id, which is MASK
    )
