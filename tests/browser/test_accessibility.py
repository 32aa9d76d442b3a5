"""Accessibility: axe-core finds no serious violation, in light and dark themes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from .conftest import Served, Tab
from .steps import compare, open_tree, part, run_inspect, run_text, wait_for_result

both_themes = pytest.mark.parametrize("theme", ["light", "dark"])


def violations(page: Page) -> list[str]:
    """Return the serious and critical violations: rule and element."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@both_themes
def test_web_ui(tab: Tab, server: Served, theme: str) -> None:
    """With a prediction, alternatives, the inspector and two models."""
    page = tab(server.address, color_scheme=theme)
    run_text(page, "abc")
    part(page, "tokens").locator("[data-position='1']").click()
    expect(page.locator("button.option").first).to_be_visible()
    run_inspect(page)
    open_tree(page)
    assert violations(page) == []
    compare(page, "recurrent")
    wait_for_result(page)
    part(page, "settings", "b").locator("summary").click()
    page.locator("#history-open").click()
    expect(page.locator("#history .entry").first).to_be_visible()
    assert violations(page) == []


@both_themes
def test_api_docs(tab: Tab, server: Served, theme: str) -> None:
    page = tab(f"{server.address}/docs", color_scheme=theme)
    expect(page.get_by_text("/predict").first).to_be_visible()
    assert violations(page) == []


@both_themes
@pytest.mark.parametrize("cell", ["transformer", "recurrent"])
def test_inspect_page(
    tab: Tab,
    chars: Path,
    trained: Any,
    command: Callable[..., Any],
    tmp_path: Path,
    theme: str,
    cell: str,
) -> None:
    run = chars if cell == "transformer" else trained.run
    assert command("inspect", run, "abc", "--out", tmp_path / "page.html").code == 0
    page = tab((tmp_path / "page.html").as_uri(), color_scheme=theme)
    for section in page.locator("section[data-part]").all():
        section.scroll_into_view_if_needed()
        expect(section.locator("> :nth-child(2)")).to_be_attached()  # drawn when visible
    expect(page.locator("[data-tree=pane] [data-node]").first).to_be_visible()
    assert violations(page) == []


@both_themes
def test_report(tab: Tab, trained: Any, theme: str) -> None:
    page = tab((trained.run / "report.html").as_uri(), color_scheme=theme)
    expect(page.locator("h1")).to_be_visible()
    assert violations(page) == []
