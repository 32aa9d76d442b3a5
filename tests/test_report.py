"""The report of a run: right numbers, nothing unescaped, and a page for every broken folder."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from regard.core.errors import UserError
from regard.core.formatting import duration
from regard.views.report import write_report
from regard.views.report.curves import (
    MAX_POINTS,
    Series,
    downsample,
    plot_curves,
    tick_label,
    ticks,
)
from regard.views.report.samples import compare_texts

LOSSES = [(10, 3.5), (20, 1.75), (30, 0.7), (40, 0.35)]
DEV = [(20, 1.5, 25.0), (40, 0.5, 62.5)]
EMPTY_TAGS = {"meta", "br"}


def write_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    train = [
        {"kind": "train", "step": step, "epoch": step / 20, "loss": loss, "lr": 1e-3 / step}
        | {
            "grad_norm": 1.0,
            "tokens_per_second": 9000.0,
            "padding_fraction": 0.05,
            "elapsed_seconds": step * 5.0,
        }
        for step, loss in LOSSES
    ]
    dev = [
        {
            "kind": "dev",
            "step": step,
            "elapsed_seconds": 1.0,
            "loss": loss,
            "scores": {"exact_match": exact},
        }
        for step, loss, exact in DEV
    ]
    final = {
        "kind": "final",
        "step": 40,
        "scores": {"exact_match": 62.5, "ser": 12.25, "perplexity": 1.65},
        "intervals": {"exact_match": [58.25, 66.75]},
        "examples": 1234,
        "signatures": {"bleu": "nrefs:1|case:mixed"},
    }
    write_lines(tmp_path / "metrics.jsonl", [*train, *dev, final])
    samples = [
        {"step": 20, "source": "old", "references": ["o"], "prediction": "o"},
        {"step": 40, "source": "cat", "references": ["K AE T"], "prediction": "K AE T"},
        {"step": 40, "source": "dog", "references": ["X", "D AO G"], "prediction": "D AA G"},
    ]
    write_lines(tmp_path / "samples.jsonl", samples)
    run = {"name": "my run", "metric": "exact_match", "parameters": 1234567, "device": "cpu"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "check.json").write_text(json.dumps({"lines": ["train  10 examples"]}))
    settings = {
        "changed": {"training.lr": [None, 0.002]},
        "auto": [{"key": "model.width", "value": 192, "reason": "little data"}],
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "config.yaml").write_text("training: {lr: 0.002}\n")
    return tmp_path


def page(folder: Path) -> str:
    """The report without its script, which knows words of all reports."""
    html = write_report(folder).read_text("utf-8")
    return re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)


def figures(html: str) -> dict[str, str]:
    found = re.findall(r'<figure class="curve">.*?</figure>', html, re.DOTALL)
    return {re.search(r"<span>(.*?)</span>", one).group(1): one for one in found}


def embedded(figure: str) -> dict:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', figure).group(1))


def axis(figure: str, kind: str, offset: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """(value, pixel) of the first and the last number on an axis, as a reader would see them."""
    texts = re.findall(rf'<text class="{kind}.*?x="(.*?)" y="(.*?)">(.*?)</text>', figure)
    ends = [texts[0], texts[-1]]
    values = [float(text.removeprefix("step ").replace(",", "")) for _, _, text in ends]
    pixels = [float(x) if kind == "x" else float(y) - offset for x, y, _ in ends]
    return (values[0], pixels[0]), (values[1], pixels[1])


def read_off(pixel: float, ends: tuple[tuple[float, float], tuple[float, float]]) -> float:
    (low, start), (high, end) = ends
    return low + (pixel - start) / (end - start) * (high - low)


class Balance(HTMLParser):
    """Checks that every tag is closed and collects what would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_whole(html: str) -> None:
    balance = Balance()
    balance.feed(html)
    assert balance.open == []
    assert balance.addresses == []
    assert "url(" not in html and "@import" not in html


def test_the_top_shows_the_main_score_with_its_interval(folder):
    html = page(folder)
    assert "my run" in html
    assert re.search(r'class="value">62\.5<small>%', html)
    assert "58.2 to 66.8" in html
    assert "1,234 dev examples" in html
    assert "1,234,567" in html
    assert "3 min 20 s" in html  # the last training record: 40 steps of 5 seconds
    assert "not finished" not in html


def test_label_smoothing_is_explained(folder):
    assert "Label smoothing" not in page(folder)
    (folder / "config.yaml").write_text("objective:\n  label_smoothing: 0.1\n")
    assert "the correct token at most 90 %." in page(folder)
    lines = [
        json.loads(line) for line in (folder / "metrics.jsonl").read_text().split("\n") if line
    ]
    del lines[-1]["scores"]["perplexity"]  # a tagger has none
    write_lines(folder / "metrics.jsonl", lines)
    assert "Label smoothing" not in page(folder)


def test_the_page_is_whole_and_needs_no_network(folder):
    assert_whole(page(folder))


