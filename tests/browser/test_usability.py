"""The web UI: languages, scripts, keyboard, small screens, errors."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import SCRIPTS, Served, Tab
from .steps import (
    compare,
    expect_background,
    horizontal_overflow,
    open_tree,
    part,
    run_inspect,
    run_text,
    wait_for_result,
    wait_until_ready,
)


def test_switch_to_chinese(page: Page) -> None:
    run_text(page, "abc")
    run_inspect(page)
    page.locator("#switches [data-language=zh]").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("#run")).to_have_text("预测")
    expect(page.locator("section[data-part=tree] h2")).not_to_have_text("")
    expect(page.locator("[data-role=about]").first).to_have_text(re.compile("编码器.* 层"))
    page.reload()
    expect(page.locator("#run")).to_have_text("预测")
    page.locator("#switches [data-language=en]").click()
    expect(page.locator("#run")).to_have_text("Predict")


def test_very_long_tokens_do_not_overflow(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    word = "Donaudampfschifffahrt" * 9
    prediction = {"text": word, "value": word, "tokens": [word], "token_logprobs": [-0.1, -0.2]}
    found = {
        "model": "chars",
        "alternatives": [{"token": word, "probability": 0.5, "prediction": prediction}],
    }
    page.route("**/alternatives", lambda route: route.fulfill(json=found))
    run_text(page, "abcd")
    part(page, "tokens").locator("[data-position='0']").click()
    option = page.locator("button.option")
    expect(option).to_be_visible()
    assert horizontal_overflow(page) <= 0
    result = {**prediction, "unknown_tokens": [word], "nbest": [{"text": word, "score": -1}] * 2}
    streamed = f"event: result\ndata: {json.dumps(result)}\n\n"
    kind = "text/event-stream"
    page.route("**/stream", lambda route: route.fulfill(body=streamed, content_type=kind))
    option.click()
    expect(part(page, "text")).to_have_text(word)
    assert horizontal_overflow(page) <= 0


def test_language_follows_the_browser(tab: Tab, server: Served) -> None:
    page = tab(server.address, locale="zh-CN")
    expect(page.locator("#run")).to_have_text("预测")


def test_dark_theme(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    expect_background(page, "> 200")
    page.emulate_media(color_scheme="dark")
    expect_background(page, "< 60")
    page.locator("#switches [data-theme=light]").click()
    expect_background(page, "> 200")
    page.emulate_media(color_scheme="light")
    page.locator("#switches [data-theme=dark]").click()
    expect_background(page, "< 60")
    page.reload()
    wait_until_ready(page)
    expect_background(page, "< 60")


def test_keyboard_only(page: Page, server: Served) -> None:
    """From the input to the prediction, its tokens, an alternative, and an attention head."""
    keys = page.keyboard
    expect(page.locator("#text")).to_be_focused()
    keys.type("abcd")
    keys.press("Enter")
    expect(part(page, "text")).to_have_text(server.predict("chars", "abcd"))
    wait_for_result(page)
    tab_to(page, "[data-position='0']")
    keys.press("ArrowRight")
    expect(page.locator("[data-position='1']")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("button.option").first).to_be_focused()
    keys.press("Escape")
    expect(page.locator("button.option")).to_have_count(0)
    tab_to(page, "#inspect")
    keys.press("Enter")
    expect(page.locator("[data-large=attention]")).to_be_visible()
    tab_to(page, "[data-head]")
    for key, name in (("Home", "cross.0.0"), ("ArrowRight", "cross.0.1")):
        keys.press(key)
        keys.press("Enter")
        expect(page.locator("[data-large=attention]")).to_have_attribute("data-shown", name)


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until a matching element has the focus."""
    for _ in range(80):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {selector}")


@pytest.mark.parametrize(("script", "direction"), [("Arabic", "rtl"), ("Chinese", "ltr")])
def test_other_scripts(page: Page, server: Served, script: str, direction: str) -> None:
    text = SCRIPTS[script][:4]
    run_text(page, text)
    expect(part(page, "text")).to_have_text(server.predict("chars", text))
    for place in ("#text", "[data-pane=a] [data-role=tokens]"):
        found = page.locator(place).evaluate("(e) => getComputedStyle(e).direction")
        assert found == direction
    run_inspect(page)
    read = page.locator("#inspection [data-read]").all_inner_texts()
    assert [char for char in text if not any(char in one for one in read)] == []


def test_input_is_escaped(page: Page, server: Served) -> None:
    run_text(page, "<img src=x onerror=alert(1)><b>a</b>")
    assert page.locator("#panes img, #panes b[onclick]").count() == 0
    expect(part(page, "unknown")).to_contain_text("<")
    page.locator("#history-open").click()
    expect(page.locator("#history .entry .input")).to_have_text(
        "<img src=x onerror=alert(1)><b>a</b>"
    )


def test_phone(tab: Tab, server: Served) -> None:
    """No horizontal scrolling; everything is reachable by touch."""
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = tab(server.address, **phone)
    wait_until_ready(page)
    assert horizontal_overflow(page) <= 0
    page.locator("#text").fill("abcdefabcdef")
    page.locator("#run").tap()
    wait_for_result(page)
    assert horizontal_overflow(page) <= 0
    run_inspect(page)
    open_tree(page)
    assert horizontal_overflow(page) <= 0
    compare(page, "recurrent")
    wait_for_result(page)
    assert horizontal_overflow(page) <= 0
    page.locator("#history-open").tap()
    expect(page.locator("#history .entry").first).to_be_visible()
    assert horizontal_overflow(page) <= 0


def test_error_is_shown(page: Page, tab: Tab) -> None:
    """The page shows the server's message; the next text runs again."""
    tab.allowed = ("the server responded with a status of 4",)
    start_run(page, "a" * 20_001)
    expect(part(page, "error")).to_contain_text("found 20001")
    run_text(page, "abc")
    expect(part(page, "error")).to_be_empty()


def test_unreachable_server(page: Page, tab: Tab, server: Served) -> None:
    """The page shows an error; Retry works when the server is back."""
    tab.allowed = ("ERR_INTERNET_DISCONNECTED",)
    page.context.set_offline(True)
    start_run(page, "abc")
    retry = part(page, "retry")
    expect(retry).to_be_visible()
    page.context.set_offline(False)
    retry.click()
    expect(part(page, "text")).to_have_text(server.predict("chars", "abc"))


def test_overloaded_server(page: Page, tab: Tab) -> None:
    tab.allowed = ("status of 503",)
    busy = {"status": 503, "json": {"error": "queue full"}}
    page.route("**/stream", lambda route: route.fulfill(**busy))
    start_run(page, "abc")
    expect(part(page, "error")).to_contain_text("queue full")
    page.unroute("**/stream")
    part(page, "retry").click()
    wait_for_result(page)


def start_run(page: Page, text: str) -> None:
    """Run a text without waiting for the result."""
    page.locator("#text").fill(text)
    page.locator("#run").click()
