"""Encode texts word by word, with a cache of the subword ids of each word.

A piece is the id of one subword.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np

MARKER = "\U0010fffc"  # a character that no text contains, so no piece spans it
MAX_CACHED_WORDS = 300_000

_lock = threading.Lock()  # of all caches: tokenizers are pickled, which locks cannot be

SplitFn = Callable[[list[str]], list[list[int]]]


def drop_leading_marker(tokens: list[str], ids: list[int]) -> list[int]:
    """Return the ids after MARKER: the ids of a text that no space precedes."""
    ends = [number for number, token in enumerate(tokens) if token.endswith(MARKER)]
    return ids[ends[0] + 1 :] if ends else []


class WordIndex(dict[str, int]):
    """A dict from words to indices; looking up a new word adds it with the next index."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class WordPieces:
    """An encoder that splits each distinct word only once; no piece may span a space.

    split: returns the pieces of each word. space: the piece of a space that no word follows.
    """

    def __init__(self, split: SplitFn, space: int) -> None:
        self.split, self.space = split, space
        self._reset()

    def _reset(self) -> None:
        self.index = WordIndex({"": 0})
        self.flat = np.array([self.space], np.int32)
        self.starts, self.sizes = np.zeros(1, np.int64), np.ones(1, np.int64)

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated pieces of all texts, and the number of pieces per text."""
        filled = [text for text in texts if text]
        words = " ".join(filled).split(" ") if filled else []
        counts = np.fromiter((text.count(" ") + 1 if text else 0 for text in texts), np.int64)
        with _lock:
            if len(self.index) > MAX_CACHED_WORDS:
                self._reset()
            at = np.fromiter(map(self.index.__getitem__, words), np.int64, len(words))
            self._add_new_words()
            flat, starts, sizes = self.flat, self.starts[at], self.sizes[at]
        after = np.append(0, np.cumsum(sizes))  # pieces before each word, and the total
        index = np.repeat(starts - after[:-1], sizes) + np.arange(after[-1])
        ends = np.cumsum(counts)
        return flat[index], after[ends] - after[ends - counts]

    def _add_new_words(self) -> None:
        """Add the pieces of new words to the cache."""
        known = len(self.starts)
        new = list(self.index)[known:]
        if not new:
            return
        rows = self.split(new)
        sizes = np.array([len(row) for row in rows], np.int64)
        self.starts = np.append(self.starts, len(self.flat) + np.cumsum(sizes) - sizes)
        self.sizes = np.append(self.sizes, sizes)
        self.flat = np.append(self.flat, np.array([id for row in rows for id in row], np.int32))


def append_eos(flat: np.ndarray, lengths: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Return concatenated ids with `end` appended to each text, and the new lengths."""
    closed = np.full(len(flat) + len(lengths), end, np.int32)
    inside = np.ones(len(closed), bool)
    inside[np.cumsum(lengths + 1) - 1] = False
    closed[inside] = flat
    return closed, lengths + 1
