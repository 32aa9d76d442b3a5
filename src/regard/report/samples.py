"""Sample predictions as a table: right or wrong, and where they differ from the reference."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from regard.metrics import edit_distance
from regard.report.folder import Record


def samples_table(samples: Sequence[Record]) -> str:
    """A table with a row for each sample; an empty text if there is none."""
    rows = [_row(sample) for sample in samples]
    if not rows:
        return ""
    head = "<th></th><th>source</th><th>prediction</th><th>reference</th>"
    return f'<table class="samples"><thead><tr>{head}</tr></thead>{"".join(rows)}</table>'


def is_right(sample: Record) -> bool:
    """Whether the prediction equals one of the references."""
    return sample.get("prediction", "") in _references(sample)


def compare(prediction: str, reference: str) -> tuple[str, str]:
    """Both texts as HTML, with what is only in one of them marked.

    Texts with spaces in them are compared by words, others by characters.
    """
    by_word = " " in reference.strip() or " " in prediction.strip()
    left, right = _units(prediction, by_word), _units(reference, by_word)
    joint = " " if by_word else ""
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    shown_left, shown_right = [], []
    for operation, left_start, left_end, right_start, right_end in matcher.get_opcodes():
        same = operation == "equal"
        shown_left.append(_marked(left[left_start:left_end], joint, "" if same else "extra"))
        shown_right.append(_marked(right[right_start:right_end], joint, "" if same else "missing"))
    return joint.join(filter(None, shown_left)), joint.join(filter(None, shown_right))


def _row(sample: Record) -> str:
    prediction, references = str(sample.get("prediction", "")), _references(sample)
    right = is_right(sample)
    others: list[str] = []
    if references:
        closest = prediction if right else min(references, key=lambda r: _distance(prediction, r))
        others = [reference for reference in references if reference != closest]
        answer, expected = compare(prediction, closest)
    else:
        answer, expected = escape(prediction), ""

    sign = '<b aria-label="right">&#10003;</b>' if right else '<b aria-label="wrong">&#10007;</b>'
    more = "".join(f'<small dir="auto">or {escape(other)}</small>' for other in others)
    empty = "<em>nothing</em>"
    return (
        f'<tr class="{"right" if right else "wrong"}"><td>{sign}</td>'
        f'<td dir="auto" data-label="source">{escape(str(sample.get("source", "")))}</td>'
        f'<td dir="auto" data-label="prediction">{answer or empty}</td>'
        f'<td dir="auto" data-label="reference">{expected or empty}{more}</td></tr>'
    )


def _references(sample: Record) -> list[str]:
    references = sample.get("references") or []
    return [str(text) for text in references] if isinstance(references, list) else []


def _units(text: str, by_word: bool) -> list[str]:
    return text.split() if by_word else list(text)


def _distance(prediction: str, reference: str) -> int:
    by_word = " " in reference.strip() or " " in prediction.strip()
    return edit_distance(_units(prediction, by_word), _units(reference, by_word))


def _marked(units: Sequence[str], joint: str, kind: str) -> str:
    text = escape(joint.join(units))
    return f'<mark class="{kind}">{text}</mark>' if kind and text else text
