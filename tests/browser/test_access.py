"""Pages that everybody can use: axe-core finds nothing serious, in light and in dark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from .conftest import Served, Tab
from .steps import answered, ask, compare, look_inside, open_tree, part

both = pytest.mark.parametrize("theme", ["light", "dark"])


def faults(page: Page) -> list[str]:
    """What axe finds that is serious or critical: the rule, and where."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@both
def test_the_served_page(tab: Tab, server: Served, theme: str) -> None:
    """With an answer, with other tokens for it, with all that is inside, with two models."""
    page = tab(server.address, color_scheme=theme)
    ask(page, "abc")
    part(page, "tokens").locator("[data-place='1']").click()
    expect(page.locator("button.option").first).to_be_visible()
    look_inside(page)
    open_tree(page)
    assert faults(page) == []
    compare(page, "recurrent")
    answered(page)
    part(page, "settings", "b").locator("summary").click()
    page.locator("#history-open").click()
    expect(page.locator("#history .entry").first).to_be_visible()
    assert faults(page) == []


@both
def test_the_page_of_the_api(tab: Tab, server: Served, theme: str) -> None:
    page = tab(f"{server.address}/docs", color_scheme=theme)
    expect(page.get_by_text("/predict").first).to_be_visible()
    assert faults(page) == []


@both
@pytest.mark.parametrize("cell", ["transformer", "recurrent"])
def test_the_page_of_inspect(
    tab: Tab,
    letters: Path,
    trained: Any,
    command: Callable[..., Any],
    tmp_path: Path,
    theme: str,
    cell: str,
) -> None:
    run = letters if cell == "transformer" else trained.run
    assert command("inspect", run, "abc", "--out", tmp_path / "page.html").code == 0
    page = tab((tmp_path / "page.html").as_uri(), color_scheme=theme)
    for section in page.locator("section[data-part]").all():
        section.scroll_into_view_if_needed()
        expect(section.locator("> :nth-child(2)")).to_be_attached()  # drawn when it is seen
    expect(page.locator("[data-tree=room] [data-node]").first).to_be_visible()
    assert faults(page) == []


@both
def test_the_report_of_a_run(tab: Tab, trained: Any, theme: str) -> None:
    page = tab((trained.run / "report.html").as_uri(), color_scheme=theme)
    expect(page.locator("h1")).to_be_visible()
    assert faults(page) == []
