"""Statistics of dev predictions: how many are distinct, empty, truncated or repetitive."""

from collections import Counter
from typing import Any

from regard.experiments.diagnose.diagnosed_run import DiagnosedRun
from regard.experiments.diagnose.findings import Statistics

SOURCES = 100  # maximum number of dev sources to predict
REPEATS = 4  # times in a row that make one to three tokens repetitive


def prediction_statistics(subject: DiagnosedRun) -> Statistics:
    """Return the number of distinct predictions; fractions of empty, truncated, repetitive ones."""
    examples = subject.task.examples(subject.dev[:SOURCES])
    search = subject.config.search
    if hasattr(search, "beam"):
        search = search.model_copy(update={"beam": 1})  # greedy search is fast
    sources = [example.source for example in examples]
    found = subject.predictor.predict(sources, search)
    predicted = [prediction.value for prediction in found]
    expected = [example.references[0] for example in examples]
    common = Counter(repr(prediction.text) for prediction in found).most_common(1)[0]
    stats: Statistics = {
        "predictions": len(predicted),
        "distinct": len(set(map(repr, predicted))),
        "distinct_references": len(set(map(repr, expected))),
        "most_frequent": {"prediction": common[0][:80], "fraction": common[1] / len(predicted)},
    }
    if subject.task.output_tokenizer is not None:
        tokenize = subject.task.output_tokenizer.tokenize
        stats |= {
            "empty": _fraction([not text.strip() for text in predicted]),
            "truncated": _fraction([prediction.truncated for prediction in found]),
            "repetitive": _fraction([repeats(tokenize(text)) for text in predicted]),
            "repetitive_references": _fraction([repeats(tokenize(text)) for text in expected]),
            "first": [
                [subject.task.source.text(sources[i]), predicted[i], expected[i]]
                for i in range(min(3, len(predicted)))
            ],
        }
    return stats


def repeats(tokens: list[Any]) -> bool:
    """Return whether one to three tokens repeat REPEATS times in a row."""
    for size in (1, 2, 3):
        run = 0
        for position in range(size, len(tokens)):
            run = run + 1 if tokens[position] == tokens[position - size] else 0
            if run >= size * (REPEATS - 1):
                return True
    return False


def _fraction(flags: list[bool]) -> float:
    return sum(flags) / len(flags) if flags else 0.0
