"""Rewards: scores of single outputs, higher is better, for training on a metric."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.metrics.text_metrics import Tokenize, edit_distance, short_bleu

Reward = Literal["exact_match", "edit_distance", "ser", "cer", "wer", "bleu", "chrf", "short_bleu"]


def rewards(
    metric: str, outputs: Sequence[str], references: Sequence[str], tokenize: Tokenize
) -> list[float]:
    """Return the reward of each output, usually from 0 to 1.

    tokenize: splits a text into the output tokens of the model.

    - `exact_match`: 1 if the output equals its reference, otherwise 0.
    - `edit_distance`: 1 minus the edit distance in tokens, divided by the longer length.
    - `ser`, `cer`, `wer`: 1 minus the error rate of the output; negative for many insertions.
    - `bleu`, `chrf`: sacrebleu's score of the sentence / 100 (BLEU smoothed, of orders that occur).
    - `short_bleu`: BLEU for short sentences.
    """
    score = _scorers(tokenize)[metric]
    known: dict[tuple[str, str], float] = {}
    pairs = list(zip(outputs, references, strict=True))
    for pair in pairs:
        if pair not in known:
            known[pair] = score(*pair)
    return [known[pair] for pair in pairs]


def _scorers(tokenize: Tokenize) -> dict[str, Callable[[str, str], float]]:
    """Return the reward functions of an output and its reference, by metric."""

    def similarity(output: str, reference: str) -> float:
        one, other = tokenize(output), tokenize(reference)
        return 1 - edit_distance(one, other) / max(len(one), len(other), 1)

    def accuracy(split: Callable[[str], Sequence[str]]) -> Callable[[str, str], float]:
        def rate(output: str, reference: str) -> float:
            expected = split(reference)
            return 1 - edit_distance(split(output), expected) / max(len(expected), 1)

        return rate

    bleu, chrf = _sacrebleu()
    return {
        "exact_match": lambda output, reference: float(output == reference),
        "edit_distance": similarity,
        "ser": accuracy(tokenize),
        "cer": accuracy(lambda text: text),
        "wer": accuracy(str.split),
        "bleu": lambda output, reference: bleu.sentence_score(output, [reference]).score / 100,
        "chrf": lambda output, reference: chrf.sentence_score(output, [reference]).score / 100,
        "short_bleu": lambda output, reference: short_bleu(tokenize(output), tokenize(reference)),
    }


@cache
def _sacrebleu() -> tuple[BLEU, CHRF]:
    return BLEU(effective_order=True, force=True), CHRF()
