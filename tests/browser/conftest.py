"""A real browser and a real server: Chromium through Playwright, `regard serve` as a process."""

import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import regard

PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)
TIMEOUT = 120_000  # milliseconds for each step: a machine may be slow
SCRIPTS = {"Latin": "abcdef", "Arabic": "ابتثجح", "Chinese": "天地人山水火"}


def chromium() -> str | None:
    """The program of a browser: REGARD_CHROMIUM, or where Debian and others put it."""
    for place in (os.environ.get("REGARD_CHROMIUM"), *PLACES):
        if place and (found := shutil.which(place)):
            return found
    return None


def missing() -> str | None:
    """Why these tests cannot be run, if they cannot."""
    if importlib.util.find_spec("playwright") is None:
        return "there is no Playwright: pip install playwright"
    if chromium() is None:
        return "there is no Chromium: install the package chromium, or set REGARD_CHROMIUM"
    return None


MISSING = missing()
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MISSING:
        terminalreporter.write_line(f"tests/browser was left out: {MISSING}")


class Served(NamedTuple):
    """A running server."""

    address: str

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON that the API answers."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def answer(self, model: str, text: str) -> str:
        """What a model says, without a browser."""
        return self.post("/predict", {"model": model, "texts": [text]})["predictions"][0]["text"]


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., Any]) -> Path:
    """A Transformer with two layers of two heads that half knows how to reverse words of three
    scripts."""
    folder, draw = tmp_path_factory.mktemp("letters"), random.Random(1)
    words = {
        "".join(draw.choices(s, k=draw.randint(1, 6))) for s in SCRIPTS.values() for _ in range(120)
    }
    rows = sorted(words)
    draw.shuffle(rows)
    data = folder / "words.tsv"
    data.write_text("".join(f"{word}\t{word[::-1]}\n" for word in rows), encoding="utf-8")
    settings = [
        *("model.encoder.kind=transformer", "model.encoder.width=32", "model.encoder.layers=2"),
        *("model.decoder.kind=transformer", "model.decoder.width=32", "model.decoder.layers=2"),
        *("model.encoder.heads=2", "model.decoder.heads=2", "training.batch_tokens=512"),
        *("training.lr=0.01", "training.validate_every=120"),
    ]
    more = [word for setting in settings for word in ("--set", setting)]
    said = command("train", data, "--steps", "120", "--out", folder / "run", *more)
    assert said.code == 0, said.err
    return folder / "run"


@pytest.fixture(scope="session")
def server(letters: Path, trained: Any, models: Callable[[str], Any]) -> Iterator[Served]:
    """A server of a Transformer, a recurrent model and a tagger."""
    named = {"letters": letters, "recurrent": trained.run, "tagger": models("tag").run}
    words = [f"{name}={folder}" for name, folder in named.items()]
    surroundings = os.environ | {"PYTHONPATH": str(Path(regard.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", *words, "--port", "0"],
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield Served(address)
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium. It is closed after each file: while it is open, no other event loop can run."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as play:
        one = play.chromium.launch(executable_path=chromium(), args=list(QUIET), timeout=TIMEOUT)
        yield one
        one.close()


class Tab:
    """Opens pages that are watched: what goes wrong in them is noted."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.contexts: list[Any] = []
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.allowed: tuple[str, ...] = ()

    def __call__(self, address: str, **how: Any) -> Any:
        """A page at an address, in a browser that knows nothing yet."""
        offline = how.pop("offline", False)
        allowed = how.pop("permissions", [])
        usual = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}}
        given = usual | {"reduced_motion": "reduce"} | how  # nothing is seen halfway
        context = self.browser.new_context(**given)
        context.set_default_timeout(TIMEOUT)
        context.grant_permissions(allowed)
        context.set_offline(offline)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("requestfailed", self._failed)
        page.goto(address)
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page itself wants it no more
            self.problems.append(f"{request.url}: {request.failure}")

    def check(self) -> None:
        """Nothing went wrong but what was to be expected."""
        for context in self.contexts:
            context.close()
        found = [p for p in self.problems if not any(word in p for word in self.allowed)]
        assert found == []


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    """`tab(address)` opens a page; at the end nothing went wrong in it."""
    one = Tab(browser)
    yield one
    one.check()


@pytest.fixture
def page(tab: Tab, server: Served) -> Any:
    """The page of the server; nothing is asked of any other host."""
    opened = tab(server.address)
    opened.locator("#bench").wait_for()
    yield opened
    assert [
        url for url in tab.asked if not url.startswith((server.address, "data:", "blob:"))
    ] == []
