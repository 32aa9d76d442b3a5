"""Report section on sample predictions, with differences from the references marked."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from regard.metrics import edit_distance
from regard.storage.run_folder import Record
from regard.views.report.curves import run_label
from regard.views.report.html_parts import note, section, sentences, table
from regard.views.report.overview import RunSummary
from regard.views.report.pictures import picture
from regard.views.report.score_table import task_view

USER = 'dir="auto" translate="no"'  # attributes of elements with data of the user
EMPTY = '<em translate="yes">empty</em>'


def samples_section(samples: Sequence[Record], marked: bool = True) -> str:
    """Return a table of sample predictions and references, and generated texts.

    marked: whether to mark predictions as correct or wrong.
    """
    generated = [sample for sample in samples if sample.get("kind") == "generated"]
    predictions = [sample for sample in samples if sample.get("kind") != "generated"]
    parts = []
    if predictions:
        count, step = (
            sum(map(is_correct, predictions)),
            escape(str(predictions[0].get("step", "?"))),
        )
        text = f"At step {step}."
        if marked:
            text = f"{count} of {len(predictions)} correct at step {step}."
        head = "<th></th><th>source</th><th>prediction</th><th>reference</th>"
        parts += [note(text), table("samples", head, [_row(one, marked) for one in predictions])]
    if generated:
        step = escape(str(generated[0].get("step", "?")))
        texts = "".join(
            f'<pre dir="auto">{escape(text_of(one.get("text")))}</pre>' for one in generated
        )
        parts += [note(f"Generated at step {step}."), f'<div class="generated">{texts}</div>']
    return section("Samples", *parts)


def prediction_comparison(runs: Sequence[RunSummary], names: list[str]) -> str:
    """Return the predictions of all runs for the sources that at least two runs share."""
    by_source: dict[str, dict[int, Record]] = {}
    for index, run in enumerate(runs):
        for number, sample in enumerate(run.run.samples, 1):
            by_source.setdefault(_source(sample, number), {}).setdefault(index, sample)
    shared = {source: found for source, found in by_source.items() if len(found) > 1}
    if not by_source:
        return ""
    skipped = len(by_source) - len(shared)
    notes = ["Predictions at the last validation of each run."]
    if skipped:
        notes.append(f"Skipped: {skipped:,} of {len(by_source):,} sources that only one run has.")
    marked = task_view(runs[0].run).marked
    blocks = "".join(_block(source, found, names, marked) for source, found in shared.items())
    return section("Samples", note(sentences(notes)), f'<div class="predictions">{blocks}</div>')


def _source(sample: Record, number: int) -> str:
    """Return the source of a sample, or `text 3` for the third generated text."""
    if sample.get("kind") == "generated":
        return f"text {number}"
    return text_of(sample.get("source"))


def _block(source: str, found: dict[int, Record], names: list[str], marked: bool) -> str:
    sample = next(iter(found.values()))
    expected = " or ".join(reference_texts(sample))
    rows = "".join(
        _prediction(index, names[index], sample, marked) for index, sample in found.items()
    )
    below = f'<p class="expected" {USER}>{escape(expected)}</p>' if expected else ""
    mark = "" if sample.get("kind") == "generated" else USER
    return f"<article><h3 {mark}>{escape(source)}</h3>{below}<dl>{rows}</dl></article>"


def _prediction(index: int, name: str, sample: Record, marked: bool) -> str:
    """Return the prediction of a run, with text that is not in the reference marked."""
    name = run_label(index, name)
    if sample.get("kind") == "generated":
        return f"<dt>{name}</dt><dd {USER}>{escape(text_of(sample.get('text')))}</dd>"
    prediction = text_of(sample.get("prediction"))
    if not marked or not reference_texts(sample):
        return f"<dt>{name}</dt><dd {USER}>{escape(prediction)}</dd>"
    correct = is_correct(sample)
    text, _ = compare_texts(prediction, closest_reference(sample))
    kind, sign = ("correct", "&#10003;") if correct else ("wrong", "&#10007;")
    shown = text or EMPTY
    return (
        f'<dt>{name}</dt><dd class="{kind}"><b aria-label="{kind}">{sign}</b> '
        f"<span {USER}>{shown}</span></dd>"
    )


def is_correct(sample: Record) -> bool:
    """Return whether the prediction equals one of the references."""
    return text_of(sample.get("prediction")) in reference_texts(sample)


def compare_texts(prediction: str, reference: str) -> tuple[str, str]:
    """Return both texts as HTML, with differences marked.

    If one of the texts has spaces, words are compared, otherwise characters.
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
    correct = is_correct(sample)
    others: list[str] = []
    if not marked:
        text, expected = escape(prediction), escape(" or ".join(references))
    elif references:
        closest = closest_reference(sample)
        others = [reference for reference in references if reference != closest]
        text, expected = compare_texts(prediction, closest)
    else:
        text, expected = escape(prediction), ""

    kind = ("correct" if correct else "wrong") if marked else "plain"
    sign = f'<b aria-label="{kind}">&#{10003 if correct else 10007};</b>' if marked else ""
    more = "".join(
        f"<small><span>or</span> <span {USER}>{escape(other)}</span></small>" for other in others
    )
    return (
        f'<tr class="{kind}"><td>{sign}</td>'
        f'<td {USER} data-label="source">{_source_cell(sample)}</td>'
        f'<td {USER} data-label="prediction">{text or EMPTY}</td>'
        f'<td data-label="reference"><span {USER}>{expected or EMPTY}</span>{more}</td></tr>'
    )


def _source_cell(sample: Record) -> str:
    """Return the source of a sample as HTML, with its picture, if any."""
    text = text_of(sample.get("source"))
    image = picture(sample.get("image"), text)
    return image + f"<small>{escape(text)}</small>" if image else escape(text)


def closest_reference(sample: Record) -> str:
    """Return the reference with the smallest edit distance to the prediction."""
    prediction = text_of(sample.get("prediction"))
    return min(reference_texts(sample), key=lambda text: _distance(prediction, text))


def reference_texts(sample: Record) -> list[str]:
    """Return all references of a sample as texts."""
    references = sample.get("references") or []
    return [text_of(text) for text in references] if isinstance(references, list) else []


def text_of(value: object) -> str:
    """Return a value as text; lists of tags or labels are joined by spaces."""
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
