"""The served page in a browser: type, see the answer, look inside, compare, copy."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .conftest import Served, Tab
from .steps import (
    LARGE,
    answered,
    ask,
    choose_head,
    choose_tab,
    compare,
    look_inside,
    open_tree,
    part,
    ready,
)


def test_a_text_is_answered(page: Page, server: Served) -> None:
    ask(page, "abcd")
    expect(part(page, "text")).to_have_text(server.answer("letters", "abcd"))
    tokens = server.post("/predict", {"texts": ["abcd"]})["predictions"][0]["tokens"]
    expect(part(page, "tokens").locator("[data-place]")).to_have_count(len(tokens) + 1)
    page.locator("#text").fill("fade")
    page.locator("#text").press("Enter")
    expect(part(page, "text")).to_have_text(server.answer("letters", "fade"))


HOLD = """() => {
  const ask = window.fetch;
  window.fetch = async (...given) => {
    const response = await ask(...given);
    if (!String(given[0]).endsWith("stream")) return response;
    const whole = await response.text();
    const held = new ReadableStream({
      start(sent) {
        const encoder = new TextEncoder();
        const scores = [0, Math.log(0.25)];
        const so_far = {text: "so far", tokens: ["so ", "far"], token_logprobs: scores};
        const part = JSON.stringify(so_far);
        sent.enqueue(encoder.encode(`event: partial\\ndata: ${part}\\n\\n`));
        window.release = () => { sent.enqueue(encoder.encode(whole)); sent.close(); };
      },
    });
    return new Response(held, response);
  };
}"""


def test_the_answer_grows_before_it_is_there(page: Page, server: Served) -> None:
    page.evaluate(HOLD)  # the server may be done before the page has drawn anything
    page.locator("#text").fill("abcd")
    page.locator("#run").click()
    expect(part(page, "text")).to_have_text("so far")
    expect(page.locator("#run")).to_have_attribute("data-busy", "true")
    expect(part(page, "tokens").locator("small")).to_have_text(["100\u202f%", "25.0\u202f%"])
    expect(part(page, "tokens").locator(".meter.low")).to_have_count(1)  # in color, as when whole
    page.evaluate("window.release()")
    answered(page)
    expect(part(page, "text")).to_have_text(server.answer("letters", "abcd"))


def test_another_token_is_chosen_and_the_answer_goes_on(page: Page) -> None:
    ask(page, "abc")
    first = part(page, "text").inner_text()
    part(page, "tokens").locator("[data-place='0']").click()
    option = page.locator("button.option").first
    token = option.get_attribute("data-token")
    option.click()
    expect(part(page, "prefix")).to_contain_text(token)
    expect(part(page, "text")).to_have_text(re.compile(f"^{token}"))
    answered(page)
    now = part(page, "text").inner_text()
    assert now != first
    with page.expect_request("**/inspect") as request:
        look_inside(page)
    assert request.value.post_data_json["target"] == now  # not what it would say by itself


def test_settings_change_the_search(page: Page, server: Served) -> None:
    ask(page, "abcabc")
    part(page, "settings").locator("summary").click()
    field = part(page, "settings").locator("[data-setting=beam]")
    with page.expect_request("**/stream") as request:
        field.fill("2")
        field.press("Tab")
    assert request.value.post_data_json["search"] == {"beam": 2}
    answered(page)


def test_every_layer_and_head_is_shown_large(page: Page, server: Served) -> None:
    """The picture and its numbers are those of the chosen head."""
    ask(page, "abcd")
    look_inside(page)
    found = server.post("/inspect", {"text": "abcd"})
    pictures = set()
    for name in ("encoder", "decoder", "cross"):
        choose_tab(page, name)
        for layer in (0, 1):
            for head in (0, 1):
                choose_head(page, f"{name}.{layer}.{head}")
                (entry,) = (
                    e for e in found["attention"] if (e["part"], e["layer"]) == (name, layer)
                )
                assert numbers(page) == pytest.approx(entry["heads"][head][0], abs=6e-3)
                pictures.add(page.locator(f"{LARGE} canvas").first.screenshot())
    assert len(pictures) > 6  # tiny maps of other heads may look the same
    page.locator("[data-view=lines]").click()
    expect(page.locator(f"{LARGE} .lines canvas")).to_be_visible()


def numbers(page: Page) -> list[float]:
    """The first row of the table of the large map."""
    table = page.locator(f"{LARGE} [data-table=map]")
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    expect(table.locator("tbody tr").first).to_be_visible()
    return [float(cell) for cell in table.locator("tbody tr").first.locator("td").all_inner_texts()]


def test_shares_of_the_source_and_of_what_was_written_sum_to_one(page: Page) -> None:
    ask(page, "abcd")
    look_inside(page)
    page.locator("section[data-part=saliency]").scroll_into_view_if_needed()
    sums = [0.0, 0.0]
    for name in ("source", "inputs"):
        figure = page.locator(f"[data-saliency={name}]")
        figure.locator("summary").click()
        expect(figure.locator("tbody tr").nth(2)).to_be_visible()
        for row, place in enumerate((0, 2)):
            cells = figure.locator("tbody tr").nth(place).locator("td").all_inner_texts()
            sums[row] += sum(map(float, cells))
    assert sums == pytest.approx([1, 1], abs=6e-3)


def test_pointing_at_a_token_marks_it_everywhere(page: Page) -> None:
    ask(page, "abcd")
    look_inside(page)
    page.locator("[data-step='1']").hover()
    marked = page.locator("#inspection [data-axis=target][data-index='1'].marked")
    expect(marked.first).to_be_visible()
    assert marked.count() > 1


def test_the_tree_of_the_search(page: Page, server: Served) -> None:
    ask(page, "abcd")
    look_inside(page)
    open_tree(page)
    tree = server.post("/inspect", {"text": "abcd"})["tree"]
    nodes = page.locator("[data-tree=room] [data-node]")
    page.locator("[data-pruned]").check()  # many are hidden at first
    expect(nodes).to_have_count(len(tree["nodes"]))
    page.locator("[data-pruned]").uncheck()
    kept = [node for node in tree["nodes"] if node["status"] != "pruned"]
    expect(nodes).to_have_count(len(kept))
    best = next(node for node in tree["nodes"] if node["best"])
    page.locator(f"[data-node='{best['id']}']").click()
    expect(page.locator("[data-says=tree]")).to_contain_text(best["token"])


def test_a_recurrent_model_shows_its_gates(page: Page) -> None:
    part(page, "model").select_option("recurrent")
    ask(page, "abc")
    look_inside(page)
    page.locator("section[data-part=gates]").scroll_into_view_if_needed()
    for gate in ("reset", "update"):
        expect(page.locator(f"[data-gate={gate}]").first).to_be_visible()


def test_two_models_beside_each_other(page: Page, server: Served) -> None:
    compare(page, "recurrent")
    ask(page, "abcd")
    for pane, model in (("a", "letters"), ("b", "recurrent")):
        expect(part(page, "text", pane)).to_have_text(server.answer(model, "abcd"))
    expect(page.locator("#difference")).to_be_visible()
    page.locator("#compare").click()
    expect(page.locator("[data-pane=b]")).to_be_hidden()


def test_a_tagger_answers_word_by_word(page: Page, server: Served) -> None:
    part(page, "model").select_option("tagger")
    ask(page, "Anna sees the old house in Rome")
    tags = server.post(
        "/predict", {"model": "tagger", "texts": ["Anna sees the old house in Rome"]}
    )
    expect(part(page, "text").locator(".tag")).to_have_text(tags["predictions"][0]["value"])


def test_what_was_asked_is_kept_in_the_history(page: Page, server: Served) -> None:
    for text in ("abc", "fed"):
        ask(page, text)
        expect(part(page, "text")).to_have_text(server.answer("letters", text))
    page.reload()
    ready(page)
    page.locator("#history-open").click()
    entries = page.locator("#history .entry")
    expect(entries).to_have_count(2)
    entries.filter(has=page.locator(".asked", has_text="abc")).click()
    expect(page.locator("#text")).to_have_value("abc")
    expect(part(page, "text")).to_have_text(server.answer("letters", "abc"))
    answered(page)
    page.locator("#history-open").click()
    page.locator("#history-clear").click()
    expect(entries).to_have_count(0)


@pytest.mark.parametrize("way", ["curl", "python"])
def test_what_is_copied_runs(tab: Tab, server: Served, way: str) -> None:
    """A text with quotes and signs of a shell; its answer is the one on the page."""
    page = tab(server.address, permissions=["clipboard-read", "clipboard-write"])
    ask(page, "a'b\"c $(d) \\e")
    page.locator(f"[data-copy={way}]").click()
    expect(part_of_copy(page)).to_be_visible()
    expect(page.locator("#copies [role=status]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    shell = ["bash", "-c", copied] if way == "curl" else [sys.executable, "-c", copied]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = (
        json.loads(done.stdout)["predictions"][0]["text"] if way == "curl" else done.stdout.strip()
    )
    assert said == part(page, "text").inner_text()


def part_of_copy(page: Page) -> Any:
    """What was copied, as the page shows it."""
    return page.locator("#copies [data-role=code]")


def test_a_link_leads_to_the_same_answer(page: Page, tab: Tab, server: Served) -> None:
    ask(page, "abca")
    other = tab(page.url)
    expect(other.locator("#text")).to_have_value("abca")
    expect(part(other, "text")).to_have_text(server.answer("letters", "abca"))
