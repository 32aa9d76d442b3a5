"""The pictures of the pages in the documentation, made by the steps of the tests in tests/browser.

usage: python bench/pictures.py MODEL TEXT ONE OTHER WORD [--out docs] [--only phone]
MODEL is a Transformer, which is looked into while it answers TEXT; ONE and OTHER are compared on
WORD. ONE is also shown before anything is typed, with words of its dev set. Writes serve.png,
first-screen.png, compare-models.png, phone.png, inspect.png and inspect-dark.png.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from served import serving
from surroundings import REPOSITORY, regard_command

sys.path.insert(0, str(REPOSITORY / "tests" / "browser"))
import steps

PLACES = (os.environ.get("REGARD_CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1.5, "is_mobile": True}
HIDE_DATA = """() => {
  for (const one of document.querySelectorAll("#examples, [data-role=sample]")) one.remove();
}"""

Open = Callable[..., Any]


def first_screen(open_page: Open, args: argparse.Namespace) -> Any:
    """What a visitor sees first."""
    page = open_page(viewport={"width": 1280, "height": 720})
    steps.part(page, "model").select_option(args.one.name)
    return page


def serve(open_page: Open, args: argparse.Namespace) -> Any:
    """An answer, and what is inside."""
    page = open_page(viewport={"width": 1280, "height": 1600})
    steps.run_text(page, args.text)
    steps.run_inspect(page)
    steps.select_tab(page, "cross")
    return page


def compare_models(open_page: Open, args: argparse.Namespace) -> Any:
    """Two models side by side."""
    page = open_page(viewport={"width": 1280, "height": 820})
    steps.part(page, "model").select_option(args.one.name)
    steps.compare(page, args.other.name)
    steps.run_text(page, args.word)
    return page


def phone(open_page: Open, args: argparse.Namespace) -> Any:
    """A small screen."""
    page = open_page(**PHONE)
    steps.part(page, "model").select_option(args.one.name)
    steps.run_text(page, args.word)
    return page


def inspect(open_page: Open, args: argparse.Namespace, theme: str = "light") -> Any:
    """The page of `regard inspect`."""
    page = open_page(viewport={"width": 1280, "height": 1320}, color_scheme=theme, file=True)
    steps.select_tab(page, "cross")
    return page


def inspect_dark(open_page: Open, args: argparse.Namespace) -> Any:
    """The same at night."""
    return inspect(open_page, args, "dark")


PICTURES = {
    "first-screen": first_screen,
    "serve": serve,
    "compare-models": compare_models,
    "phone": phone,
    "inspect": inspect,
    "inspect-dark": inspect_dark,
}


def shrink(path: Path) -> None:
    """The picture in 256 colors, which is a third of its size."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("text")
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("word")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs")
    parser.add_argument("--only", choices=PICTURES, nargs="*", default=list(PICTURES))
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    regard = regard_command() or sys.exit(2)
    program = next((path for one in PLACES if one and (path := shutil.which(one))), None)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving([args.model, args.one, args.other]) as server,
        sync_playwright() as play,
    ):
        file = Path(folder) / "page.html"
        words = ["inspect", str(args.model), args.text, "--out", str(file)]
        subprocess.run([*regard, *words], check=True, stdout=subprocess.DEVNULL)
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])

        def open_page(**how: Any) -> Any:
            address = file.as_uri() if how.pop("file", False) else server.address
            page = browser.new_context(locale="en-US", **how).new_page()
            page.goto(address)
            return page

        for name in args.only:
            path = args.out / f"{name}.png"
            page = PICTURES[name](open_page, args)
            # A picture shows no sentence of the data that the model was trained on.
            if name != "first-screen":
                page.evaluate(HIDE_DATA)
            page.mouse.move(0, 0)
            page.evaluate("() => scrollTo(0, 0)")
            page.screenshot(path=path, animations="disabled")
            shrink(path)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
