"""Steps on the pages, shared by the tests and the figures of the documentation."""

import re
from typing import Any

from playwright.sync_api import Page, expect

LARGE = "[data-large=attention]"
TWO_FRAMES = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def part(page: Page, name: str, pane: str = "a") -> Any:
    """Return a part of a pane: text, tokens, stats."""
    return page.locator(f"[data-pane={pane}] [data-role={name}]")


def wait_until_ready(page: Page) -> None:
    """Wait until the models are loaded."""
    expect(page.locator("#workspace")).to_be_visible()


def run_text(page: Page, text: str) -> None:
    """Enter a text and wait for its prediction."""
    page.locator("#text").fill(text)
    page.locator("#run").click()
    wait_for_result(page)


def wait_for_result(page: Page) -> None:
    """Wait until the prediction and the inspection of it are complete."""
    expect(page.locator("#run")).to_have_attribute("data-busy", "false")
    expect(part(page, "latency")).to_be_visible()
    expect(page.locator("#inspection[aria-busy]")).to_have_count(0)


def run_inspect(page: Page) -> None:
    """Run the inspector."""
    page.locator("#inspect").click()
    expect(page.locator(LARGE)).to_be_visible()
    expect(page.locator("#inspection[aria-busy]")).to_have_count(0)


def select_tab(page: Page, name: str) -> None:
    """Select encoder, decoder or cross attention."""
    page.locator(f"[data-tab={name}]").click()
    expect(page.locator(LARGE)).to_have_attribute("data-shown", re.compile(f"^{name}"))


def select_head(page: Page, name: str) -> None:
    """Enlarge a head: `cross.1.0` is the first head of the second layer."""
    page.locator(f'[data-head="{name}"]').click()
    expect(page.locator(LARGE)).to_have_attribute("data-shown", name)


def open_tree(page: Page) -> None:
    """Scroll to the search tree, which is drawn when visible."""
    page.locator("section[data-part=tree]").scroll_into_view_if_needed()
    expect(page.locator("[data-tree=pane] [data-node]").first).to_be_visible()


def compare(page: Page, model: str) -> None:
    """Open a second pane with another model."""
    page.locator("#compare").click()
    part(page, "model", "b").select_option(model)


def horizontal_overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than the window."""
    return page.evaluate(
        f"{TWO_FRAMES}.then(() => document.documentElement.scrollWidth - innerWidth)"
    )


def expect_background(page: Page, test: str) -> None:
    """Wait until the brightness of the background (0 to 255) passes a test."""
    color = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)"
    page.wait_for_function(f"() => {color}.reduce((sum, one) => sum + Number(one), 0) / 3 {test}")
