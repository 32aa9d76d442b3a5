"""Standalone pages: inspect pages and reports work without server and network."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .conftest import Tab
from .steps import (
    LARGE,
    TWO_FRAMES,
    expect_background,
    horizontal_overflow,
    open_tree,
    select_head,
    select_tab,
)


@pytest.fixture(scope="module")
def inspected(
    chars: Path, command: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write a page with `regard inspect`."""
    out = tmp_path_factory.mktemp("inspected") / "page.html"
    said = command("inspect", chars, "abcd", "--target", "abc", "--out", out)
    assert said.code == 0, said.err
    return out


def test_inspect_page_works_offline(tab: Tab, inspected: Path) -> None:
    page: Page = tab(inspected.as_uri(), offline=True)
    expect(page.locator("h1")).to_have_text("abcd")
    select_tab(page, "cross")
    select_head(page, "cross.1.1")
    page.locator("[data-view=lines]").click()
    expect(page.locator(f"{LARGE} .lines canvas")).to_be_visible()
    open_tree(page)
    page.locator("section[data-part=saliency]").scroll_into_view_if_needed()
    expect(page.locator("[data-saliency=source]")).to_be_visible()
    page.locator("[data-language=zh]").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    notes = page.locator("section[data-part=notes] li")
    expect(notes).to_have_text(
        [
            "强制解码：目标由您给定。",
            "搜索树来自模型自己的搜索。",
            re.compile("训练时使用标签平滑 0.1"),
        ]
    )
    expect(page.locator("#facts")).to_contain_text("编码器 transformer")
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def test_inspect_page_on_a_phone(tab: Tab, inspected: Path) -> None:
    page = tab(inspected.as_uri(), offline=True, viewport={"width": 390, "height": 844})
    open_tree(page)
    assert horizontal_overflow(page) <= 0


def test_large_maps_scroll_in_their_own_pane(
    tab: Tab, chars: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    """The page does not grow, and row and column labels stay visible."""
    text = "abcd" * 15
    said = command("inspect", chars, text, "--target", text, "--out", tmp_path / "page.html")
    assert said.code == 0, said.err
    page = tab((tmp_path / "page.html").as_uri(), offline=True)
    select_tab(page, "cross")
    room = page.locator(f"{LARGE} .scroll").first
    page.evaluate(TWO_FRAMES)  # the map takes its size from the room
    high, inside = room.evaluate("(room) => [room.clientHeight, room.scrollHeight]")
    assert inside > high + 100 and high <= 800
    room.evaluate("(room) => { room.scrollTop = room.scrollHeight; }")
    names = page.locator(f"{LARGE} .map-columns")
    offset = "(names) => names.getBoundingClientRect().top"
    top = room.evaluate(offset)
    assert abs(names.evaluate(offset) - top) < 2
    page.set_viewport_size({"width": 390, "height": 844})
    assert horizontal_overflow(page) <= 0


def test_report_works_offline(tab: Tab, trained: Any) -> None:
    page: Page = tab((trained.run / "report.html").as_uri(), offline=True)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("svg, canvas").first).to_be_visible()
    expect_background(page, "> 200")
    page.locator(".switches [data-theme=dark]").click()
    expect_background(page, "< 60")
    page.locator("[data-language=zh]").click()
    expect(page.locator("h2").first).to_have_text("训练")
    expect(page.locator(".samples thead")).to_have_text("源文预测参考")
    page.locator("[data-language=en]").click()
    expect(page.locator("h2").first).to_have_text("Training")
    page.locator("figure.curve svg").first.hover()
    expect(page.locator(".tip")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert horizontal_overflow(page) <= 0
    assert [url for url in tab.requests if not url.startswith(("file:", "data:", "blob:"))] == []
