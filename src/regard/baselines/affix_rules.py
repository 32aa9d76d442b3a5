"""Affix rules for strings: what training words add and strip at their start and end.

The idea is that of the baseline of the SIGMORPHON 2017 shared task (Cotterell et al. 2017): the
most frequent change of the training words with the longest matching ending is applied. A stem is
the longest prefix or suffix of a word that occurs in its target. The rule of a pair replaces what
is before and after the stem. Sources may have several fields, such as lemma and features. Then
one field is the word, and the rules depend on the other fields.
"""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from pydantic import model_validator
from typing_extensions import Self

from regard.baselines.baseline import StoredBaseline

MAX_AFFIX = 10  # characters that a rule strips
MAX_ENDING = 8  # characters of a word that select its rule
MAX_ENDINGS = 50_000  # stored endings, over all conditions
NUM_TRIED = 1_000  # pairs on which the word field is chosen

WordField = Literal["all", "first", "last", "before_last"]
WORD_FIELDS: tuple[WordField, ...] = ("all", "first", "last", "before_last")


class Rule(NamedTuple):
    """A change of a word: strip a prefix and a suffix, then add others."""

    strip_prefix: str
    add_prefix: str
    strip_suffix: str
    add_suffix: str

    def apply(self, word: str) -> str | None:
        """Return the changed word; None if the rule does not match it."""
        start, end = len(self.strip_prefix), len(word) - len(self.strip_suffix)
        if start > end or not word.startswith(self.strip_prefix):
            return None
        if not word.endswith(self.strip_suffix):
            return None
        return self.add_prefix + word[start:end] + self.add_suffix


Endings = dict[str, int]  # the index of a rule, by ending
Entry = tuple[str, str, int]  # condition, ending and index of a rule


class AffixRules(StoredBaseline):
    """Predict by the most frequent rule of the longest known ending; without any, copy the word.

    word_field: the field of a source (fields are separated by spaces) that is the word. The other
    fields are its condition. endings: the rule of each ending, by condition; the empty condition
    is used for unknown ones.
    """

    name: ClassVar[str] = "affix rules"
    kind: Literal["affix_rules"] = "affix_rules"
    word_field: WordField
    rules: tuple[Rule, ...]
    endings: dict[str, Endings]

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        used = [index for table in self.endings.values() for index in table.values()]
        if any(not 0 <= index < len(self.rules) for index in used):
            raise ValueError(f"endings: expected indices of {len(self.rules)} rules")
        return self

    @classmethod
    def fit(cls, sources: Sequence[str], targets: Sequence[str]) -> Self | None:
        """Return the rules of string pairs; None if no target contains a part of its source."""
        return cls._fit(sources, targets, _choose_field(cls, sources, targets))

    @classmethod
    def _fit(cls, sources: Sequence[str], targets: Sequence[str], field: WordField) -> Self | None:
        rules: dict[Rule, int] = {}
        found: list[Entry] = []
        for source, target in zip(sources, targets, strict=True):
            word, condition = split_source(source, field)
            rule = find_rule(word, target)
            if rule is None:
                continue
            index = rules.setdefault(rule, len(rules))
            shortest, end = len(rule.strip_suffix), len(word)
            lengths = range(shortest, max(shortest, min(end, MAX_ENDING)) + 1)
            endings = [word[end - length :] for length in lengths]
            for each in {"", condition}:
                found += [(each, ending, index) for ending in endings]
        if not rules:
            return None
        return cls(word_field=field, rules=tuple(rules), endings=_needed(Counter(found)))

    def predict(self, sources: Sequence[str]) -> list[str]:
        """Return the changed word of each source."""
        return [self._predict(*split_source(source, self.word_field)) for source in sources]

    def _predict(self, word: str, condition: str) -> str:
        table = self.endings.get(condition) or self.endings.get("", {})
        for length in range(min(len(word), max(MAX_AFFIX, MAX_ENDING)), -1, -1):
            index = table.get(word[len(word) - length :])
            found = None if index is None else self.rules[index].apply(word)
            if found is not None:
                return found
        return word


def split_source(source: str, field: WordField) -> tuple[str, str]:
    """Return the word of a source, and its other fields."""
    if field == "all" or " " not in source:
        return source, ""
    if field == "first":
        word, _, rest = source.partition(" ")
        return word, rest
    before, _, last = source.rpartition(" ")
    return (last, before) if field == "last" else (before, last)


def find_rule(word: str, target: str) -> Rule | None:
    """Return the rule that changes a word to its target; None without a stem."""
    for length in range(len(word), max(0, len(word) - MAX_AFFIX - 1), -1):
        rest = len(word) - length
        at = target.find(word[:length])
        if at >= 0:
            return Rule("", target[:at], word[length:], target[at + length :])
        at = target.find(word[rest:])
        if at >= 0:
            return Rule(word[:rest], target[:at], "", target[at + length :])
    return None


def _choose_field(
    cls: type[AffixRules], sources: Sequence[str], targets: Sequence[str]
) -> WordField:
    """Return the word field with the most correct predictions for every fifth of some pairs."""
    if 2 * sum(" " in source for source in sources) <= len(sources):
        return "all"
    tried = list(zip(sources, targets, strict=True))[:NUM_TRIED]
    train = [pair for index, pair in enumerate(tried) if index % 5]
    held_out, expected = zip(*tried[::5], strict=True)
    correct = {}
    for field in WORD_FIELDS:
        fitted = cls._fit([s for s, _ in train], [t for _, t in train], field)
        predicted = fitted.predict(held_out) if fitted else held_out
        correct[field] = sum(a == b for a, b in zip(predicted, expected, strict=True))
    return max(WORD_FIELDS, key=lambda field: correct[field])


def _needed(counts: Counter[Entry]) -> dict[str, Endings]:
    """Return the most frequent rule of each ending, unless a shorter ending selects it too.

    At most `MAX_ENDINGS` are kept, the most frequent ones.
    """
    best: dict[tuple[str, str], tuple[int, int]] = {}  # negative count, and index of the rule
    for (condition, ending, index), count in counts.items():
        rank = (-count, index)
        if rank < best.get((condition, ending), (0, 0)):
            best[condition, ending] = rank
    kept: dict[tuple[str, str], int] = {}
    for condition, ending in sorted(best, key=lambda key: (len(key[1]), key)):
        shorter = (kept.get((condition, ending[at:])) for at in range(1, len(ending) + 1))
        index = best[condition, ending][1]
        if next((one for one in shorter if one is not None), None) != index:
            kept[condition, ending] = index
    endings: dict[str, Endings] = {}
    for condition, ending in sorted(kept, key=lambda key: (best[key], key))[:MAX_ENDINGS]:
        endings.setdefault(condition, {})[ending] = kept[condition, ending]
    return endings