def test_embedded_numbers_are_those_of_the_run(folder):
    shown = figures(page(folder))
    series = embedded(shown["Loss, nats per token"])["series"]
    assert series[0] == {"name": "train", "points": [list(point) for point in LOSSES]}
    assert series[1] == {"name": "dev", "points": [[20, 1.5], [40, 0.5]]}
    exact = embedded(shown["Exact match (dev)"])["series"][0]
    assert exact["points"] == [[20, 25.0], [40, 62.5]]
    assert set(shown) >= {"Learning rate", "Gradient norm", "Tokens per second"}


def test_plotted_lines_match_the_axes(folder):
    figure = figures(page(folder))["Loss, nats per token"]
    x_axis, y_axis = axis(figure, "x", 0), axis(figure, "y", 4)
    line = re.search(r'class="line s0" points="(.*?)"', figure).group(1)
    drawn = [tuple(map(float, pixel.split(","))) for pixel in line.split()]
    assert len(drawn) == len(LOSSES)
    for (x, y), (step, loss) in zip(drawn, LOSSES, strict=True):
        assert read_off(x, x_axis) == pytest.approx(step, abs=0.05)
        assert read_off(y, y_axis) == pytest.approx(loss, abs=0.01)


def test_samples_are_those_of_the_latest_step_against_the_closest_reference(folder):
    html = page(folder)
    assert "1 of 2 correct at step 40" in html
    assert ">old<" not in html
    assert 'D <mark class="extra">AA</mark> G' in html
    assert 'D <mark class="missing">AO</mark> G' in html
    assert '<span>or</span> <span dir="auto" translate="no">X</span>' in html


def test_settings_data_and_config_are_shown(folder):
    html = page(folder)
    assert "<h3>Set by you</h3><p><code>training.lr=0.002</code></p>" in html
    assert '<td><code>model.width=192</code></td><td class="reason">little data</td>' in html
    assert "<tr><td>train</td><td>10 examples</td></tr>" in html
    assert "training: {lr: 0.002}" in html
    assert "sacrebleu nrefs:1|case:mixed" in html


def test_settings_of_the_user_and_automatic_ones_are_separate_and_few_lines(folder):
    settings = {
        "changed": {"training.lr": [None, 0.002], "model.width": [None, 192]},
        "user": ["training.lr", "training.budget", "model.layers"],
        "auto": [
            {"key": "model.width", "value": 192, "reason": "little data"},
            {"key": "model.layers", "value": 2, "reason": "little data"},
            {"key": "task.metric", "value": "f1", "reason": "spans"},
        ],
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "config.yaml").write_text("training: {lr: 0.002, budget: 60.0, seed: 1}\n")
    html = page(folder)
    users, auto = html.split("<h3>Set by you</h3>")[1].split("<h3>Set automatically</h3>")
    assert re.findall("<code>(.*?)</code>", users) == ["training.lr=0.002", "training.budget=60.0"]
    rows = re.findall("<tr>(.*?)</tr>", auto.split("</table>")[0])
    assert [re.findall("<code>(.*?)</code>", row) for row in rows] == [
        ["model.width=192", "model.layers=2"],
        ["task.metric=f1"],
    ]
    assert "little data" in rows[0] and "spans" in rows[1]


def test_the_data_check_is_a_table(folder):
    lines = [
        "warning: 2 duplicate pairs (first: line 3)",
        "",
        "                            source        target",
        "length p50                  11            10",
        "",
        "label       count  percent",
        "time           20    50.0%  ####",
    ]
    (folder / "check.json").write_text(json.dumps({"lines": lines}))
    html = page(folder)
    assert "<p>warning: 2 duplicate pairs (first: line 3)</p>" in html
    assert "<tr><td></td><td>source</td><td>target</td></tr>" in html
    assert "<tr><td>length p50</td><td>11</td><td>10</td></tr>" in html
    assert '<tr><td translate="no">time</td><td>20</td><td>50.0%</td><td>####</td></tr>' in html


def test_everything_from_the_data_is_escaped(folder):
    evil = '</script><script>alert("1")</script><img src=x>'
    write_lines(
        folder / "samples.jsonl",
        [{"step": 1, "source": evil, "references": [evil + "x", "y"], "prediction": evil}],
    )
    (folder / "run.json").write_text(json.dumps({"name": evil, "metric": evil, "command": evil}))
    (folder / "check.json").write_text(json.dumps({"lines": [evil]}))
    settings = {"changed": {evil: [evil, evil]}, "auto": [{"key": evil, "value": evil}]}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "config.yaml").write_text(evil)
    with open(folder / "metrics.jsonl", "a") as file:
        scores = {"scores": {evil: 1.0}, "signatures": {evil: evil}}
        file.write(json.dumps({"kind": "dev", "step": 50} | scores) + "\n")
        file.write(json.dumps({"kind": "final", "step": 50} | scores) + "\n")
    html = page(folder)
    assert "<script>alert" not in html and "<img" not in html
    assert_whole(html)


