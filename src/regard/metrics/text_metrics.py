"""Metrics for text: edit distances, exact match, BLEU and chrF, each with an interval.

Every metric is a function of sums over examples. `score` sums the rows of a table with one row per
example; `intervals` sums rows sampled with replacement, so a thousand samples cost little.
BLEU and chrF come from sacrebleu, since scores are comparable only if the same code computed them.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.core.errors import UserError
from regard.metrics.metric_names import METRICS
from regard.metrics.numbers import bootstrap

Tokenize = Callable[[str], list[str]]
Table = npt.NDArray[np.float64]

# Columns of `_table`. An error rate has two: number of errors, and length of the reference.
_RATES = {"ser": slice(1, 3), "cer": slice(3, 5), "wer": slice(5, 7)}
_EXACT_MATCH, _SHORT_BLEU, _COUNT = 0, 7, 8
_BLEU, _CHRF = slice(9, 19), slice(19, 37)


def score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: Tokenize
) -> dict[str, float]:
    """Return the metrics over all hypotheses by name, from 0 to 100.

    `references[i]` holds every correct output for example `i`. `tokenize` splits a text into the
    output tokens of the model, such as phonemes or characters. They are the units of `ser`.

    - `exact_match`: fraction of hypotheses that equal one of their references.
    - `ser`, `cer`, `wer`: errors in tokens, characters and whitespace-separated words. Each
      hypothesis is compared with its closest reference (ties: the longer one). The errors of all
      examples are divided by the total length of these references, so a rate can exceed 100.
    - `bleu`, `chrf`: corpus scores of sacrebleu with its defaults; see `signatures`.
    - `short_bleu`: mean of the function `short_bleu` with the best reference of each example. It
      counts n-grams of words, or of tokens if no reference has more than one word.
    """
    table = _table(hypotheses, references, tokenize)
    return _scores(table.sum(axis=0))


def score_variants(
    variants: Sequence[Sequence[str]], references: Sequence[Sequence[str]], tokenize: Tokenize
) -> list[dict[str, float]]:
    """Return the metrics of several lists of hypotheses for the same references.

    A hypothesis that several variants have in common is compared with its references only once.
    """
    rows: dict[tuple[int, str], int] = {}  # index of each example and hypothesis in the table
    selected = [[rows.setdefault(key, len(rows)) for key in enumerate(each)] for each in variants]
    table = _table([text for _, text in rows], [references[i] for i, _ in rows], tokenize)
    return [_scores(table[indices].sum(axis=0)) for indices in selected]


def intervals(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: Tokenize,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, tuple[float, float]]:
    """Return the interval that contains 95 % of the scores of bootstrap samples, per metric.

    This is the percentile bootstrap (Efron 1979; for BLEU: Koehn 2004). Each of `samples` samples
    has N of the N examples, chosen with replacement.
    """
    table = _table(hypotheses, references, tokenize)
    return bootstrap(lambda weights: _scores(weights @ table), len(table), samples, seed)


def signatures(references: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return sacrebleu's signatures, which state how `bleu` and `chrf` were computed."""
    # The signature depends only on the number of references, so no text is tokenized.
    streams = _streams([[""] * len(alternatives) for alternatives in references])
    return {
        "bleu": str(BLEU(references=streams).get_signature()),
        "chrf": str(CHRF(references=streams).get_signature()),
    }


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the minimum number of insertions, deletions and substitutions (Levenshtein).

    The algorithm is bit-parallel (Myers 1999, in the form of Hyyro 2001). Python integers hold one
    column of the Levenshtein table as differences of neighbors, which are +1, 0 or -1.
    """
    if first == second:
        return 0
    if not first or not second:
        return len(first) + len(second)

    positions: dict[str, int] = {}  # per token: bit mask of its positions in `first`
    for index, token in enumerate(first):
        positions[token] = positions.get(token, 0) | 1 << index
    full = (1 << len(first)) - 1
    last = 1 << (len(first) - 1)
    plus, minus = full, 0  # vertical differences before the first column: all +1
    distance = len(first)

    for token in second:
        equal = positions.get(token, 0)
        diagonal = (((equal & plus) + plus) ^ plus) | equal | minus
        right_plus = minus | (full & ~(diagonal | plus))
        right_minus = plus & diagonal
        distance += bool(right_plus & last) - bool(right_minus & last)
        right_plus = (right_plus << 1 | 1) & full
        right_minus = right_minus << 1 & full
        plus = right_minus | (full & ~(diagonal | right_plus))
        minus = right_plus & diagonal
    return distance


def short_bleu(prediction: Sequence[str], label: Sequence[str], order: int = 2) -> float:
    """Return BLEU for short sequences: `exp(min(0, 1 - |label| / |prediction|)) prod p_n^(1/2^n)`.

    Zhang, Lipton, Li, Smola, Dive into Deep Learning, 10.7.6: `p_n` is the fraction of n-grams of
    the prediction that occur in the label, for n up to `order` or the length of the prediction.
    """
    if not prediction:
        return float(not label)
    result = math.exp(min(0.0, 1 - len(label) / len(prediction)))
    for n in range(1, min(order, len(prediction)) + 1):
        matches = (_ngrams(prediction, n) & _ngrams(label, n)).total()
        result *= (matches / (len(prediction) - n + 1)) ** (0.5**n)
    return result


def _ngrams(sequence: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(sequence[i : i + n]) for i in range(len(sequence) - n + 1))


def _closest(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return errors and length of the reference with the fewest errors (ties: the longest)."""
    errors, length = min((edit_distance(hypothesis, r), -len(r)) for r in references)
    return errors, -length


