"""Figures of what the model answers on dev: how different, how long, and whether it ends."""

from collections import Counter
from typing import Any

from regard.experiments.diagnose.findings import Figures
from regard.experiments.diagnose.subject import Subject

SOURCES = 100  # that are answered, at most
REPEATS = 4  # the same one to three tokens so often in a row count as repeating


def answer_figures(subject: Subject) -> Figures:
    """Shares of different, empty, cut and repeating answers, beside those of the right ones."""
    examples = subject.task.examples(subject.dev[:SOURCES])
    search = subject.config.search
    if hasattr(search, "beam"):
        search = search.model_copy(update={"beam": 1})  # what the model itself says, and fast
    sources = [example.source for example in examples]
    found = subject.predictor.predict(sources, search)
    given = [prediction.value for prediction in found]
    wanted = [example.references[0] for example in examples]
    common = Counter(map(repr, given)).most_common(1)[0]
    figures: Figures = {
        "answers": len(given),
        "different": len(set(map(repr, given))),
        "different_right": len(set(map(repr, wanted))),
        "most_frequent": {"answer": common[0][:80], "share": common[1] / len(given)},
    }
    if subject.task.output_tokenizer is not None:
        cut = subject.task.output_tokenizer.tokenize
        figures |= {
            "empty": _share([not text.strip() for text in given]),
            "cut": _share([prediction.truncated for prediction in found]),
            "repeating": _share([repeats(cut(text)) for text in given]),
            "repeating_right": _share([repeats(cut(text)) for text in wanted]),
            "first": [[sources[i], given[i], wanted[i]] for i in range(min(3, len(given)))],
        }
    return figures


def repeats(tokens: list[Any]) -> bool:
    """Whether one to three tokens come so often in a row."""
    for size in (1, 2, 3):
        run = 0
        for place in range(size, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - size] else 0
            if run >= size * (REPEATS - 1):
                return True
    return False


def _share(marks: list[bool]) -> float:
    return sum(marks) / len(marks) if marks else 0.0