@pytest.mark.parametrize(
    "missing",
    ["config.yaml", "settings.json", "metrics.jsonl", "samples.jsonl", "check.json", "run.json"],
)
def test_any_file_may_be_missing_or_cut_off(folder, missing):
    content = (folder / missing).read_bytes()
    (folder / missing).write_bytes(content[: len(content) - 7])
    assert_whole(page(folder))
    (folder / missing).unlink()
    assert_whole(page(folder))


def test_the_curve_marks_the_model_that_was_kept(folder):
    assert "best 62.5 at step 40" in page(folder)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    later = {"kind": "dev", "step": 60, "loss": 0.5, "scores": {"exact_match": 61.0}}
    final = json.loads(lines[-1]) | {"step": 60}
    write_lines(folder / "metrics.jsonl", [*map(json.loads, lines[:-1]), later, final])
    html = page(folder)
    assert "kept 61.0 at step 60" in html and "best 62.5" not in html


def test_an_empty_folder_gives_a_page(tmp_path):
    html = page(tmp_path)
    assert "no score yet" in html
    assert tmp_path.name in html
    assert_whole(html)


def test_a_killed_run_shows_its_best_validation_and_what_was_unreadable(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()[:-1]
    dev = {"kind": "dev", "step": 60, "loss": float("nan"), "scores": {"exact_match": 50.0}}
    lines += [json.dumps(dev), '{"kind": "tra']
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    html = page(folder)
    assert "not finished" in html
    assert "best of 3 validations so far, at step 40" in html
    assert "metrics.jsonl: 1 unreadable lines skipped." in html
    assert "NaN" not in html
    assert_whole(html)


def test_of_equal_scores_the_later_is_the_best(folder: Path) -> None:
    """As training has it, which keeps the later model."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    dev = [line for line in lines if line["kind"] == "dev"]
    same = [line | {"scores": {"exact_match": 50.0}} for line in dev]
    write_lines(
        folder / "metrics.jsonl", [line for line in lines if line["kind"] == "train"] + same
    )
    html = write_report(folder).read_text("utf-8")
    assert "so far, at step 40" in html and "best 50.0 at step 40" in html


def test_writing_leaves_nothing_else_behind(folder):
    before = {path.name for path in folder.iterdir()}
    write_report(folder)
    write_report(folder)
    assert {path.name for path in folder.iterdir()} == before | {"report.html"}


def test_a_missing_folder_is_the_users_error(tmp_path):
    with pytest.raises(UserError, match="no such run folder"):
        write_report(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 4, [0, 1, 2, 3, 4]), (0, 3.5, [0, 1, 2, 3, 4]), (61, 69, [60, 62, 64, 66, 68, 70])],
)
def test_ticks_are_round_and_hold_the_range(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_ticks_of_a_single_value():
    levels = ticks(0, 0)
    assert levels[0] < 0 < levels[-1]
    assert ticks(5, 5)[0] < 5 < ticks(5, 5)[-1]


def test_numbers_on_an_axis_are_short():
    assert [tick_label(value, 0.002) for value in (0, 0.0005, 0.002)] == ["0", "5e-4", "2e-3"]
    assert tick_label(15000, 20000) == "15k"
    assert tick_label(1500, 2000) == "1,500"
    assert tick_label(0.5, 2) == "0.5"


def test_many_points_become_means_of_neighbors():
    points = [(float(step), float(step % 2)) for step in range(1, 2 * MAX_POINTS + 1)]
    assert downsample(points) == [(float(step), 0.5) for step in range(2, 2 * MAX_POINTS + 1, 2)]
    assert downsample(points[:MAX_POINTS]) == points[:MAX_POINTS]


def test_one_point_is_a_dot_and_none_is_no_figure():
    assert "<circle" in plot_curves("Loss", [Series("loss", [(5.0, 1.0)])])
    assert plot_curves("Loss", [Series("loss", [])]) == ""


def test_texts_without_spaces_are_compared_by_character():
    assert compare_texts("cat", "cart") == ("cat", 'ca<mark class="missing">r</mark>t')
    assert compare_texts("", "a b") == ("", '<mark class="missing">a b</mark>')


def test_durations():
    assert [duration(time) for time in (45, 200, 7500)] == ["45 s", "3 min 20 s", "2 h 05 min"]


def test_a_diagnosis_is_shown_and_escaped(folder: Path) -> None:
    assert "<h2>Diagnosis</h2>" not in write_report(folder).read_text("utf-8")
    finding = {"name": "too-<few>", "severity": "problem", "evidence": "50 & less"}
    diagnosis = {"step": 40, "findings": [finding], "skipped": {"trials": "--quick"}}
    (folder / "diagnosis.json").write_text(json.dumps(diagnosis))
    page = write_report(folder).read_text("utf-8")
    assert "too-&lt;few&gt;" in page and "50 &amp; less" in page
    assert "After step 40." in page and "Skipped: trials (--quick)." in page
    (folder / "diagnosis.json").write_text(json.dumps({"findings": []}))
    assert "No problems found." in write_report(folder).read_text("utf-8")
