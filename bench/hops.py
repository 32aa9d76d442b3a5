"""How many functions of regard are entered from a request to the first step of the decoder.

usage: python bench/hops.py [--list]
A tiny transducer is trained; then one text is predicted in Python, by the command and by the
server. Counted are the calls of functions of regard (`sys.setprofile`, in all threads) outside of
the model's own rooms (models, nn): in Python from the method `predict` on, in the command from
where the model was loaded, in the server from where the request reached the application.
`--list` names them.
"""

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from surroundings import RESULTS, machine

import regard

SOURCE = str(Path(regard.__file__).parent)
STEPS = ("step", "row")  # of a model, or of its fast path
MODEL = ("models", "nn")  # rooms of the model itself


class Counter:
    """The functions entered between `start` and the first step."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.counting = self.done = False

    def start(self) -> None:
        """Counts from here."""
        self.counting = True

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event != "call" or not self.counting or self.done or SOURCE not in code.co_filename:
            return
        if code.co_name in STEPS:
            self.done = True
        elif not code.co_name.startswith("<"):  # comprehensions, lambdas
            place = Path(code.co_filename).relative_to(SOURCE).with_suffix("")
            if place.parts[0] not in MODEL:
                self.entered.append(f"{'.'.join(place.parts)}.{code.co_qualname}")

    def watch(self, work: Callable[[], Any]) -> list[str]:
        """What is entered while this works, in all threads."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        assert self.done, "no step was seen"
        return self.entered


def train(folder: Path) -> Path:
    """A tiny model that has been used once, so that nothing is prepared later."""
    words = ["abc", "bca", "cab", "aab", "cba"]
    sizes = {"model.encoder.width": 8, "model.decoder.width": 8, "training.batch_tokens": 50}
    pairs = [(word, word[::-1]) for word in words]
    model = regard.Transducer(steps=2, settings=sizes).fit(pairs, dev=pairs)
    model.save(folder / "run")
    return folder / "run"


def in_python(run: Path) -> list[str]:
    """`model.predict([text])`"""
    model, counter = regard.load(run), Counter()
    model.predict(["abc"])
    counter.start()
    return counter.watch(lambda: model.predict(["abc"]))


def by_command(run: Path) -> list[str]:
    """`regard predict RUN abc`, from where the model was loaded."""
    from regard.cli import main

    counter = Counter()

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        ours = SOURCE in frame.f_code.co_filename
        if ours and event == "return" and frame.f_code.co_name == "load":
            outer = frame.f_back
            if outer is not None and outer.f_code.co_name != "load":
                counter.entered.clear()
                counter.start()
        counter(frame, event, arg)

    sys.argv = ["regard", "predict", str(run), "abc"]
    sys.setprofile(profile)
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    assert counter.done, "no step was seen"
    return counter.entered


def by_server(run: Path) -> list[str]:
    """`POST /predict`, from where the request reached the application."""
    from starlette.testclient import TestClient

    from regard.serve.app import build_app

    counter = Counter()
    threading.setprofile(counter)
    sys.setprofile(counter)
    try:
        with TestClient(build_app({"model": regard.load(run)})) as client:
            body = {"texts": ["abc"]}
            assert client.post("/predict", json=body).status_code == 200
            counter.start()
            assert client.post("/predict", json=body).status_code == 200
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert counter.done, "no step was seen"
    return counter.entered


def main() -> int:
    """Counts, prints and writes the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = train(Path(folder))
        ways = {"Python": in_python(run), "command": by_command(run), "server": by_server(run)}
    for name, entered in ways.items():
        print(f"{name}: {len(entered)} calls, {len(set(entered))} functions", flush=True)
        if given.list:
            print("".join(f"    {one}\n" for one in entered), end="")
    counts = {name: {"calls": len(one), "functions": len(set(one))} for name, one in ways.items()}
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "ways": counts}
    (RESULTS / "hops.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
