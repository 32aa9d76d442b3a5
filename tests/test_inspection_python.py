"""The result of `regard.inspect` at the prompt: figures, files and notebooks."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import regard
from regard import UserError
from regard.views.inspection.inspection_page import inspection_page


@pytest.fixture(scope="module")
def inspection(trained: Any) -> regard.Inspection:
    return regard.inspect(regard.load(trained.run), "abc")


def test_it_is_short_at_the_prompt(inspection: regard.Inspection) -> None:
    target = inspection.target.text
    assert repr(inspection) == f"Inspection(source='abc', target={target!r})"


def test_a_notebook_shows_the_page_in_a_frame(inspection: regard.Inspection) -> None:
    shown = inspection._repr_html_()
    head, page, tail = shown.split('"', 2)
    assert head == "<iframe srcdoc=" and 'sandbox="allow-scripts"' in tail
    assert unescape(page) == inspection_page(inspection.as_dict())


def test_save(inspection: regard.Inspection, tmp_path: Path) -> None:
    inspection.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == inspection_page(inspection.as_dict())
    inspection.save(str(tmp_path / "all.json"))
    expected = json.loads(json.dumps(inspection.as_dict()))
    assert json.loads((tmp_path / "all.json").read_text("utf-8")) == expected
    inspection.save(tmp_path / "figure.SVG", view="alignment")
    assert "<svg" in (tmp_path / "figure.SVG").read_text("utf-8")
    inspection.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_figure(inspection: regard.Inspection) -> None:
    from matplotlib.figure import Figure

    assert isinstance(inspection.figure(), Figure)
    title = inspection.figure("alignment").get_suptitle()
    assert title.startswith("abc →")


def test_errors_name_arguments(inspection: regard.Inspection, tmp_path: Path) -> None:
    for call, message in (
        (lambda: inspection.figure("align"), "^view align: expected one of steps"),
        (lambda: inspection.figure("tree", head=1), "^head=1: not supported for view tree"),
        (lambda: inspection.figure("cross", layer=9), "^layer=9: expected a layer"),
        (lambda: inspection.save(tmp_path / "a.pdf"), "ends in one of .html, .json, .png, .svg"),
        (lambda: inspection.save(tmp_path / "a.html", "tree"), "view, layer and head select a fig"),
        (lambda: regard.inspect("runs/x", "a"), "model: expected a fitted estimator, found 'runs"),
    ):
        with pytest.raises(UserError, match=message) as error:
            call()
        assert "--" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_too_long_a_text(trained: Any) -> None:
    with pytest.raises(UserError, match="raise the limit: max_tokens=6"):
        regard.inspect(regard.load(trained.run), "abcde", max_tokens=3)
