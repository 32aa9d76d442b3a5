"""The page of `regard inspect` for a large model: its size, and the time until it can be used.

usage: python bench/inspect_page.py [--layers 6] [--heads 8] [--tokens 30] [--repeats 5]
A Transformer with random weights reads 29 letters and is given 29 letters as its answer, so that
each map has 30 rows and 30 columns. The page is opened from a file in Chromium with the network
off. It can be used when a head that was clicked on is drawn large. The bars: 1.5 MB, 1 s.
"""

import argparse
import json
import os
import shutil
import statistics
import string
import subprocess
import sys
import tempfile
from pathlib import Path

from surroundings import RESULTS, machine, regard_command

SIZE, TIME = 1.5, 1000  # MB, milliseconds
PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# Clicks on a head as soon as there is one; done when it has been drawn large.
CLICK = """
window.usable = new Promise((done) => {
  const shown = () => document.querySelector("[data-large=attention]")?.dataset.shown;
  const after = (react) => requestAnimationFrame(() => requestAnimationFrame(react));
  const begin = () => {
    const head = [...document.querySelectorAll("[data-head]")].at(-1);
    if (!shown() || !head) return setTimeout(begin, 1);
    const before = shown();
    head.click();
    const end = () => shown() === before ? setTimeout(end, 1)
      : after(() => done(performance.now()));
    end();
  };
  begin();
});
"""


def random_model(folder: Path, args: argparse.Namespace) -> Path:
    """The run folder of a Transformer that has learned nothing."""
    import torch

    from regard.config.load import check_config
    from regard.data.reading.read import Pair
    from regard.storage.weights import save_weights
    from regard.training.describe import describe
    from regard.training.start import start_run

    torch.manual_seed(1)
    part = {"kind": "transformer", "layers": args.layers, "heads": args.heads}
    part |= {"width": 16 * args.heads, "feedforward_width": 32 * args.heads}
    tokens = {"source": {"tokenizer": "char"}, "target": {"tokenizer": "char"}}
    config = check_config({"task": tokens, "model": {"encoder": part, "decoder": part}}, "bench")
    pairs = [Pair(string.ascii_letters, string.ascii_letters[::-1], 1)]
    run = start_run(folder / "run", config, pairs, pairs)
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    describe(run, {})
    save_weights(run.model, run.folder / "model.safetensors")
    return run.folder


def write_page(folder: Path, args: argparse.Namespace) -> Path:
    """The page, written by the command."""
    regard = regard_command()
    if regard is None:
        sys.exit(2)
    run, page = random_model(folder, args), folder / "page.html"
    text = string.ascii_letters[: args.tokens - 1]
    words = ["inspect", str(run), text, "--target", text[::-1], "--out", str(page)]
    subprocess.run([*regard, *words], check=True, stdout=subprocess.DEVNULL)
    return page


def usable(page: Path, repeats: int) -> list[float]:
    """Milliseconds from the beginning until the page can be used, each in a browser of its own."""
    from playwright.sync_api import sync_playwright

    found = (os.environ.get("REGARD_CHROMIUM"), *PLACES)
    program = next((path for one in found if one and (path := shutil.which(one))), None)
    times = []
    with sync_playwright() as play:
        for _ in range(repeats):
            browser = play.chromium.launch(executable_path=program, args=QUIET)
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            context.set_offline(True)
            tab = context.new_page()
            tab.add_init_script(CLICK)
            tab.goto(page.as_uri(), wait_until="commit")
            times.append(round(tab.evaluate("() => window.usable"), 1))
            browser.close()
    return times


def main() -> int:
    """Prints the figures and writes them; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a file for the page")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = write_page(Path(folder), args)
        size = page.stat().st_size / 1e6
        times = usable(page, args.repeats)
        if args.keep:
            shutil.copy(page, args.keep)
    middle = statistics.median(times)
    reached = size <= SIZE and middle <= TIME
    print(f"{args.layers} layers, {args.heads} heads, {args.tokens} tokens: {size:.2f} MB")
    print(f"can be used after {middle:.0f} ms (of {', '.join(f'{one:.0f}' for one in times)})")
    print(f"bars: {SIZE} MB, {TIME} ms: {'met' if reached else '**missed**'}")
    record = {"machine": machine(), "MB": round(size, 3), "milliseconds": times, "reached": reached}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "inspect_page.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(not reached)


if __name__ == "__main__":
    sys.exit(main())
