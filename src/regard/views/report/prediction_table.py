"""What several runs answer to the same sources, below each other."""

from collections.abc import Sequence
from html import escape

from regard.storage.run_folder import Record
from regard.views.report.best import run_label
from regard.views.report.overview import Summary
from regard.views.report.samples import (
    closest_reference,
    compare,
    is_right,
    reference_texts,
    text_of,
)


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
    note = "Of the last validation of each run."
    if left_out:
        note += f" Left out: {left_out:,} of {len(asked):,} sources that only one run was asked."
    marked = runs[0].task != "regress"
    blocks = "".join(_block(source, found, names, marked) for source, found in shared.items())
    return (
        f'<section><h2>Samples</h2><p class="note">{note}</p>'
        f'<div class="answers">{blocks}</div></section>'
    )


def _source(sample: Record, number: int) -> str:
    """What the sample answers; texts that a model wrote on its own have only a number."""
    if sample.get("kind") == "generated":
        return f"text {number}"
    return text_of(sample.get("source"))


def _block(source: str, found: dict[int, Record], names: list[str], marked: bool) -> str:
    sample = next(iter(found.values()))
    wanted = " or ".join(reference_texts(sample))
    rows = "".join(_row(place, names[place], answer, marked) for place, answer in found.items())
    below = f'<p class="wanted" dir="auto">{escape(wanted)}</p>' if wanted else ""
    return f'<article><h3 dir="auto">{escape(source)}</h3>{below}<dl>{rows}</dl></article>'


def _row(place: int, name: str, sample: Record, marked: bool) -> str:
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
