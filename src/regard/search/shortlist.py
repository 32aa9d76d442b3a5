"""The target tokens that are likely for a sentence: of its source tokens, and frequent ones.

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


@dataclass(frozen=True)
class Shortlist:
    """tokens[starts[s] : starts[s + 1]] are the target tokens of source token s, the likeliest
    first; frequent: those of every sentence, the special ones among them."""

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
        """From parallel rows: the `best` of each source token and the `frequent` of all.

        Where the rows of the sources are closed with EOS, EOS gets what comes from no other token.
        """
        source, target, chance = learn_lexicon(sources, targets)
        order = np.lexsort((-chance, source))
        first = np.searchsorted(source, np.arange(source_size + 1))
        kept = order[np.arange(len(order)) - first[source[order]] < best]
        starts = np.searchsorted(source[kept], np.arange(source_size + 1))
        every = np.fromiter(chain.from_iterable(targets), np.int64)
        counts = np.bincount(every, minlength=target_size)
        counts[: len(SPECIALS)] = 0
        often = np.argsort(-counts, kind="stable")[:frequent]
        always = np.union1d(np.arange(len(SPECIALS)), often[counts[often] > 0])
        return cls(starts.astype(np.int64), target[kept].astype(np.int32), always.astype(np.int32))

    def of(self, source: Sequence[int], more: Iterable[int] = ()) -> np.ndarray:
        """The target tokens of a sentence, in their order; `more`: others that join them."""
        own = [self.tokens[self.starts[s] : self.starts[s + 1]] for s in set(source)]
        return np.unique(np.concatenate([self.frequent, *own, np.array([*more], np.int32)]))

    def coverage(self, sources: Rows, targets: Rows) -> tuple[float, float]:
        """The tokens of a sentence in the mean, and the share of true ones among them."""
        sizes, found, total = [], 0, 0
        for source, target in zip(sources, targets, strict=True):
            own = self.of(source)
            sizes.append(len(own))
            found += int(np.isin(target, own).sum())
            total += len(target)
        return float(np.mean(sizes)), found / max(total, 1)

    def save(self, path: Path, source: Tokenizer, target: Tokenizer) -> None:
        """Writes the file, which knows the vocabularies that it is for."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        write_bytes(path, save(arrays, {"format": "1", **_facts(source, target)}))

    @classmethod
    def load(cls, path: Path, source: Tokenizer, target: Tokenizer) -> "Shortlist":
        """The shortlist in a file; refuses one that is for other vocabularies."""
        try:
            with safe_open(path, "numpy") as file:
                facts = file.metadata() or {}
                found = cls(*(file.get_tensor(name) for name in ARRAYS))
        except FileNotFoundError:
            raise UserError(f"{path}: no such file; make it: regard shortlist MODEL DATA") from None
        except (SafetensorError, OSError) as error:
            raise UserError(
                f"{path}: damaged, or no shortlist ({error}); make it anew: "
                "regard shortlist MODEL DATA"
            ) from error
        for name, own in _facts(source, target).items():
            if facts.get(name) != own:
                raise UserError(
                    f"{path}: made for another model: its {name} is {facts.get(name)}, the model's "
                    f"is {own}; make it anew: regard shortlist MODEL DATA"
                )
        if not found._sound(len(source), len(target)):
            raise UserError(f"{path}: damaged; make it anew: regard shortlist MODEL DATA")
        return found

    def _sound(self, source_size: int, target_size: int) -> bool:
        """Whether all numbers are places and tokens that there are."""
        ends = np.array([0, *np.diff(self.starts), len(self.tokens) - self.starts[-1]])
        every = np.concatenate([self.tokens, self.frequent])
        specials = np.arange(len(SPECIALS))
        return (
            len(self.starts) == source_size + 1
            and self.starts[0] == 0
            and bool((ends >= 0).all())
            and ends[-1] == 0
            and bool(((every >= 0) & (every < target_size)).all())
            and np.array_equal(self.frequent[: len(specials)], specials)
        )


def _facts(source: Tokenizer, target: Tokenizer) -> dict[str, str]:
    """What must be the same in a model and its shortlist."""
    sides = {"source": source, "target": target}
    sizes = {f"{name} size": str(len(side)) for name, side in sides.items()}
    digests = {
        f"{name} vocabulary": hashlib.blake2b(side.content(), digest_size=16).hexdigest()
        for name, side in sides.items()
    }
    return sizes | digests
