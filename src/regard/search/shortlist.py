"""Lexical shortlists: the likely target tokens of a sentence, and the most frequent target tokens.

(As in Jean et al. 2015, 3.3, with the lexical probabilities of IBM model 1.)
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from regard.core.errors import UserError
from regard.core.files import write_bytes
from regard.data.tensors.special import SPECIALS
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.search.lexical import Rows, learn_lexicon

FILE = "shortlist.safetensors"
ARRAYS = ("starts", "tokens", "frequent")
CREATE = "create it with: regard shortlist MODEL DATA"


@dataclass(frozen=True)
class Shortlist:
    """A table of likely target tokens per source token.

    tokens[starts[s] : starts[s + 1]]: target tokens of source token s, most probable first.
    frequent: target tokens that are allowed in every sentence, special tokens included.
    """

    starts: np.ndarray
    tokens: np.ndarray
    frequent: np.ndarray

    @classmethod
    def learn(
        cls,
        sources: Rows,
        targets: Rows,
        source_size: int,
        target_size: int,
        best: int = 50,
        frequent: int = 100,
    ) -> "Shortlist":
        """Learn a shortlist from sentence pairs.

        best: number of target tokens per source token.
        frequent: number of most frequent target tokens, allowed in every sentence.
        If source rows end with EOS, EOS serves as the NULL word of IBM model 1.
        """
        source, target, probability = learn_lexicon(sources, targets)
        order = np.lexsort((-probability, source))
        first = np.searchsorted(source, np.arange(source_size + 1))
        kept = order[np.arange(len(order)) - first[source[order]] < best]
        starts = np.searchsorted(source[kept], np.arange(source_size + 1))
        ids = np.fromiter(chain.from_iterable(targets), np.int64)
        counts = np.bincount(ids, minlength=target_size)
        counts[: len(SPECIALS)] = 0
        top = np.argsort(-counts, kind="stable")[:frequent]
        common = np.union1d(np.arange(len(SPECIALS)), top[counts[top] > 0])
        return cls(starts.astype(np.int64), target[kept].astype(np.int32), common.astype(np.int32))

    def of(self, source: Sequence[int], more: Iterable[int] = ()) -> np.ndarray:
        """Return the allowed target tokens of a sentence, sorted. more: tokens to add."""
        likely = [self.tokens[self.starts[s] : self.starts[s + 1]] for s in set(source)]
        return np.unique(np.concatenate([self.frequent, *likely, np.array([*more], np.int32)]))

    def coverage(self, sources: Rows, targets: Rows) -> tuple[float, float]:
        """Return the mean number of allowed tokens, and the fraction of target tokens allowed."""
        sizes, found, total = [], 0, 0
        for source, target in zip(sources, targets, strict=True):
            shortlist = self.of(source)
            sizes.append(len(shortlist))
            found += int(np.isin(target, shortlist).sum())
            total += len(target)
        return float(np.mean(sizes)), found / max(total, 1)

    def save(self, path: Path, source: Tokenizer, target: Tokenizer) -> None:
        """Write the shortlist with the sizes and digests of both vocabularies."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_bytes(path, save(arrays, {"format": "1", **_metadata(source, target)}))

    @classmethod
    def load(cls, path: Path, source: Tokenizer, target: Tokenizer) -> "Shortlist":
        """Load a shortlist. Raise UserError if it is corrupted or has other vocabularies."""
        try:
            with safe_open(path, "numpy") as file:
                metadata = file.metadata() or {}
                found = cls(*(file.get_tensor(name) for name in ARRAYS))
        except FileNotFoundError:
            raise UserError(f"{path}: no such file", help=CREATE) from None
        except (SafetensorError, OSError) as error:
            message = f"{path}: corrupted, or not a shortlist ({error})"
            raise UserError(message, help=CREATE) from error
        for name, value in _metadata(source, target).items():
            if metadata.get(name) != value:
                raise UserError(
                    f"{path}: made for another model: expected {name} {value}, "
                    f"found {metadata.get(name)}",
                    help=CREATE,
                )
        if not found._is_valid(len(source), len(target)):
            raise UserError(f"{path}: corrupted", help=CREATE)
        return found

    def _is_valid(self, source_size: int, target_size: int) -> bool:
        """Return whether all offsets and tokens are in range."""
        sizes = np.array([0, *np.diff(self.starts), len(self.tokens) - self.starts[-1]])
        ids = np.concatenate([self.tokens, self.frequent])
        specials = np.arange(len(SPECIALS))
        return (
            len(self.starts) == source_size + 1
            and self.starts[0] == 0
            and bool((sizes >= 0).all())
            and sizes[-1] == 0
            and bool(((ids >= 0) & (ids < target_size)).all())
            and np.array_equal(self.frequent[: len(specials)], specials)
        )


def _metadata(source: Tokenizer, target: Tokenizer) -> dict[str, str]:
    """Return the vocabulary sizes and digests, which must match those of the model."""
    sides = {"source": source, "target": target}
    sizes = {f"{name} size": str(len(side)) for name, side in sides.items()}
    digests = {
        f"{name} vocabulary": hashlib.blake2b(side.content(), digest_size=16).hexdigest()
        for name, side in sides.items()
    }
    return sizes | digests
