"""Browser tests: Chromium driven by Playwright, `regard serve` in a subprocess."""

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

PATHS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")
ARGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),  # a microphone
)
TIMEOUT = 120_000  # milliseconds per step: the machine may be slow
SCRIPTS = {"Latin": "abcdef", "Arabic": "ابتثجح", "Chinese": "天地人山水火"}


def chromium() -> str | None:
    """Return the path of Chromium: REGARD_CHROMIUM or a usual place."""
    for path in (os.environ.get("REGARD_CHROMIUM"), *PATHS):
        if path and (found := shutil.which(path)):
            return found
    return None


def skip_reason() -> str | None:
    """Return why these tests cannot run; None if they can."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed: pip install playwright"
    if chromium() is None:
        return "Chromium is not installed: install the package chromium, or set REGARD_CHROMIUM"
    return None


SKIP_REASON = skip_reason()
collect_ignore_glob = ["test_*.py"] if SKIP_REASON else []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if SKIP_REASON:
        terminalreporter.write_line(f"tests/browser skipped: {SKIP_REASON}")


class Served(NamedTuple):
    """A running server."""

    address: str

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON response of the API."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON response of a path without a body."""
        with urllib.request.urlopen(self.address + path, timeout=120) as response:
            return json.load(response)

    def predict(self, model: str, text: str) -> str:
        """Return the prediction of a model, without the browser."""
        return self.post("/predict", {"model": model, "texts": [text]})["predictions"][0]["text"]


@pytest.fixture(scope="session")
def chars(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., Any]) -> Path:
    """Return a partly trained Transformer (2 layers, 2 heads) that reverses words of 3 scripts."""
    folder, draw = tmp_path_factory.mktemp("chars"), random.Random(1)
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
def server(chars: Path, trained: Any, models: Callable[[str], Any]) -> Iterator[Served]:
    """Serve a Transformer, a recurrent model and a tagger."""
    named = {"chars": chars, "recurrent": trained.run, "tagger": models("tag").run}
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
    """Start Chromium, per file: while it is open, no other event loop can run."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as play:
        one = play.chromium.launch(executable_path=chromium(), args=list(ARGS), timeout=TIMEOUT)
        yield one
        one.close()


class Tab:
    """Opens pages and records their errors and requests."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.contexts: list[Any] = []
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.allowed: tuple[str, ...] = ()

    def __call__(self, address: str, **how: Any) -> Any:
        """Open a page in a new browser context."""
        offline = how.pop("offline", False)
        allowed = how.pop("permissions", [])
        usual = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}}
        given = usual | {"reduced_motion": "reduce"} | how  # no half-drawn animations
        context = self.browser.new_context(**given)
        context.set_default_timeout(TIMEOUT)
        context.grant_permissions(allowed)
        context.set_offline(offline)
        self.contexts.append(context)
        page = context.new_page()
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._failed)
        page.goto(address)
        return page

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # cancelled by the page
            self.problems.append(f"{request.url}: {request.failure}")

    def check(self) -> None:
        """Assert that only expected errors occurred."""
        for context in self.contexts:
            context.close()
        found = [p for p in self.problems if not any(word in p for word in self.allowed)]
        assert found == []


@pytest.fixture
def tab(browser: Any) -> Iterator[Tab]:
    """`tab(address)` opens a page; unexpected errors fail the test."""
    one = Tab(browser)
    yield one
    one.check()


@pytest.fixture
def page(tab: Tab, server: Served) -> Any:
    """Open the web UI; requests to other hosts fail the test."""
    opened = tab(server.address)
    opened.locator("#workspace").wait_for()
    yield opened
    assert [
        url for url in tab.requests if not url.startswith((server.address, "data:", "blob:"))
    ] == []
