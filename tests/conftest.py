"""What all tests share: one thread, a way to run commands, and one small trained model."""

import gc
import io
import json
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import corpora
import pytest
import torch
from filelock import FileLock
from hypothesis import HealthCheck, settings

import regard
from regard.cli import main
from regard.exchange.export import export_model

from .exportable import KINDS, random_model
from .grouping import kinds_that_fail

gc.disable()  # until all tests are collected: what is made until then stays
os.fsync = lambda file: None  # takes 10 ms; only after a power failure files would differ
torch.set_num_threads(1)  # faster for tiny tensors, and repeats bit for bit
# A shell starts what runs in the background with Ctrl-C ignored, and children inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same examples each time, on machines of any speed.
settings.register_profile(
    "regard",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("regard")


@pytest.fixture(autouse=True)
def one_torch_thread() -> Iterator[None]:
    """The next test finds one torch thread as this one did."""
    yield
    left = torch.get_num_threads()
    torch.set_num_threads(1)
    assert left == 1, f"this test leaves {left} torch threads to the next"


@pytest.fixture
def torch_threads() -> Iterator[Callable[[int], None]]:
    """`torch_threads(2)` sets the number of torch threads until the end of the test."""
    yield torch.set_num_threads
    torch.set_num_threads(1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Several workers (`-n 2`) share the tests, but each group of them stays together."""
    from .spreading import Spreading

    return Spreading(config, log)


def pytest_collection_finish() -> None:
    """The garbage collector skips what collection made, which stays until the end."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which kinds break which laws, a line for each."""
    failed = [report.nodeid for report in terminalreporter.stats.get("failed", [])]
    for line in kinds_that_fail(failed):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`made_once(name, make)` is a folder that `make(folder)` filled, once for all workers."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, make: Callable[[Path], None]) -> Path:
        place, done = common / f"shared-{name}", common / f"shared-{name}.done"
        with FileLock(common / f"shared-{name}.lock"):
            if not done.exists():
                place.mkdir()
                make(place)
                done.touch()
        return place

    return folder


class Said(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def command() -> Callable[..., Said]:
    """`command("train", "data.tsv")` runs `regard train data.tsv` here; no stream is a terminal."""

    def run(*words: str | Path, stdin: str | bytes = b"") -> Said:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = io.BytesIO(), io.BytesIO()
        code = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["regard", *map(str, words)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), "utf-8"))
            patch.setattr(sys, "stdout", io.TextIOWrapper(out, "utf-8", write_through=True))
            patch.setattr(sys, "stderr", io.TextIOWrapper(err, "utf-8", write_through=True))
            try:
                main()
            except SystemExit as stop:
                code = int(stop.code or 0)
            return Said(code, out.getvalue().decode(), err.getvalue().decode())

    return run


@pytest.fixture(scope="session")
def tiny() -> list[str]:
    """Options of `train` for a model that is small and learns fast."""
    settings = [
        *("model.encoder.kind=recurrent", "model.encoder.cell=gru", "model.encoder.width=32"),
        *("model.decoder.kind=recurrent", "model.decoder.cell=gru", "model.decoder.width=32"),
        *("training.batch_tokens=256", "training.lr=0.02"),
    ]
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="session")
def words() -> list[str]:
    """300 different words of the letters a to f, in a random order."""
    generator = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < 300:
        found["".join(generator.choices("abcdef", k=generator.randint(1, 6)))] = None
    return list(found)


class Trained(NamedTuple):
    """A run folder, the files it was trained on, and what the training said."""

    run: Path
    train: Path
    dev: Path
    said: Said


@pytest.fixture(scope="session")
def trained(
    made_once: Callable[..., Path], command: Callable[..., Said], tiny: list[str], words: list[str]
) -> Trained:
    """A model that half knows how to reverse words. All tests share it: none may change it."""

    def make(folder: Path) -> None:
        for name, part in (("train", words[:260]), ("dev", words[260:])):
            rows = "".join(f"{word}\t{word[::-1]}\n" for word in part)
            (folder / f"{name}.tsv").write_text(rows)
        steps = ("--steps", "60", "--set", "training.validate_every=30", *tiny)
        train_in(folder, command, "train.tsv", "dev.tsv", *steps)

    return trained_in(made_once("trained", make))


@pytest.fixture(scope="session")
def models(
    made_once: Callable[..., Path], command: Callable[..., Said]
) -> Callable[[str], Trained]:
    """`models("tag")` is a small trained model of a task. They are shared: none may change them."""

    def make(folder: Path, task: str) -> None:
        train, dev = corpora.write(task, folder)
        train_in(folder, command, train.name, dev.name, *corpora.small(task))

    return lambda task: trained_in(made_once(task, lambda folder: make(folder, task)))


def train_in(
    folder: Path, command: Callable[..., Said], train: str, dev: str, *words: str | Path
) -> None:
    """Trains on files of a folder; what was reported is kept there."""
    said = command("train", folder / train, "--dev", folder / dev, "--out", folder / "run", *words)
    assert said.code == 0, said.err
    (folder / "said.json").write_text(json.dumps([train, dev, *said]))


def trained_in(folder: Path) -> Trained:
    """What `train_in` left in a folder."""
    train, dev, *said = json.loads((folder / "said.json").read_text())
    return Trained(folder / "run", folder / train, folder / dev, Said(*said))


@pytest.fixture(scope="session")
def exported(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], tuple[regard.Transducer, Path]]:
    """A random model of a kind and its export to CTranslate2. They are shared, as above."""
    known: dict[str, tuple[regard.Transducer, Path]] = {}

    def of(kind: str) -> tuple[regard.Transducer, Path]:
        if kind not in known:
            folder = tmp_path_factory.mktemp("ct2")
            model = random_model(folder / "run", KINDS[kind])
            export_model(model.predictor_, "ctranslate2", folder / "out")
            known[kind] = model, folder / "out"
        return known[kind]

    return of
