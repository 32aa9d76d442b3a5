"""The shared look and the page of an inspection: complete, safe, small, in two languages."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from typing import Any

import numpy
import pytest

from regard.metrics.metric_names import LABELS
from regard.tasks.inspection.notes import NOTES
from regard.views.inspection.inspection_page import inspection_page
from regard.views.pages import SCRIPTS, STYLES, assets
from regard.views.report.curves import Series, plot_curves
from regard.views.report.html_parts import fill_page
from regard.views.report.label_report import details_section

from .unpacking import unpacked

LARGEST_PAGE = 600_000  # bytes, for 6 layers of 8 heads and 30 tokens
NAMESPACE = "http://www.w3.org/2000/svg"  # a name, which is never fetched
HOSTILE = "</script><script>alert(1)</script><!-- <b>&amp;\u2028 \ud800 كلب 两"


def drawn(size: int, seed: int) -> list[list[float]]:
    """Random rows that sum to 1, as long as numbers in JSON are."""
    weights = numpy.random.default_rng(seed).dirichlet([0.3] * size, size)
    return weights.round(6).tolist()


def attention(part: str, layer: int, rows: str, columns: str, heads: int, size: int) -> Any:
    return {
        "name": f"{part}.layers.{layer}",
        "part": part,
        "layer": layer,
        "rows": rows,
        "columns": columns,
        "heads": [drawn(size, 100 * layer + head) for head in range(heads)],
        "entropy": [1.0] * heads,
        "ablation_delta": [-0.5] * heads,
    }


def inspection(size: int = 4, layers: int = 1, heads: int = 2, text: str = "abc") -> Any:
    """An inspection of a Transformer, with this text as source, answer and every token."""
    axes = (("encoder", "source", "source"), ("decoder", "target", "inputs"))
    node = {
        "id": 0,
        "parent": None,
        "token": text,
        "probability": 0.5,
        "total": -0.7,
        "score": -0.7,
    }
    return {
        "format": 1,
        "version": "0.1.0",
        "model": {"name": text, "task": "transduce", "description": text, "parameters": 9},
        "source": {"text": text, "tokens": [text] * size},
        "target": {"text": text, "tokens": [text] * size, "forced": False},
        "inputs": [text] * size,
        "score": -1.0,
        "truncated": False,
        "unknown_tokens": [text],
        "steps": [{"token": text, "probability": 0.5, "alternatives": [[text, 0.25]] * 5}] * size,
        "attention": [
            attention(*names[:1], layer, *names[1:], heads, size)
            for names in (*axes, ("cross", "target", "source"))
            for layer in range(layers)
        ],
        "saliency": {"rows": "target", "columns": "source", "values": drawn(size, 1)},
        "gates": [],
        "tree": {
            "beam": 5,
            "nodes": [node | {"status": "finished", "best": True, "greedy": True}],
            "best": text,
            "greedy": text,
            "scores": {"best": -0.7, "greedy": -0.7},
        },
        "notes": [text],
    }


def inside(page: str, tag: str) -> list[str]:
    """What stands in each tag of a name, with a script's end read as a browser reads it."""
    return re.findall(rf"<{tag}[^>]*>(.*?)</{tag}", page, re.DOTALL | re.IGNORECASE)


def data_of(page: str) -> Any:
    return json.loads(inside(page, "script")[0])


def test_a_page_needs_nothing_else() -> None:
    page = inspection_page(inspection())
    assert not re.search(r"https?://", page.replace(NAMESPACE, ""))
    assert not re.search(r"""\b(src|srcset|action)\s*=\s*["']""", page)
    assert re.findall(r'<link[^>]*href="([^"]*)"', page) == ["data:,"]
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|\bimport\b.*\bfrom\b", page)


def report(*styles: str) -> str:
    """A page of a report, with all that is drawn of labels."""
    confusion = {"labels": ["a", "b"], "rows": [[3, 1], [0, 2]]}
    bins = [{"confidence": 80, "accuracy": 70, "count": 9}]
    details = details_section({"confusion": confusion, "reliability": bins})
    curve = plot_curves("Loss", [Series("train", [(1, 2.0), (2, 1.0)])])
    return fill_page("title", "", "name", "", [details, curve], [], ("page.css", *styles))


