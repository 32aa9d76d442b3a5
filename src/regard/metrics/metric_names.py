"""All metrics by name, in the order they are shown."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """label: its name in words; higher: whether a better model has a larger number; bounded:
    whether it is on a scale from 0 to 100; share: whether it is a percentage of something."""

    label: str
    higher: bool = True
    bounded: bool = True
    share: bool = False


METRICS = {
    "exact_match": Metric("exact match", share=True),
    "ser": Metric("symbol error rate", higher=False, share=True),
    "cer": Metric("character error rate", higher=False, share=True),
    "wer": Metric("word error rate", higher=False, share=True),
    "bleu": Metric("BLEU"),
    "chrf": Metric("chrF"),
    "short_bleu": Metric("short-sentence BLEU"),
    "accuracy": Metric("accuracy", share=True),
    "f1": Metric("F1"),  # of labels or of spans: see `measure` of the report
    "macro_f1": Metric("macro F1"),
    "oov_accuracy": Metric("accuracy on unknown words", share=True),
    "sentence_accuracy": Metric("sentence accuracy", share=True),
    "subset_accuracy": Metric("subset accuracy", share=True),
    "log_loss": Metric("log loss (nats)", higher=False, bounded=False),
    "ece": Metric("calibration error", higher=False, share=True),
    "r2": Metric("R\u00b2", bounded=False),
    "rmse": Metric("root mean squared error", higher=False, bounded=False),
    "mae": Metric("mean absolute error", higher=False, bounded=False),
    "loss": Metric("loss (nats)", higher=False, bounded=False),
    "perplexity": Metric("perplexity", higher=False, bounded=False),
    "bits_per_character": Metric("bits per character", higher=False, bounded=False),
}
HIGHER_IS_BETTER = {name: metric.higher for name, metric in METRICS.items()}
LABELS = {name: metric.label for name, metric in METRICS.items()}


def best_of(metric: str) -> Callable[..., Any]:
    """`max` or `min`: what picks the best of several scores; a large one where it is not known."""
    return max if HIGHER_IS_BETTER.get(metric, True) else min


def which_is_better(metric: str) -> str:
    """The direction of a metric in words."""
    return f"{'higher' if HIGHER_IS_BETTER.get(metric, True) else 'lower'} is better"
