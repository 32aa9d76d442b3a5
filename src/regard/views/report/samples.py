"""Sample predictions as a table: right or wrong, and where they differ from the reference."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from regard.metrics import edit_distance
from regard.storage.run_folder import Record


def samples_section(samples: Sequence[Record], task: str = "") -> str:
    """Answers beside the right ones, and texts that the model wrote on its own.

    In a `regress` run answers are numbers: near ones are good too, so none is marked as wrong.
    """
    written = [sample for sample in samples if sample.get("kind") == "generated"]
    answers = [sample for sample in samples if sample.get("kind") != "generated"]
    parts = []
    if answers:
        right, step = sum(map(is_right, answers)), escape(str(answers[0].get("step", "?")))
        marked = task != "regress"
        note = f"{right} of {len(answers)} right at step {step}." if marked else f"At step {step}."
        parts.append(f'<p class="note">{note}</p>{samples_table(answers, marked)}')
    if written:
        step = escape(str(written[0].get("step", "?")))
        texts = "".join(
            f'<pre dir="auto">{escape(text_of(one.get("text")))}</pre>' for one in written
        )
        parts.append(f'<p class="note">Generated at step {step}.</p>')
        parts.append(f'<div class="generated">{texts}</div>')
    return f"<section><h2>Samples</h2>{''.join(parts)}</section>" if parts else ""


def samples_table(samples: Sequence[Record], marked: bool = True) -> str:
    """A table with a row for each sample; an empty text if there is none."""
    rows = [_row(sample, marked) for sample in samples]
    if not rows:
        return ""
    head = "<th></th><th>source</th><th>prediction</th><th>reference</th>"
    return f'<table class="samples"><thead><tr>{head}</tr></thead>{"".join(rows)}</table>'


def is_right(sample: Record) -> bool:
    """Whether the prediction equals one of the references."""
    return text_of(sample.get("prediction")) in reference_texts(sample)


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


def _row(sample: Record, marked: bool) -> str:
    prediction, references = text_of(sample.get("prediction")), reference_texts(sample)
    right = is_right(sample)
    others: list[str] = []
    if not marked:
        answer, expected = escape(prediction), escape(" or ".join(references))
    elif references:
        closest = closest_reference(sample)
        others = [reference for reference in references if reference != closest]
        answer, expected = compare(prediction, closest)
    else:
        answer, expected = escape(prediction), ""

    kind = ("right" if right else "wrong") if marked else "plain"
    sign = f'<b aria-label="{kind}">&#{10003 if right else 10007};</b>' if marked else ""
    more = "".join(f'<small dir="auto">or {escape(other)}</small>' for other in others)
    empty = "<em>nothing</em>"
    return (
        f'<tr class="{kind}"><td>{sign}</td>'
        f'<td dir="auto" data-label="source">{escape(text_of(sample.get("source")))}</td>'
        f'<td dir="auto" data-label="prediction">{answer or empty}</td>'
        f'<td dir="auto" data-label="reference">{expected or empty}{more}</td></tr>'
    )


def closest_reference(sample: Record) -> str:
    """The right answer that the prediction comes nearest to; there must be one."""
    prediction = text_of(sample.get("prediction"))
    return min(reference_texts(sample), key=lambda text: _distance(prediction, text))


def reference_texts(sample: Record) -> list[str]:
    """All right answers."""
    references = sample.get("references") or []
    return [text_of(text) for text in references] if isinstance(references, list) else []


def text_of(value: object) -> str:
    """A text as it is; tags and labels with spaces between them."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def _units(text: str, by_word: bool) -> list[str]:
    return text.split() if by_word else list(text)


def _distance(prediction: str, reference: str) -> int:
    by_word = " " in reference.strip() or " " in prediction.strip()
    return edit_distance(_units(prediction, by_word), _units(reference, by_word))


def _marked(units: Sequence[str], joint: str, kind: str) -> str:
    text = escape(joint.join(units))
    return f'<mark class="{kind}">{text}</mark>' if kind and text else text
