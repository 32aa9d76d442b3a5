"""What one does on the pages: the steps of the tests, and of the pictures in the documentation."""

import re
from typing import Any

from playwright.sync_api import Page, expect

LARGE = "[data-large=attention]"
DRAWN = "new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"


def part(page: Page, name: str, pane: str = "a") -> Any:
    """A part of an answer: text, tokens, facts."""
    return page.locator(f"[data-pane={pane}] [data-role={name}]")


def ready(page: Page) -> None:
    """Waits until the models are there."""
    expect(page.locator("#bench")).to_be_visible()


def ask(page: Page, text: str) -> None:
    """Types a text and waits until it is answered."""
    page.locator("#text").fill(text)
    page.locator("#run").click()
    answered(page)


def answered(page: Page) -> None:
    """Waits until the answer is whole, and what is shown of the inside is that of this answer."""
    expect(page.locator("#run")).to_have_attribute("data-busy", "false")
    expect(part(page, "time")).to_be_visible()
    expect(page.locator("#inspection[aria-busy]")).to_have_count(0)


def look_inside(page: Page) -> None:
    """Opens what happens inside the model."""
    page.locator("#inspect").click()
    expect(page.locator(LARGE)).to_be_visible()
    expect(page.locator("#inspection[aria-busy]")).to_have_count(0)


def choose_tab(page: Page, name: str) -> None:
    """Opens the maps of the encoder, the decoder or between them."""
    page.locator(f"[data-tab={name}]").click()
    expect(page.locator(LARGE)).to_have_attribute("data-shown", re.compile(f"^{name}"))


def choose_head(page: Page, name: str) -> None:
    """Shows a head large: `cross.1.0` is the first of the second layer."""
    page.locator(f'[data-head="{name}"]').click()
    expect(page.locator(LARGE)).to_have_attribute("data-shown", name)


def open_tree(page: Page) -> None:
    """Brings the tree of the search into view, where it is drawn."""
    page.locator("section[data-part=tree]").scroll_into_view_if_needed()
    expect(page.locator("[data-tree=room] [data-node]").first).to_be_visible()


def compare(page: Page, model: str) -> None:
    """Opens a second pane with another model."""
    page.locator("#compare").click()
    part(page, "model", "b").select_option(model)


def sideways(page: Page) -> int:
    """How many pixels the page is wider than the window, once all has found its size."""
    return page.evaluate(f"{DRAWN}.then(() => document.documentElement.scrollWidth - innerWidth)")


def expect_background(page: Page, test: str) -> None:
    """Waits until the brightness of the background, 0 to 255, is as it should be."""
    color = "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)"
    page.wait_for_function(f"() => {color}.reduce((sum, one) => sum + Number(one), 0) / 3 {test}")
