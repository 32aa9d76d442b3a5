"""The web UI: predict, inspect, compare, copy."""

import ast
import json
import re
import subprocess
import sys
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from .conftest import Served, Tab
from .steps import (
    LARGE,
    compare,
    open_tree,
    part,
    run_inspect,
    run_text,
    select_head,
    select_tab,
    wait_for_result,
    wait_until_ready,
)


def test_predict(page: Page, server: Served) -> None:
    run_text(page, "abcd")
    expect(part(page, "text")).to_have_text(server.predict("chars", "abcd"))
    tokens = server.post("/predict", {"texts": ["abcd"]})["predictions"][0]["tokens"]
    expect(part(page, "tokens").locator("[data-position]")).to_have_count(len(tokens) + 1)
    page.locator("#text").fill("fade")
    page.locator("#text").press("Enter")
    expect(part(page, "text")).to_have_text(server.predict("chars", "fade"))


def test_the_page_introduces_the_model(page: Page, server: Served) -> None:
    facts = server.get("/models")["models"][0]
    expect(part(page, "intro")).to_contain_text("Turns a text into another text.")
    count = f"{facts['training']['examples']:,}"
    expect(part(page, "intro")).to_contain_text(f"Trained on words.tsv ({count} examples).")
    held = f"Of {facts['training']['dev_examples']:,} held-out examples, "
    expect(part(page, "intro")).to_contain_text(held)
    expect(part(page, "intro")).to_contain_text("are predicted exactly.")
    examples = page.locator("[data-example]")
    expect(examples).to_have_count(3)
    examples.last.click()
    wait_for_result(page)
    text = facts["examples"][-1]
    expect(page.locator("#text")).to_have_value(text)
    expect(part(page, "text")).to_have_text(server.predict("chars", text))


def test_several_lines_are_several_texts(page: Page, server: Served) -> None:
    run_text(page, "abcd\n\nFADE\n")
    texts = [server.predict("chars", text) for text in ("abcd", "FADE")]
    expect(part(page, "items").locator("[data-role=text]")).to_have_text(texts)
    expect(part(page, "folded")).to_contain_text("F → f")  # of the second text
    run_text(page, "abcd")
    expect(part(page, "items")).to_have_count(0)
    expect(part(page, "text")).to_have_text(texts[0])


def test_an_empty_text_clears_the_prediction(page: Page) -> None:
    run_text(page, "abcd")
    page.locator("#text").fill("")
    page.locator("#text").press("Enter")
    expect(part(page, "prediction")).to_have_text("Enter a text first.")
    expect(part(page, "stats")).to_have_text("")


HOLD = """() => {
  const fetch = window.fetch;
  window.fetch = async (...args) => {
    const response = await fetch(...args);
    if (!String(args[0]).endsWith("stream")) return response;
    const rest = await response.text();
    const held = new ReadableStream({
      start(sent) {
        const encoder = new TextEncoder();
        const scores = [0, Math.log(0.25)];
        const partial = {text: "so far", tokens: ["so ", "far"], token_logprobs: scores};
        const data = JSON.stringify(partial);
        sent.enqueue(encoder.encode(`event: partial\\ndata: ${data}\\n\\n`));
        window.release = () => { sent.enqueue(encoder.encode(rest)); sent.close(); };
      },
    });
    return new Response(held, response);
  };
}"""


def test_partial_predictions_are_shown(page: Page, server: Served) -> None:
    page.evaluate(HOLD)  # the server may finish before the page draws
    page.locator("#text").fill("abcd")
    page.locator("#run").click()
    expect(part(page, "text")).to_have_text("so far")
    expect(page.locator("#run")).to_have_attribute("data-busy", "true")
    expect(part(page, "tokens").locator("small")).to_have_text(["100\u202f%", "25.0\u202f%"])
    expect(part(page, "tokens").locator(".meter.low")).to_have_count(1)  # colored
    page.evaluate("window.release()")
    wait_for_result(page)
    expect(part(page, "text")).to_have_text(server.predict("chars", "abcd"))


def test_selecting_an_alternative_continues_from_it(page: Page) -> None:
    run_text(page, "abc")
    first = part(page, "text").inner_text()
    part(page, "tokens").locator("[data-position='0']").click()
    option = page.locator("button.option").first
    token = option.get_attribute("data-token")
    option.click()
    expect(part(page, "prefix")).to_contain_text(token)
    expect(part(page, "text")).to_have_text(re.compile(f"^{token}"))
    wait_for_result(page)
    now = part(page, "text").inner_text()
    assert now != first
    with page.expect_request("**/inspect") as request:
        run_inspect(page)
    assert request.value.post_data_json["target"] == now  # not the unconstrained output


def test_search_settings_are_sent(page: Page, server: Served) -> None:
    run_text(page, "abcabc")
    part(page, "settings").locator("summary").click()
    field = part(page, "settings").locator("[data-setting=beam]")
    with page.expect_request("**/stream") as request:
        field.fill("2")
        field.press("Tab")
    assert request.value.post_data_json["search"] == {"beam": 2}
    wait_for_result(page)


def test_each_layer_and_head_can_be_enlarged(page: Page, server: Served) -> None:
    """The heat map and its numbers belong to the selected head."""
    run_text(page, "abcd")
    run_inspect(page)
    found = server.post("/inspect", {"text": "abcd"})
    pictures = set()
    for name in ("encoder", "decoder", "cross"):
        select_tab(page, name)
        for layer in (0, 1):
            for head in (0, 1):
                select_head(page, f"{name}.{layer}.{head}")
                (entry,) = (
                    e for e in found["attention"] if (e["part"], e["layer"]) == (name, layer)
                )
                assert numbers(page) == pytest.approx(entry["heads"][head][0], abs=6e-3)
                pictures.add(page.locator(f"{LARGE} canvas").first.screenshot())
    assert len(pictures) > 6  # tiny maps may look identical
    page.locator("[data-view=lines]").click()
    expect(page.locator(f"{LARGE} .lines canvas")).to_be_visible()


