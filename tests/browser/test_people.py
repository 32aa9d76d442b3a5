"""The served page for everybody: other languages and scripts, keyboards, small screens, errors."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from .conftest import SCRIPTS, Served, Tab
from .steps import (
    answered,
    ask,
    compare,
    expect_background,
    look_inside,
    open_tree,
    part,
    ready,
    sideways,
)


def test_the_interface_speaks_chinese(page: Page) -> None:
    ask(page, "abc")
    look_inside(page)
    page.locator("#switches [data-language=zh]").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("#run")).to_have_text("回答")
    expect(page.locator("section[data-part=tree] h2")).not_to_have_text("")
    expect(page.locator("[data-role=about]").first).to_have_text(re.compile("编码器.* 层"))
    page.reload()
    expect(page.locator("#run")).to_have_text("回答")
    page.locator("#switches [data-language=en]").click()
    expect(page.locator("#run")).to_have_text("Answer")


def test_very_long_tokens_stay_in_their_places(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    word = "Donaudampfschifffahrt" * 9
    answer = {"text": word, "value": word, "tokens": [word], "token_logprobs": [-0.1, -0.2]}
    found = {
        "model": "letters",
        "alternatives": [{"token": word, "probability": 0.5, "prediction": answer}],
    }
    page.route("**/alternatives", lambda route: route.fulfill(json=found))
    ask(page, "abcd")
    part(page, "tokens").locator("[data-place='0']").click()
    option = page.locator("button.option")
    expect(option).to_be_visible()
    assert sideways(page) <= 0
    whole = {**answer, "unknown_tokens": [word], "nbest": [{"text": word, "score": -1}] * 2}
    streamed = f"event: result\ndata: {json.dumps(whole)}\n\n"
    kind = "text/event-stream"
    page.route("**/stream", lambda route: route.fulfill(body=streamed, content_type=kind))
    option.click()
    expect(part(page, "text")).to_have_text(word)
    assert sideways(page) <= 0


def test_a_browser_in_chinese_gets_chinese(tab: Tab, server: Served) -> None:
    page = tab(server.address, locale="zh-CN")
    expect(page.locator("#run")).to_have_text("回答")


def test_dark_as_the_system_and_by_choice(page: Page) -> None:
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
    ready(page)
    expect_background(page, "< 60")


def test_by_keyboard_alone(page: Page, server: Served) -> None:
    """From the text to an answer, to its tokens, to another one, and to a head of the model."""
    keys = page.keyboard
    expect(page.locator("#text")).to_be_focused()
    keys.type("abcd")
    keys.press("Enter")
    expect(part(page, "text")).to_have_text(server.answer("letters", "abcd"))
    answered(page)
    tab_to(page, "[data-place='0']")
    keys.press("ArrowRight")
    expect(page.locator("[data-place='1']")).to_be_focused()
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
    """Presses Tab until an element that fits has the focus."""
    for _ in range(80):
        if page.evaluate("(s) => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab never comes to {selector}")


@pytest.mark.parametrize(("script", "direction"), [("Arabic", "rtl"), ("Chinese", "ltr")])
def test_other_scripts(page: Page, server: Served, script: str, direction: str) -> None:
    text = SCRIPTS[script][:4]
    ask(page, text)
    expect(part(page, "text")).to_have_text(server.answer("letters", text))
    for place in ("#text", "[data-pane=a] [data-role=tokens]"):
        found = page.locator(place).evaluate("(e) => getComputedStyle(e).direction")
        assert found == direction
    look_inside(page)
    read = page.locator("#inspection [data-read]").all_inner_texts()
    assert [letter for letter in text if not any(letter in one for one in read)] == []


def test_nothing_that_is_typed_becomes_part_of_the_page(page: Page, server: Served) -> None:
    ask(page, "<img src=x onerror=alert(1)><b>a</b>")
    assert page.locator("#panes img, #panes b[onclick]").count() == 0
    expect(part(page, "unknown")).to_contain_text("<")
    page.locator("#history-open").click()
    expect(page.locator("#history .entry .asked")).to_have_text(
        "<img src=x onerror=alert(1)><b>a</b>"
    )


def test_a_phone(tab: Tab, server: Served) -> None:
    """No sideways scrolling, whatever is open; all can be reached by touch."""
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = tab(server.address, **phone)
    ready(page)
    assert sideways(page) <= 0
    page.locator("#text").fill("abcdefabcdef")
    page.locator("#run").tap()
    answered(page)
    assert sideways(page) <= 0
    look_inside(page)
    open_tree(page)
    assert sideways(page) <= 0
    compare(page, "recurrent")
    answered(page)
    assert sideways(page) <= 0
    page.locator("#history-open").tap()
    expect(page.locator("#history .entry").first).to_be_visible()
    assert sideways(page) <= 0


def test_a_refusal_is_shown(page: Page, tab: Tab) -> None:
    """The server's own words; the next text is answered again."""
    tab.allowed = ("the server responded with a status of 4",)
    ask_only(page, "a" * 20_001)
    expect(part(page, "error")).to_contain_text("found 20001")
    ask(page, "abc")
    expect(part(page, "error")).to_be_empty()


def test_a_server_that_is_gone(page: Page, tab: Tab, server: Served) -> None:
    """It is said, and trying again helps when it is back."""
    tab.allowed = ("ERR_INTERNET_DISCONNECTED",)
    page.context.set_offline(True)
    ask_only(page, "abc")
    again = part(page, "again")
    expect(again).to_be_visible()
    page.context.set_offline(False)
    again.click()
    expect(part(page, "text")).to_have_text(server.answer("letters", "abc"))


def test_a_server_that_is_busy(page: Page, tab: Tab) -> None:
    tab.allowed = ("status of 503",)
    busy = {"status": 503, "json": {"error": "the queue is full"}}
    page.route("**/stream", lambda route: route.fulfill(**busy))
    ask_only(page, "abc")
    expect(part(page, "error")).to_contain_text("the queue is full")
    page.unroute("**/stream")
    part(page, "again").click()
    answered(page)


def ask_only(page: Page, text: str) -> None:
    """Asks, without waiting for an answer."""
    page.locator("#text").fill(text)
    page.locator("#run").click()
