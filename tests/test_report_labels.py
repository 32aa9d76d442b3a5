"""Pictures of labels, numbers and frequencies: what is drawn is what was measured."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.metrics import HIGHER_IS_BETTER, class_table, confusion, number_table, reliability
from regard.metrics.metric_names import LABELS
from regard.views.report import write_report
from regard.views.report.label_report import MAX_DOTS, details_section
from regard.views.report.score_table import UNBOUNDED, format_score
from regard.views.report.zipf import zipf_section, zipf_svg

Y_TRUE = [("a",)] * 6 + [("b",)] * 3 + [("c",)]
Y_PRED = [("a",)] * 5 + [("b",)] + [("b",)] * 2 + [("a",)] + [("b",)]
EVIL = '"><script>alert(1)</script>'
CHECK = {
    "lines": ["some text"],
    "zipf": [[1, 1000], [10, 100], [100, 10]],
    "ngrams": [{"n": 1, "distinct": 100, "total": 5000, "once": 25}],
    "ngram_zipf": {"1": [[1, 1000], [10, 100], [100, 10]], "2": [[1, 50], [1000, 1]], "3": []},
}


def assert_whole(html: str) -> None:
    """Every tag is closed, and none comes from the data."""
    tags = re.findall(
        r"<(/?)([a-z0-9]+)[^<>]*?(/?)>", re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    )
    unclosed: list[str] = []
    for closing, tag, empty in tags:
        if closing:
            assert unclosed.pop() == tag
        elif not empty and tag != "meta":
            unclosed.append(tag)
    assert unclosed == []
    assert "<script>alert" not in html


def svgs(html: str) -> list[ElementTree.Element]:
    found = re.findall(r"<svg viewBox=.*?</svg>", html, re.DOTALL)
    named = [one.replace("&uarr;", "").replace("&rarr;", "") for one in found]
    return [ElementTree.fromstring(one) for one in named if 'role="img"' in one]


def write_run(folder: Path, facts: dict, final: dict, samples: list[dict], check: dict) -> str:
    records = [{"kind": "train", "step": 1, "loss": 1.0}, {"kind": "final", "step": 2} | final]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (folder / "run.json").write_text(json.dumps(facts))
    (folder / "check.json").write_text(json.dumps(check))
    html = write_report(folder).read_text("utf-8")
    html = re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)
    assert_whole(html)
    return html


def test_the_class_table_has_every_number():
    html = details_section({"classes": class_table(Y_PRED, Y_TRUE)})
    assert_whole(html)
    rows = re.findall(r"<tr>(<td.*?)</tr>", html)
    cells = [re.findall(r">([^<>]+)</td>", row) for row in rows]
    # a: 5 correct of 6 predicted and 6 expected; b: 2 of 4 and 3; c is never predicted.
    assert cells[0] == ["a", "6", "6", "83.3", "83.3", "83.3"]
    assert cells[1] == ["b", "3", "4", "50.0", "66.7", "57.1"]
    assert cells[2] == ["c", "1", "0", "0.0", "0.0", "0.0"]


def test_a_long_table_is_folded_and_says_how_much():
    names = [(f"label {i}",) for i in range(45)]
    html = details_section({"classes": class_table(names, names)})
    assert "15 less frequent" in html
    assert html.count('dir="auto"') == 45
    assert_whole(html)


def test_the_matrix_shows_each_count_in_its_row_and_column():
    html = details_section({"confusion": confusion(Y_PRED, Y_TRUE)})
    assert_whole(html)
    (picture,) = svgs(html)
    assert "rows: expected, columns: predicted" in html
    drawn = {}
    for group in picture.iter("g"):
        correct, y_pred = re.match(
            r"expected (\w), predicted (\w)", group.find("title").text
        ).groups()
        drawn[correct, y_pred] = int(group.find("text").text)
    pairs = zip(Y_TRUE, Y_PRED, strict=True)
    expected = Counter((correct[0], y_pred[0]) for correct, y_pred in pairs)
    assert drawn == expected
    shades = {
        group.find("title").text: float(group.findall("rect")[1].get("fill-opacity"))
        for group in picture.iter("g")
    }
    # shaded by the fraction of the row: all of row c is one example; 2 of 3 are correct for b
    ordered = sorted(shades, key=shades.get)
    assert ordered[-1].startswith("expected c, predicted b") and "100 % of the row" in ordered[-1]
    assert ordered[-2].startswith("expected a, predicted a")


def test_the_matrix_places_texts_inside_its_frame():
    names = [(f"a rather long label {i}",) for i in range(40)]
    html = details_section({"confusion": confusion(names, names)})
    (picture,) = svgs(html)
    _, _, width, height = map(float, picture.get("viewBox").split())
    for text in picture.iter("text"):
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
    assert width <= 984  # what the page has for it
    assert "others (11)" in html


def test_reliability_bars_have_the_height_of_the_accuracy():
    rows = reliability([0.95, 0.95, 0.55, 0.55], [True, True, True, False])
    (picture,) = svgs(details_section({"reliability": rows}))
    ys = [float(path.get("d").split()[1].split("H")[0]) for path in picture.iter("path")]
    bottom, top = max(ys[:-1]), min(ys[:-1])
    bars = [rect for rect in picture.iter("rect") if rect.get("class") == "bar"]
    shares = [float(bar.get("height")) / (bottom - top) for bar in bars]
    assert shares == pytest.approx([0.5, 1.0], abs=0.01)
    assert "2 examples" in "".join(picture.itertext())


def test_scatter_puts_correct_predictions_on_the_diagonal():
    (picture,) = svgs(details_section({"scatter": [[1.0, 1.0], [3.0, 3.0], [5.0, 1.0]]}))
    start, end = re.findall(r"[ML]([\d.]+) ([\d.]+)", picture.find(".//*[@class='equal']").get("d"))
    (x0, y0), (x1, y1) = map(float, start), map(float, end)
    off = [
        abs((float(dot.get("cx")) - x0) / (x1 - x0) - (float(dot.get("cy")) - y0) / (y1 - y0))
        for dot in picture.iter("circle")
    ]
    assert off[:2] == pytest.approx([0, 0], abs=0.01) and off[2] > 0.5


def test_many_dots_are_thinned_and_counted():
    html = details_section({"scatter": [[float(i), float(i)] for i in range(3 * MAX_DOTS)]})
    assert html.count("<circle") == MAX_DOTS
    assert f"{MAX_DOTS:,} of {3 * MAX_DOTS:,}" in html
    assert details_section({"scatter": [[float("nan"), 1.0]]}) == ""


def test_numbers_have_a_row_for_each_target():
    rows = number_table([(1.0, 4.0), (3.0, 8.0)], [(1.0, 5.0), (3.0, 9.0)], ["x", "<y>"])
    html = details_section({"numbers": rows})
    assert '<td dir="auto" translate="no">&lt;y&gt;</td>' in html
    assert ">0.7500<" in html and html.count(">1.000<") == 3  # y's R2; x's, and y's errors


def test_nothing_gives_nothing():
    assert details_section({}) == zipf_section({}) == zipf_svg({}) == ""
    assert details_section({"classes": [], "confusion": {}, "scatter": []}) == ""
    assert zipf_section({"zipf": [], "ngrams": []}) == ""


def test_labels_are_escaped():
    evil = [(EVIL,)] * 2
    details = {"classes": class_table(evil, evil), "confusion": confusion(evil, evil)}
    html = details_section(details)
    assert_whole(html)
    assert len(svgs(html)) == 1


def test_lines_fall_through_the_decades():
    picture = ElementTree.fromstring(zipf_svg(CHECK))
    space = "{http://www.w3.org/2000/svg}"
    lines = [line for line in picture.iter(f"{space}polyline")]
    assert [line.get("class") for line in lines] == ["line s0", "line s1"]
    points = [tuple(map(float, p.split(","))) for p in lines[0].get("points").split()]
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(points)]
    assert steps[0] == pytest.approx(steps[1], abs=0.11)  # 1 / rank is straight
    texts = [text.text for text in picture.iter(f"{space}text")]
    assert {"1", "10", "100", "1,000", "1-grams", "2-grams"} <= set(texts)
    assert "var(" not in zipf_svg(CHECK)


def test_frequencies_have_a_table_and_fall_back_to_single_counts():
    html = zipf_section(CHECK)
    assert_whole(html)
    assert "5,000" in html and "(25 %)" in html
    single = zipf_section({"zipf": CHECK["zipf"]})
    assert "1-grams" in single and "2-grams" not in single and "<table" not in single
    assert "circle" in zipf_section({"zipf": [[1, 1]]})
    assert len(zipf_svg({"zipf": [[i, 10**6 // i] for i in range(1, 10**5)]})) < 30_000


def test_every_measure_has_a_name_and_only_percents_a_strip(tmp_path):
    assert set(LABELS) >= set(HIGHER_IS_BETTER)
    scores = dict.fromkeys(HIGHER_IS_BETTER, 0.5)
    html = write_run(tmp_path, {}, {"scores": scores}, [], {})
    assert html.count('class="rail"') == len(scores) - len(UNBOUNDED)
    assert "bits per character" in html and "calibration error" in html


def test_scores_are_shown_with_the_digits_they_need():
    assert format_score("accuracy", 93.456) == "93.5"
    assert format_score("accuracy", 93.456, 2) == "93.46"
    assert [format_score("r2", value) for value in (0.91234, -3.0, 0.0)] == [
        "0.9123",
        "-3.000",
        "0.000",
    ]
    assert [format_score("rmse", value) for value in (12345.6, 1e-5, 2e12)] == [
        "12,346",
        "1e-05",
        "2e+12",
    ]


def test_a_run_with_labels(tmp_path):
    details = {"classes": class_table(Y_PRED, Y_TRUE), "confusion": confusion(Y_PRED, Y_TRUE)}
    samples = [
        {"step": 2, "source": "x", "references": [["B", "O"]], "prediction": "B O"},
        {"step": 2, "source": "y", "references": [["B", "O"]], "prediction": ["O", "O"]},
    ]
    facts = {"task": "classify", "metric": "accuracy"}
    final = {"scores": {"accuracy": 70.0, "f1": 60.0}, "details": details}
    html = write_run(tmp_path, facts, final, samples, CHECK)
    assert "Loss, nats per example" in html and "nats per token" not in html
    assert re.search(r'class="value">70\.0<small>%', html)
    assert 'class="matrix"' in html and 'class="zipf"' in html
    assert "1 of 2 correct at step 2" in html
    assert '<mark class="missing">B</mark> O' in html


@pytest.mark.parametrize(
    ("task", "title"),
    [("regress", "<span>Loss</span>"), ("tag", "Loss, nats per token"), (None, "nats per token")],
)
def test_the_loss_says_its_unit(tmp_path, task, title):
    html = write_run(tmp_path, {"task": task}, {"scores": {"f1": 50.0}}, [], {})
    assert title in html
    assert ("span F1" in html) == (task == "tag")


def test_numbers_are_not_marked_as_wrong(tmp_path):
    samples = [{"step": 2, "source": "x", "references": ["2.5"], "prediction": "2.4"}]
    html = write_run(tmp_path, {"task": "regress"}, {}, samples, {})
    assert "At step 2." in html and 'aria-label="wrong"' not in html and "<mark" not in html


def test_generated_texts_are_shown_as_they_are(tmp_path):
    samples = [
        {"step": 1, "kind": "generated", "text": "old"},
        {"step": 2, "kind": "generated", "text": f"Once\n  upon {EVIL}"},
        {"step": 2, "kind": "generated", "text": "again"},
    ]
    html = write_run(tmp_path, {}, {}, samples, {})
    assert "Generated at step 2." in html
    assert '<pre dir="auto">Once\n  upon &quot;' in html and ">again</pre>" in html
    assert ">old<" not in html and "correct at step" not in html and "<table" not in html


def test_counts_are_plotted_and_not_listed(tmp_path):
    check = {key: value for key, value in CHECK.items() if key != "lines"} | {"pairs": 12}
    html = write_run(tmp_path, {}, {}, [], check)
    assert "&quot;pairs&quot;: 12" in html and "ngram_zipf" not in html
