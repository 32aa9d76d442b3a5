"""All metrics by name, in display order."""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """Display options of a metric.

    label: full name. is_bounded: whether scores are plotted on a scale from 0 to 100.
    """

    label: str
    higher_is_better: bool = True
    is_bounded: bool = True
    is_percentage: bool = False


METRICS = {
    "exact_match": Metric("exact match", is_percentage=True),
    "ser": Metric(
        "symbol error rate (PER for phonemes)", higher_is_better=False, is_percentage=True
    ),
    "cer": Metric("character error rate", higher_is_better=False, is_percentage=True),
    "wer": Metric("word error rate", higher_is_better=False, is_percentage=True),
    "bleu": Metric("BLEU"),
    "chrf": Metric("chrF"),
    "short_bleu": Metric("short-sentence BLEU"),
    "accuracy": Metric("accuracy", is_percentage=True),
    "f1": Metric("F1"),  # over labels; for taggers, over spans
    "macro_f1": Metric("macro F1"),
    "oov_accuracy": Metric("accuracy on unknown words", is_percentage=True),
    "sentence_accuracy": Metric("sentence accuracy", is_percentage=True),
    "subset_accuracy": Metric("subset accuracy", is_percentage=True),
    "log_loss": Metric("log loss (nats)", higher_is_better=False, is_bounded=False),
    "ece": Metric("calibration error", higher_is_better=False, is_percentage=True),
    "r2": Metric("R\u00b2", is_bounded=False),
    "rmse": Metric("root mean squared error", higher_is_better=False, is_bounded=False),
    "mae": Metric("mean absolute error", higher_is_better=False, is_bounded=False),
    "mcd": Metric("mel-cepstral distortion (dB)", higher_is_better=False, is_bounded=False),
    "duration_error": Metric(
        "duration error", higher_is_better=False, is_bounded=False, is_percentage=True
    ),
    "stop_errors": Metric(
        "sounds without an end", higher_is_better=False, is_bounded=False, is_percentage=True
    ),
    "recognized": Metric("sounds that a recognizer reads", is_percentage=True),
    "loss": Metric("loss (nats)", higher_is_better=False, is_bounded=False),
    "perplexity": Metric("perplexity", higher_is_better=False, is_bounded=False),
    "bits_per_character": Metric("bits per character", higher_is_better=False, is_bounded=False),
}
HIGHER_IS_BETTER = {name: metric.higher_is_better for name, metric in METRICS.items()}
LABELS = {name: metric.label for name, metric in METRICS.items()}
# Metrics in use for strings and for sentences, which are shown first:
_STRINGS, _SENTENCES = ("exact_match", "ser"), ("bleu", "chrf")


def usual_metrics(metric: str, scores: Collection[str]) -> list[str]:
    """Return the names of the scores to show by default, the selection metric first.

    For strings and sentences, these are the metrics in use for them. For other tasks, all. Data
    without spans has no f1, even if it is the selection metric.
    """
    usual = next((group for group in (_STRINGS, _SENTENCES) if metric in group), tuple(scores))
    return [name for name in dict.fromkeys([metric, *usual]) if name in scores]


def best_of(metric: str) -> Callable[..., Any]:
    """Return `max` or `min`, whichever selects the best score (`max` for unknown metrics)."""
    return max if HIGHER_IS_BETTER.get(metric, True) else min


def which_is_better(metric: str) -> str:
    """Return "higher is better" or "lower is better"."""
    return f"{'higher' if HIGHER_IS_BETTER.get(metric, True) else 'lower'} is better"


def standard_error(metric: str, score: float, examples: int) -> float:
    """Return the approximate standard error of a score, or 0 if the metric is unbounded.

    For scores p from 0 to 100 it is that of a mean of n independent examples that are correct or
    wrong: sqrt(p (100 - p) / n).
    """
    if not METRICS[metric].is_bounded:
        return 0.0
    percent = min(max(score, 0.0), 100.0)  # error rates can exceed 100
    return math.sqrt(percent * (100 - percent) / examples)
