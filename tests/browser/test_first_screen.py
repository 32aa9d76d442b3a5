"""The first screen: what the model does, how good it is, what to type; and what fits the screen."""

import itertools
import json

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import Served, Tab
from .steps import open_tree, part, run_inspect, run_text, wait_until_ready

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 720}}
SIZE = "(pane) => [pane.scrollWidth - pane.clientWidth, pane.querySelector('svg').dataset.grows]"


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_first_screen(tab: Tab, server: Served, screen: dict, locale: str) -> None:
    page = tab(server.address, locale=locale, **screen)
    wait_until_ready(page)
    facts = server.get("/models")["models"][0]
    expect(part(page, "intro")).to_contain_text("words.tsv")
    expect(part(page, "intro")).to_contain_text(f"{facts['training']['dev_examples']:,}")
    expect(page.locator("#run")).to_have_text("Predict" if locale == "en-US" else "预测")
    placeholder = page.locator("#text").get_attribute("placeholder") or ""
    assert facts["examples"][0] in placeholder
    expect(page.locator("[data-example]")).to_have_count(3)
    for shown in ("#text", "#run", "[data-example] >> nth=2", "[data-pane=a] [data-role=intro]"):
        box = page.locator(shown).bounding_box()
        assert box is not None and box["y"] + box["height"] <= screen["viewport"]["height"], shown
    expect(page.locator("[data-pane=a] [data-setting=beam]")).to_be_hidden()  # folded


def test_bars_of_the_nbest_list_are_probabilities(page: Page, server: Served) -> None:
    run_text(page, "abcdef")
    body = {"texts": ["abcdef"], "nbest": 5}
    nbest = server.post("/predict", body)["predictions"][0]["nbest"]
    rows = part(page, "nbest").locator("li")
    expect(rows).to_have_count(len(nbest))
    found = rows.locator(".meter").evaluate_all(
        "(bars) => bars.map((bar) => Number(bar.style.getPropertyValue('--p')))"
    )
    assert found == pytest.approx([one["probability"] for one in nbest], abs=1e-4)
    assert 0 < sum(found) <= 1 + 1e-6
    expect(rows.first).to_contain_text(f"{100 * nbest[0]['probability']:.1f}")


def test_deleting_the_text_clears_the_prediction(page: Page) -> None:
    run_text(page, "abcd")
    run_inspect(page)
    page.locator("#text").fill("")
    expect(part(page, "tokens")).to_have_count(0)
    expect(part(page, "prediction")).to_have_text("The prediction appears here.")
    expect(page.locator("#inspection")).to_be_empty()


def make_longer(route: Route) -> None:
    """Let the search of an inspection find long outputs."""
    body = json.loads(route.request.post_data or "{}")
    body["search"] = {"min_length": 30, "max_length": 32}
    route.continue_(post_data=json.dumps(body))


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_search_tree_fits_the_screen(tab: Tab, server: Served, screen: dict) -> None:
    """A long output: from left to right, its tree would be several screens wide."""
    page = tab(server.address, **screen)
    wait_until_ready(page)
    page.route("**/inspect", make_longer)
    run_text(page, "abcdef")
    run_inspect(page)
    open_tree(page)
    pane = page.locator("[data-tree=pane]")
    for pruned in (False, True):
        page.locator("[data-pruned=toggle]").set_checked(pruned)
        overflow, direction = pane.evaluate(SIZE)
        assert direction == "down" and overflow <= 0
    nodes = page.locator("[data-tree=pane] .node").evaluate_all(
        "(nodes) => nodes.map((node) => node.querySelector('rect').getBoundingClientRect())"
        ".map((box) => [Math.round(box.top), box.left, box.right])"
    )
    levels: dict[int, list[list[float]]] = {}
    for top, left, right in nodes:
        levels.setdefault(top, []).append([left, right])
    for boxes in levels.values():  # no two nodes overlap
        boxes.sort()
        assert all(one[1] < other[0] for one, other in itertools.pairwise(boxes))