@pytest.mark.parametrize(
    "page", [inspection_page(inspection()), report(), report("compare.css")], ids=range(3)
)
def test_the_policy_allows_the_script_and_the_style_of_the_page_only(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    *_, script = inside(page, "script")
    (style,) = inside(page, "style")
    for rule, text in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert rules["default-src"] == "'none'"
    assert page.index("Content-Security-Policy") < page.index("<style")
    # A style attribute or a listener in HTML would raise an error by the browser.
    assert not re.search(r"<[a-z][^>]*\s(style|on[a-z]+)=", page[: page.index("<script>")])


@pytest.mark.parametrize("text", [HOSTILE, "", "$data ${x} $$", "a\0b", "\N{DOG FACE}" * 3])
def test_every_text_comes_through_and_none_breaks_out(text: str) -> None:
    given = inspection(text=text)
    page = inspection_page(given)
    assert page.encode("utf-8") and len(inside(page, "script")) == 2
    assert "alert(1)</script>" not in page
    found = data_of(page)
    for key in ("source", "target", "inputs", "steps", "unknown_tokens", "notes", "tree", "model"):
        assert found[key] == given[key]


def test_numbers_come_through() -> None:
    given = inspection(size=7, layers=2, heads=3)
    found = data_of(inspection_page(given))
    for seen, wanted in zip(found["attention"], given["attention"], strict=True):
        assert numpy.abs(numpy.subtract(unpacked(seen["heads"]), wanted["heads"])).max() < 1e-5
        assert {**seen, "heads": 0} == {**wanted, "heads": 0}
    values = unpacked(found["saliency"]["values"])
    assert numpy.abs(numpy.subtract(values, given["saliency"]["values"])).max() < 1e-5


def test_a_page_of_six_layers_eight_heads_and_thirty_tokens_is_small() -> None:
    page = inspection_page(inspection(size=30, layers=6, heads=8))
    assert len(page.encode()) < LARGEST_PAGE
    assert len(data_of(page)["attention"]) == 18


def test_what_is_no_number_is_no_page() -> None:
    given = inspection()
    given["score"] = float("nan")
    with pytest.raises(ValueError):
        inspection_page(given)


def test_every_asset_is_listed_and_short() -> None:
    room = files("regard.views.pages")
    listed = {*SCRIPTS, *STYLES, "standalone.js"}
    found = {one.name for one in room.iterdir() if one.name.endswith((".js", ".css"))}
    assert found == listed and len(SCRIPTS) == len(set(SCRIPTS))
    for name in listed:
        text = room.joinpath(name).read_text("utf-8")
        assert text.count("\n") <= 250, name
        assert "innerHTML" not in text and "eval(" not in text, name
        assert name.endswith(".css") or text.startswith('"use strict";'), name


def words(language: str) -> dict[str, str]:
    """The words of a language, read out of the script."""
    (block,) = re.findall(rf"const {language} = {{\n(.*?)\n  }};", assets(["words.js"]), re.DOTALL)
    return dict(re.findall(r'"([\w.]+)": "((?:[^"\\]|\\.)*)"', block))


def test_both_languages_say_the_same_things() -> None:
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        values = re.findall(r"\{\w+\}", text)
        assert sorted(values) == sorted(re.findall(r"\{\w+\}", chinese[key])), key
    signs = sum(bool(re.search(r"[\u4e00-\u9fff]", text)) for text in chinese.values())
    assert signs > 0.9 * len(chinese)


def test_every_note_is_there_in_chinese_with_the_same_values() -> None:
    (block,) = re.findall(r"const notes = {\n(.*?)\n  };", assets(["notes.js"]), re.DOTALL)
    chinese = dict(re.findall(r'"([\w.]+)": "((?:[^"\\]|\\.)*)"', block))
    assert chinese.keys() == NOTES.keys()
    for key, text in NOTES.items():
        assert re.search(r"[\u4e00-\u9fff]", chinese[key])
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", chinese[key])), key


def test_a_report_has_its_measures_in_chinese() -> None:
    known = json.loads(files("regard.views.report").joinpath("chinese.json").read_text("utf-8"))
    assert {label for label in LABELS.values() if re.search("[a-z]", label)} <= known.keys()
    headings = set(re.findall(r"<h2>([^<]+)</h2>", report()))
    assert headings and headings <= known.keys() and all(known.values())


def test_every_word_that_is_reported_is_known_and_every_known_word_is_reported() -> None:
    scripts = assets([*SCRIPTS, "standalone.js"])
    code = scripts.replace(assets(["words.js"]), "")
    english = words("en")
    assert set(re.findall(r'regard\.say\("([^"]+)"', code)) <= english.keys()
    literal = set(re.findall(r'"([\w.]+)"', code))
    starts = {re.escape(start) for start in re.findall(r"`([\w.]+)\$\{", code)}
    ends = {re.escape(end) for end in re.findall(r"\}(\.\w+)`", code)}
    made = re.compile(rf"({'|'.join(starts)})|.*({'|'.join(ends)})$")
    assert not [key for key in english if key not in literal and not made.match(key)]


def colors(block: str) -> dict[str, str]:
    return dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{3,6});", block))


def luminance(color: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_dark_is_the_same_by_choice_and_by_system_and_text_has_contrast() -> None:
    style = assets(["base.css"])
    light, chosen, system = (
        colors(re.findall(rf"^\s*{re.escape(name)} {{(.*?)}}", style, re.DOTALL | re.MULTILINE)[0])
        for name in (":root", ":root[data-theme=dark]", ":root:not([data-theme=light])")
    )
    assert chosen == system and light.keys() == chosen.keys() and light != chosen
    for theme in (light, chosen):
        for ink in ("--ink", "--muted", "--first", "--good", "--bad", "--second-ink"):
            pair = sorted((luminance(theme[ink]), luminance(theme["--paper"])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, ink
        assert all(len(theme[name]) == 7 for name in theme if re.search("heat|cool|warm", name))
