"""The files of the page: all are served, nothing is inline or foreign, every word is there."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import regard

ROOM = Path(regard.__file__).parent
STATIC = ROOM / "serve" / "static"
OURS = sorted(path for path in STATIC.iterdir() if path.is_file())
PAGES = {"/": "index.html", "/docs": "docs.html"}
SPOKEN = [path for path in OURS if path.suffix in (".js", ".html") and path.name != "words_app.js"]
MADE = {"app.model.one", "app.model.two"}  # keys that a script puts together


def words() -> dict[str, tuple[str, str]]:
    """What the page says in English and in Chinese, by key."""
    text = (STATIC / "words_app.js").read_text("utf-8")
    found = re.findall(r'^ {4}"([\w.]+)": \["(.*?)", "(.*?)"\],$', text, re.M)
    return {key: (english, chinese) for key, english, chinese in found}


@pytest.mark.parametrize(("path", "name"), PAGES.items())
def test_a_page_names_only_files_that_are_served(client: TestClient, path: str, name: str) -> None:
    html = client.get(path).text
    assert html == (STATIC / name).read_text("utf-8")
    named = re.findall(r'(?:src|href)="(static/[^"]+)"', html)
    assert len(named) > 9
    for file in named:
        assert client.get(f"/{file}").status_code == 200, file


@pytest.mark.parametrize("name", PAGES.values())
def test_nothing_is_inline(name: str) -> None:
    html = (STATIC / name).read_text("utf-8")
    assert re.findall(r"<script[^>]*>(?!</script>)", html) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", html) == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_a_file_is_one_topic_and_asks_no_other_server(path: Path) -> None:
    text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert len(text.splitlines()) <= 250
    assert re.findall(r"https?://|@import|innerHTML|insertAdjacentHTML|\beval\(", text) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_that_is_known_already_keeps_its_policy(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    policy = "content-security-policy"
    assert first.headers[policy] == again.headers[policy]
    assert "script-src 'self'" in first.headers[policy]
    assert "unsafe" not in first.headers[policy]


def test_every_word_is_there_in_both_languages() -> None:
    shared = (ROOM / "views" / "pages" / "words.js").read_text("utf-8")
    known = {*words(), *re.findall(r'"([\w.]+)":', shared)}
    text = "".join(path.read_text("utf-8") for path in SPOKEN)
    asked = set(re.findall(r'"((?:app|docs)\.[\w.]+)"', text)) | MADE
    assert len(asked) > 60
    assert asked - known == set()
    assert set(words()) - asked == set()


def test_both_languages_put_in_the_same_values() -> None:
    for key, (english, chinese) in words().items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
        assert english and chinese
