"""Metrics for text, labels, spans and numbers."""

from regard.metrics.label_metrics import (
    calibration_error,
    class_table,
    confusion,
    fit_temperature,
    fit_temperature_multilabel,
    measure_labels,
    reliability,
)
from regard.metrics.metric_names import HIGHER_IS_BETTER, standard_error
from regard.metrics.numbers import measure_numbers, number_table
from regard.metrics.rewards import rewards
from regard.metrics.spans import (
    is_span_scheme,
    measure_tags,
    span_table,
    spans,
)
from regard.metrics.tables import confusion_lines, table_lines
from regard.metrics.text_metrics import (
    edit_distance,
    intervals,
    score,
    score_variants,
    short_bleu,
    signatures,
)

__all__ = [
    "HIGHER_IS_BETTER",
    "calibration_error",
    "class_table",
    "confusion",
    "confusion_lines",
    "edit_distance",
    "fit_temperature",
    "fit_temperature_multilabel",
    "intervals",
    "is_span_scheme",
    "measure_labels",
    "measure_numbers",
    "measure_tags",
    "number_table",
    "reliability",
    "rewards",
    "score",
    "score_variants",
    "short_bleu",
    "signatures",
    "span_table",
    "spans",
    "standard_error",
    "table_lines",
]