def _table(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], tokenize: Tokenize
) -> Table:
    """Return the summands of all metrics: one row per example, columns as in `_RATES` and below."""
    _check(hypotheses, references)
    by_word = any(len(text.split()) > 1 for texts in references for text in texts)
    rows = []
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        tokens = tokenize(hypothesis), [tokenize(text) for text in texts]
        words = hypothesis.split(), [text.split() for text in texts]
        prediction, labels = words if by_word else tokens
        row: list[float] = [hypothesis in texts]
        row += _closest(*tokens)
        row += _closest(hypothesis, texts)
        row += _closest(*words)
        row += [max(short_bleu(prediction, label) for label in labels), 1]
        rows.append(row)
    streams = _streams(references)
    counts = [each._extract_corpus_statistics(hypotheses, streams) for each in _sacrebleu()]
    return np.hstack([np.array(part, dtype=np.float64) for part in (rows, *counts)])


def _scores(sums: Table) -> dict[str, float]:
    """Return all metrics in display order, from the column sums of `_table`."""
    count, parts = float(sums[_COUNT]), zip(_sacrebleu(), (_BLEU, _CHRF), strict=True)
    bleu, chrf = (
        each._compute_score_from_stats([round(value) for value in sums[part].tolist()]).score
        for each, part in parts
    )
    scores = {
        "exact_match": 100 * float(sums[_EXACT_MATCH]) / count,
        "short_bleu": 100 * float(sums[_SHORT_BLEU]) / count,
        "bleu": bleu,
        "chrf": chrf,
    }
    for name, columns in _RATES.items():
        errors, length = sums[columns].tolist()
        scores[name] = 100 * errors / max(length, 1.0)
    return {name: scores[name] for name in METRICS if name in scores}


def _streams(references: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Return references as sacrebleu expects them: a list of all first references, and so on."""
    count = max(len(texts) for texts in references)
    return [[texts[i] if i < len(texts) else None for texts in references] for i in range(count)]


@cache
def _sacrebleu() -> tuple[BLEU, CHRF]:
    # `force` only turns off the warning about text that looks tokenized.
    return BLEU(force=True), CHRF()


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not hypotheses:
        raise UserError("no examples to score")
    if len(hypotheses) != len(references):
        raise UserError(
            f"expected one list of references per hypothesis, found {len(references)} lists for "
            f"{len(hypotheses)} hypotheses"
        )
    for number, texts in enumerate(references, start=1):
        if isinstance(texts, str) or not texts:
            raise UserError(f"example {number}: expected a non-empty list of references")
