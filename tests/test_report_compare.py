"""The page that compares runs: their numbers, their names, and what is an error."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from made_up import lines, make_run

from regard.views.report.curves import NUM_COLORS, Series, plot_curves

Command = Callable[..., Any]
EVIL = "</script><img src=x>&\"'"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Page(HTMLParser):
    """The texts of a page by the tag they stand in; fails where a tag is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.addresses: list[str] = []
        self.feed(html)
        assert self.open == [] and self.addresses == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in {"meta", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "tr" in self.open and self.rows[-1]:
            self.rows[-1][-1] += data

    def row(self, name: str) -> list[str]:
        """The cells of the rows that begin with a name."""
        return [cell for row in self.rows if row and row[0].strip() == name for cell in row[1:]]


def compare(command: Command, *folders: str | Path) -> str:
    said = command("report", *folders, "--out", "page.html")
    assert (said.code, said.out, said.err) == (0, "page.html\n", ""), said.err
    html = Path("page.html").read_text("utf-8")
    return re.sub(r"<script>.*?</script>", "<script></script>", html, flags=re.DOTALL)


def figures(html: str) -> list[tuple[str, dict[str, Any]]]:
    """The titles and numbers of all figures, in their order."""
    found = re.findall(r'<figure class="curve">.*?</figure>', html, re.DOTALL)
    numbers = [re.search(r'json">(.*?)</script>', one).group(1) for one in found]
    titles = [re.search(r"<span>(.*?)</span>", one).group(1) for one in found]
    return [(title, json.loads(text)) for title, text in zip(titles, numbers, strict=True)]


@pytest.fixture
def two() -> tuple[Path, Path]:
    slow = {"training": {"lr": 0.0005, "steps": 40, "seed": 1}}
    return make_run(Path("runs/fast")), make_run(Path("runs/slow"), slow, exact=(10.0, 20.0, 30.0))


def test_scores_with_intervals_and_what_a_run_took(command: Command, two: Any) -> None:
    page = Page(compare(command, *two))
    fast, slow = page.row("fast"), page.row("slow")
    assert fast == [
        *("62.50", "58.5 to 66.5", "", "40", "40"),
        *("4 min 00 s", "1,234,567", "5", "finished"),
    ]
    assert slow[:2] == ["30.00", "26.0 to 34.0"] and slow[5] == "6 min 00 s"
    assert page.row("exact match exact_match") == ["62.50", "30.00"]


def test_the_best_is_marked(command: Command, two: Any) -> None:
    html = compare(command, *two)
    (best,) = re.findall(
        r'<tr class="main"><th scope="row">.*?</i><span .*?>(.*?)</span></th>', html
    )
    assert best == "fast"
    assert re.findall(r'class="number winner">(.*?)<', html) == ["62.50"]  # ser is equal


def test_curves_of_all_runs_by_step_and_by_minute(command: Command, two: Any) -> None:
    drawn = figures(compare(command, *two))
    titles = [title for title, _ in drawn]
    assert titles[:4] == titles[4:] and titles[0] == "Exact match (dev)"
    by_step, by_minute = drawn[0][1], drawn[4][1]
    assert [line["name"] for line in by_step["series"]] == ["fast", "slow"]
    assert by_step["series"][1]["points"] == [[20, 10.0], [40, 20.0], [60, 30.0]]
    assert by_minute["series"][1]["points"] == [[2.0, 10.0], [4.0, 20.0], [6.0, 30.0]]
    assert (by_step["axis"], by_minute["axis"]) == ("step", "minute")
    dev, train = drawn[1][1], drawn[2][1]
    assert dev["series"][0]["points"] == [[20, 4.0], [40, 2.5]]
    assert train["series"][0]["points"] == [[20, 3.0], [40, 1.5]]


def test_a_run_keeps_its_color_where_another_has_no_curve(command: Command, two: Any) -> None:
    empty = make_run(Path("runs/empty"), exact=(), final=False)
    html = compare(command, empty, *two)
    assert all(numbers["styles"] == ["s1", "s2"] for _, numbers in figures(html))
    assert '<li><i class="swatch s1"></i><span translate="no">fast</span></li>' in html


def test_settings_that_differ_and_no_others(command: Command, two: Any) -> None:
    page = Page(compare(command, *two))
    assert page.row("training.lr") == ["0.002", "0.0005"]
    assert page.row("training.seed") == []
    assert "All settings are the same" in compare(command, two[0], make_run(Path("again")))


def test_predictions_for_the_same_sources(command: Command, two: Any) -> None:
    wrong = {"step": 60, "references": ["K AE T"], "prediction": "K AA T"}
    only = {"step": 60, "source": "only", "references": ["x"], "prediction": "x"}
    lines(two[1] / "samples.jsonl", [wrong | {"source": "cat"}, only])
    html = compare(command, *two)
    (block,) = re.findall(r'<article><h3 dir="auto" translate="no">cat</h3>.*?</article>', html)
    assert '<p class="expected" dir="auto" translate="no">K AE T</p>' in block
    answers = re.findall(
        r'<dd class="(.*?)">.*?<span dir="auto" translate="no">(.*?)</span></dd>', block
    )
    assert answers == [("correct", "K AE T"), ("wrong", 'K <mark class="extra">AA</mark> T')]
    assert "Skipped: 2 of 3 sources that only one run has." in html
    assert ">only<" not in html and ">dog<" not in html


def test_texts_that_models_wrote(command: Command, two: Any) -> None:
    for folder in two:
        text = {"step": 1, "kind": "generated", "text": f"by {folder.name} <b>"}
        lines(folder / "samples.jsonl", [text])
    html = compare(command, *two)
    assert "by fast &lt;b&gt;" in html and "by slow &lt;b&gt;" in html and "text 1" in html


def test_numbers_are_not_marked_as_wrong(command: Command) -> None:
    number = {"step": 1, "kind": "number", "source": "a", "references": ["1"], "prediction": "2"}
    for name in ("a", "b"):
        make_run(Path(name), task="regress")
        lines(Path(name) / "samples.jsonl", [number])
    html = compare(command, "a", "b")
    assert '<dd dir="auto" translate="no">2</dd>' in html and "<mark" not in html


def test_names_and_texts_are_escaped(command: Command) -> None:
    folders = [make_run(Path("runs") / f"<i>'&\"{end}") for end in "ab"]
    for folder in folders:
        (folder / "config.yaml").write_text(json.dumps({EVIL: EVIL + folder.name}))
        sample = {"step": 1, "source": EVIL, "references": [EVIL], "prediction": EVIL + "x"}
        lines(folder / "samples.jsonl", [sample])
        facts = json.loads((folder / "run.json").read_text())
        facts |= {"data": {"data": EVIL + folder.name}, "metric": EVIL}
        (folder / "run.json").write_text(json.dumps(facts))
        with open(folder / "metrics.jsonl", "a") as file:
            file.write(json.dumps({"kind": "dev", "step": 60, "scores": {EVIL: 1.0}}) + "\n")
            file.write(json.dumps({"kind": "final", "step": 60, "scores": {EVIL: 1.0}}) + "\n")
    html = compare(command, *folders)
    assert "<img" not in html and "<i>'" not in html and "&lt;i&gt;&#x27;&amp;&quot;a" in html
    Page(html)


def test_runs_of_the_same_name_are_told_apart(command: Command) -> None:
    page = Page(compare(command, make_run(Path("one/run")), make_run(Path("two/run"))))
    assert page.row("one/run") and page.row("two/run")


def test_what_makes_scores_hard_to_compare_is_reported(command: Command) -> None:
    make_run(Path("a"))
    make_run(Path("b"), final=False)
    make_run(Path("c"), data={"data": "other.tsv"}, fingerprints={"dev": "another"})
    html = compare(command, "a", "b", "c")
    assert "Trained on different data: other.tsv, words.tsv." in html
    assert "Evaluated on different dev sets" in html
    assert "1 of 3 not finished" in html
    assert 'class="warning"' not in compare(command, "a", make_run(Path("d")))


def test_no_network_no_matter_what(command: Command, two: Any) -> None:
    html = compare(command, *two)
    Page(html)
    assert (
        "url(" not in html
        and "@import" not in html
        and not re.search("https?:", html.replace("http://www.w3.org/2000/svg", ""))
    )


def test_a_folder_of_runs_means_all_of_them(command: Command, two: Any) -> None:
    make_run(Path("runs/deep/third"))
    assert "3 runs of words.tsv" in compare(command, "runs", "runs/fast")


def test_one_run_gets_its_report_again(command: Command) -> None:
    run = make_run(Path("run"))
    said = command("report", run)
    assert (said.code, said.out) == (0, "run/report.html\n")
    html = (run / "report.html").read_text("utf-8")
    assert "62.5" in html and "<title>run: report</title>" in html
    (run / "report.html").unlink()
    assert command("report", run, "--out", "elsewhere.html").out == "elsewhere.html\n"
    assert Path("elsewhere.html").read_text("utf-8") == html
    assert not (run / "report.html").exists()


def test_a_damaged_run_is_skipped_by_name(command: Command, two: Any) -> None:
    (make_run(Path("runs/broken")) / "run.json").write_text("{")
    said = command("report", "runs", "--out", "page.html")
    assert said.code == 0
    assert said.err.startswith("skipped: runs/broken (run.json could not be read")
    assert "2 runs of" in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs/a", "runs/b"], "2 runs to compare: --out is missing"),
        (["runs/a", "runs/c", "--out", "p.html"], "runs/c: classify, accuracy"),
        (["runs/a", "runs/d", "--out", "p.html"], "runs/d: transduce, bleu"),
        (["nowhere"], "nowhere: no such folder"),
        (["empty"], "empty: contains no run"),
        (["runs/a", "--out", "empty"], "--out empty: expected a file, found a folder"),
        (["runs/a", "runs/broken", "--out", "p.html"], "fewer than two readable runs"),
        (["runs/a", "--out", "no/where.html"], "no/where.html: cannot write"),
    ],
)
def test_misuse(command: Command, words: list[str], message: str) -> None:
    make_run(Path("runs/a"))
    make_run(Path("runs/b"))
    make_run(Path("runs/c"), task="classify", metric="accuracy", exact=(), final=False)
    make_run(Path("runs/d"), metric="bleu", exact=(), final=False)
    (make_run(Path("runs/broken")) / "run.json").unlink()
    Path("empty").mkdir()
    said = command("report", *words)
    assert said.code == 2 and message in said.err and "Traceback" not in said.err
    assert not Path("p.html").exists()


def test_report_needs_a_run(command: Command) -> None:
    assert command("report").code == 2


def test_more_lines_than_colors_are_dashed() -> None:
    many = [Series(str(place), [(1.0, place), (2.0, place)]) for place in range(NUM_COLORS + 1)]
    drawn = re.findall(r'class="line (.*?)"', plot_curves("title", many))
    assert drawn[0] == "s0" and drawn[-1] == "s0 dashed" and len(set(drawn)) == NUM_COLORS + 1


def test_a_real_run_next_to_itself(command: Command, trained: Any) -> None:
    twin = Path("twin")
    twin.symlink_to(trained.run)
    said = command("report", trained.run, twin)
    assert said.code == 0  # one and the same, so it is the report of one run
