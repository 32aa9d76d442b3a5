"""Texts as token ids, as a model reads them. This module does not import torch."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from regard.core.errors import UserError
from regard.data.tensors.special import BOS, EOS, UNK
from regard.data.tokenizers.folding import Folding
from regard.data.tokenizers.split import ATTACHED
from regard.data.tokenizers.tokenizer import Tokenizer


class TextReader:
    """Texts as token ids, followed by EOS.

    lowercase: whether texts are lowercased. add_bos: whether texts start with BOS. folds: whether
    unknown characters are folded (`folding.py`), if tokens are characters.
    """

    def __init__(
        self, tokenizer: Tokenizer, lowercase: bool, add_bos: bool, folds: bool = True
    ) -> None:
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.add_bos = add_bos
        self._folding = Folding(tokenizer) if folds and tokenizer.characters else None

    def read(self, text: str) -> str:
        """Return the text as it is tokenized: in lower case if `lowercase` is set, and folded."""
        text = text.lower() if self.lowercase else text
        return text if self._folding is None else self._folding.fold(text)

    def folded(self, source: str) -> tuple[str, ...]:
        """Return which unknown characters of a source are read as similar ones, as `A → a`."""
        text = source.lower() if self.lowercase else source
        return () if self._folding is None else self._folding.changes(text)

    def encode_flat(self, sources: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated ids of all texts, and the length of each (N,)."""
        for number, source in enumerate(sources, 1):
            if not isinstance(source, str):
                raise UserError(f"example {number}: expected a string, found {source!r}")
        if self.add_bos:
            ids = self.tokenizer.encode_all([self.read(text) for text in sources])
            lengths = np.fromiter((len(row) + 2 for row in ids), np.int64, len(ids))
            flat = chain.from_iterable((BOS, *row, EOS) for row in ids)
            return np.fromiter(flat, np.int32, int(lengths.sum())), lengths
        texts = [text.lower() for text in sources] if self.lowercase else sources
        found = self.tokenizer.encode_flat(texts, EOS)
        if self._folding is not None and (found[0] == UNK).any():
            texts = [self._folding.fold(text) for text in texts]
            found = self.tokenizer.encode_flat(texts, EOS)
        return found

    def unknown(self, source: str, row: np.ndarray | None = None) -> tuple[str, ...]:
        """Return the out-of-vocabulary tokens of a source. row: encoded source, if available."""
        if row is not None and UNK not in row.tolist():
            return ()
        text = self.read(source)
        ids = self.tokenizer.encode(text)
        if UNK not in ids:
            return ()
        tokens = zip(self.tokenizer.tokenize(text), ids, strict=True)
        return tuple(token.removeprefix(ATTACHED) for token, id in tokens if id == UNK)