def numbers(page: Page) -> list[float]:
    """Return the first row of the enlarged map's table."""
    table = page.locator(f"{LARGE} [data-table=map]")
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    expect(table.locator("tbody tr").first).to_be_visible()
    return [float(cell) for cell in table.locator("tbody tr").first.locator("td").all_inner_texts()]


def test_saliency_sums_to_one(page: Page) -> None:
    run_text(page, "abcd")
    run_inspect(page)
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


def test_hovering_a_token_marks_it_in_all_views(page: Page) -> None:
    run_text(page, "abcd")
    run_inspect(page)
    page.locator("[data-step='1']").hover()
    marked = page.locator("#inspection [data-axis=target][data-index='1'].marked")
    expect(marked.first).to_be_visible()
    assert marked.count() > 1


def test_search_tree(page: Page, server: Served) -> None:
    run_text(page, "abcd")
    run_inspect(page)
    open_tree(page)
    tree = server.post("/inspect", {"text": "abcd"})["tree"]
    nodes = page.locator("[data-tree=pane] [data-node]")
    page.locator("[data-pruned]").check()  # pruned branches are hidden at first
    expect(nodes).to_have_count(len(tree["nodes"]))
    page.locator("[data-pruned]").uncheck()
    kept = [node for node in tree["nodes"] if node["status"] != "pruned"]
    expect(nodes).to_have_count(len(kept))
    best = next(node for node in tree["nodes"] if node["best"])
    page.locator(f"[data-node='{best['id']}']").click()
    expect(page.locator("[data-says=tree]")).to_contain_text(best["token"])


def test_gates_of_a_recurrent_model(page: Page) -> None:
    part(page, "model").select_option("recurrent")
    run_text(page, "abc")
    run_inspect(page)
    page.locator("section[data-part=gates]").scroll_into_view_if_needed()
    for gate in ("reset", "update"):
        expect(page.locator(f"[data-gate={gate}]").first).to_be_visible()


def test_compare_two_models(page: Page, server: Served) -> None:
    compare(page, "recurrent")
    run_text(page, "abcd")
    for pane, model in (("a", "chars"), ("b", "recurrent")):
        expect(part(page, "text", pane)).to_have_text(server.predict(model, "abcd"))
    expect(page.locator("#difference")).to_be_visible()
    page.locator("#compare").click()
    expect(page.locator("[data-pane=b]")).to_be_hidden()


def test_tagger(page: Page, server: Served) -> None:
    part(page, "model").select_option("tagger")
    run_text(page, "Anna sees the old house in Rome")
    tags = server.post(
        "/predict", {"model": "tagger", "texts": ["Anna sees the old house in Rome"]}
    )
    expect(part(page, "text").locator(".tag")).to_have_text(tags["predictions"][0]["value"])


def test_history(page: Page, server: Served) -> None:
    for text in ("abc", "fed"):
        run_text(page, text)
        expect(part(page, "text")).to_have_text(server.predict("chars", text))
    page.reload()
    wait_until_ready(page)
    page.locator("#history-open").click()
    entries = page.locator("#history .entry")
    expect(entries).to_have_count(2)
    entries.filter(has=page.locator(".input", has_text="abc")).click()
    expect(page.locator("#text")).to_have_value("abc")
    expect(part(page, "text")).to_have_text(server.predict("chars", "abc"))
    wait_for_result(page)
    page.locator("#history-open").click()
    page.locator("#history-clear").click()
    expect(entries).to_have_count(0)


@pytest.mark.parametrize("way", ["curl", "python"])
def test_copied_code_runs(tab: Tab, server: Served, way: str) -> None:
    """A text with quotes and shell characters; the output equals the prediction on the page."""
    page = tab(server.address, permissions=["clipboard-read", "clipboard-write"])
    run_text(page, "a'b\"c $(d) \\e")
    page.locator(f"[data-copy={way}]").click()
    expect(copied_code(page)).to_be_visible()
    expect(page.locator("#copies [role=status]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    shell = ["bash", "-c", copied] if way == "curl" else [sys.executable, "-c", copied]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = (
        json.loads(done.stdout)["predictions"][0]["text"] if way == "curl" else done.stdout.strip()
    )
    assert said == part(page, "text").inner_text()


def test_copied_code_takes_no_code_from_a_link(tab: Tab, server: Served) -> None:
    """A key of the search settings may be anything."""
    key = "beam=1); print('pwned'); dict(x"
    search = quote(json.dumps({key: 1, "beam": 2}))
    tab.allowed = ("status of 400",)  # the server knows no such setting
    page = tab(f"{server.address}#model=chars&text=abc&search={search}")
    page.locator("[data-copy=regard]").click()
    code = copied_code(page).inner_text()
    _, _, loop = ast.parse(code).body
    assert isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    assert "pwned" not in "".join(line for line in code.splitlines() if key not in line)
    given = [ast.unparse(one) for one in loop.iter.keywords]
    assert f"**{{{key!r}: 1}}" in given and "beam=2" in given


def copied_code(page: Page) -> Any:
    """Return the copied code as shown on the page."""
    return page.locator("#copies [data-role=code]")


def test_link_restores_the_state(page: Page, tab: Tab, server: Served) -> None:
    run_text(page, "abca")
    other = tab(page.url)
    expect(other.locator("#text")).to_have_value("abca")
    expect(part(other, "text")).to_have_text(server.predict("chars", "abca"))
