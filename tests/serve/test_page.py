"""Files of the web UI: all are served, none is inline or external, all texts are translated."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import regard

PACKAGE = Path(regard.__file__).parent
STATIC = PACKAGE / "serve" / "static"
FILES = sorted(path for path in STATIC.iterdir() if path.is_file())
PAGES = {"/": "index.html", "/docs": "docs.html"}
SCRIPTS = [
    path for path in FILES if path.suffix in (".js", ".html") and path.name != "words_app.js"
]
TASKS = ("transduce", "tag", "classify", "regress", "language-model")
# Keys composed by a script:
DYNAMIC_KEYS = {
    "app.model.one",
    "app.model.two",
    *(f"app.intro.{task}" for task in (*TASKS, "synthesize")),
}
DYNAMIC_KEYS |= {f"app.intro.files.{task}" for task in ("transduce", "tag", "classify", "regress")}
DYNAMIC_KEYS |= {f"app.intro.sound.{task}" for task in ("transduce", "classify", "regress")}
DYNAMIC_KEYS |= {"app.inspector.files", "app.inspector.sound"}


def words() -> dict[str, tuple[str, str]]:
    """Return the English and Chinese texts by key."""
    text = (STATIC / "words_app.js").read_text("utf-8")
    found = re.findall(r'^ {4}"([\w.-]+)": \["(.*?)", "(.*?)"\],$', text, re.M)
    return {key: (english, chinese) for key, english, chinese in found}


@pytest.mark.parametrize(("path", "name"), PAGES.items())
def test_all_referenced_files_are_served(client: TestClient, path: str, name: str) -> None:
    html = client.get(path).text
    assert html == (STATIC / name).read_text("utf-8")
    named = re.findall(r'(?:src|href)="(static/[^"]+)"', html)
    assert len(named) > 9
    for file in named:
        assert client.get(f"/{file}").status_code == 200, file


@pytest.mark.parametrize("name", PAGES.values())
def test_no_inline_scripts_or_styles(name: str) -> None:
    html = (STATIC / name).read_text("utf-8")
    assert re.findall(r"<script[^>]*>(?!</script>)", html) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", html) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_short_and_self_contained(path: Path) -> None:
    text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert len(text.splitlines()) <= 250
    assert re.findall(r"https?://|@import|innerHTML|insertAdjacentHTML|\beval\(", text) == []


@pytest.mark.parametrize("path", PAGES)
def test_304_keeps_the_content_security_policy(client: TestClient, path: str) -> None:
    first = client.get(path)
    again = client.get(path, headers={"if-none-match": first.headers["etag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    policy = "content-security-policy"
    assert first.headers[policy] == again.headers[policy]
    assert "script-src 'self'" in first.headers[policy]
    assert "unsafe" not in first.headers[policy]


def test_all_texts_are_translated() -> None:
    shared = (PACKAGE / "views" / "pages" / "words.js").read_text("utf-8")
    known = {*words(), *re.findall(r'"([\w.]+)":', shared)}
    text = "".join(path.read_text("utf-8") for path in SCRIPTS)
    used = set(re.findall(r'"((?:app|docs)\.[\w.]+)"', text)) | DYNAMIC_KEYS
    assert len(used) > 60
    assert used - known == set()
    assert set(words()) - used == set()


def test_translations_have_the_same_placeholders() -> None:
    for key, (english, chinese) in words().items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), key
        assert english and chinese
