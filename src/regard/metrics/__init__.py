"""How good are the answers: measures of text, of labels, of spans and of numbers."""

from regard.metrics.label_metrics import (
    calibration_error,
    class_table,
    confusion,
    fit_temperature,
    fit_temperature_several,
    label_intervals,
    label_scores,
    reliability,
)
from regard.metrics.metric_names import HIGHER_IS_BETTER
from regard.metrics.numbers import number_intervals, number_scores, number_table
from regard.metrics.spans import (
    is_span_scheme,
    span_intervals,
    span_scores,
    span_table,
    spans,
    tag_intervals,
    tag_scores,
)
from regard.metrics.tables import confusion_lines, table_lines
from regard.metrics.text_metrics import edit_distance, intervals, score, short_bleu, signatures

__all__ = [
    "HIGHER_IS_BETTER",
    "calibration_error",
    "class_table",
    "confusion",
    "confusion_lines",
    "edit_distance",
    "fit_temperature",
    "fit_temperature_several",
    "intervals",
    "is_span_scheme",
    "label_intervals",
    "label_scores",
    "number_intervals",
    "number_scores",
    "number_table",
    "reliability",
    "score",
    "short_bleu",
    "signatures",
    "span_intervals",
    "span_scores",
    "span_table",
    "spans",
    "table_lines",
    "tag_intervals",
    "tag_scores",
]
