"""Sample predictions as a table: right or wrong, and where they differ from the reference."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from html import escape

from regard.metrics import edit_distance
from regard.storage.run_folder import Record
from regard.views.report.curves import run_label
from regard.views.report.html_parts import note, section, table
from regard.views.report.overview import Summary
from regard.views.report.score_table import task_view


def samples_section(samples: Sequence[Record], marked: bool = True) -> str:
    """Answers beside the right ones, and texts that the model wrote on its own.

    marked: whether answers are right or wrong.
    """
    written = [sample for sample in samples if sample.get("kind") == "generated"]
    answers = [sample for sample in samples if sample.get("kind") != "generated"]
    parts = []
    if answers:
        right, step = sum(map(is_right, answers)), escape(str(answers[0].get("step", "?")))
        said = f"{right} of {len(answers)} right at step {step}." if marked else f"At step {step}."
        head = "<th></th><th>source</th><th>prediction</th><th>reference</th>"
        parts += [note(said), table("samples", head, [_row(one, marked) for one in answers])]
    if written:
        step = escape(str(written[0].get("step", "?")))
        texts = "".join(
            f'<pre dir="auto">{escape(text_of(one.get("text")))}</pre>' for one in written
        )
        parts += [note(f"Generated at step {step}."), f'<div class="generated">{texts}</div>']
    return section("Samples", *parts)


def answers_section(runs: Sequence[Summary], names: list[str]) -> str:
    """For each source that two runs or more were asked at their last validation, all answers."""
    asked: dict[str, dict[int, Record]] = {}
    for place, run in enumerate(runs):
        for number, sample in enumerate(run.run.samples, 1):
            asked.setdefault(_source(sample, number), {}).setdefault(place, sample)
    shared = {source: found for source, found in asked.items() if len(found) > 1}
    if not asked:
        return ""
    left_out = len(asked) - len(shared)
    said = "Of the last validation of each run."
    if left_out:
        said += f" Left out: {left_out:,} of {len(asked):,} sources that only one run was asked."
    marked = task_view(runs[0].run).marked
    blocks = "".join(_block(source, found, names, marked) for source, found in shared.items())
    return section("Samples", note(said), f'<div class="answers">{blocks}</div>')


def _source(sample: Record, number: int) -> str:
    """What the sample answers; texts that a model wrote on its own have only a number."""
    if sample.get("kind") == "generated":
        return f"text {number}"
    return text_of(sample.get("source"))


def _block(source: str, found: dict[int, Record], names: list[str], marked: bool) -> str:
    sample = next(iter(found.values()))
    wanted = " or ".join(reference_texts(sample))
    rows = "".join(_answer(place, names[place], answer, marked) for place, answer in found.items())
    below = f'<p class="wanted" dir="auto">{escape(wanted)}</p>' if wanted else ""
    return f'<article><h3 dir="auto">{escape(source)}</h3>{below}<dl>{rows}</dl></article>'


def _answer(place: int, name: str, sample: Record, marked: bool) -> str:
    """A run's answer, with what is too much in it marked."""
    name = run_label(place, name)
    if sample.get("kind") == "generated":
        return f'<dt>{name}</dt><dd dir="auto">{escape(text_of(sample.get("text")))}</dd>'
    prediction = text_of(sample.get("prediction"))
    if not marked or not reference_texts(sample):
        return f'<dt>{name}</dt><dd dir="auto">{escape(prediction)}</dd>'
    right = is_right(sample)
    answer, _ = compare(prediction, closest_reference(sample))
    kind, sign = ("right", "&#10003;") if right else ("wrong", "&#10007;")
    shown = answer or "<em>nothing</em>"
    return (
        f'<dt>{name}</dt><dd class="{kind}"><b aria-label="{kind}">{sign}</b> '
        f'<span dir="auto">{shown}</span></dd>'
    )


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
