"""Faults to plant: what is wrong with the data or the settings of a run, and the run with it."""

import gzip
import json
import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file
from surroundings import REPOSITORY

from regard.data.sources.builtin import builtin

Rows = list[tuple[str, str]]
SHARED = (
    *(
        "training.batch_tokens=512",
        "training.validation_examples=100",
        "training.validate_every=75",
    ),
    *("model.encoder.layers=1", "model.decoder.layers=1", "search.beam=1"),
    *("model.encoder.dropout=0.1", "model.decoder.dropout=0.1", "training.lr=0.003"),
)
SETUPS = {
    "letters": (
        *("model.encoder.kind=recurrent", "model.decoder.kind=recurrent"),
        *("model.encoder.width=64", "model.decoder.width=64"),
    ),
    "dates": (
        *("model.encoder.kind=transformer", "model.decoder.kind=transformer"),
        *("model.encoder.width=48", "model.decoder.width=48"),
        *("model.encoder.heads=4", "model.decoder.heads=4"),
    ),
}
STEPS = 300
HEALTHY_STEPS = 1500  # fewer are too few for this data, which is a finding
EXAMPLES, DEV = 6000, 400
# The weights through which the decoder sees the source.
SIGHT = {"letters": ["decoder.bridge", "decoder.join"], "dates": ["decoder.layers.0.cross.join"]}


@dataclass(frozen=True)
class Planted:
    """A run with a fault. expected: the findings that name it; none for a healthy run."""

    name: str
    expected: tuple[str, ...]
    setup: str
    plant: Callable[["Bench", str, Path], None]


class Bench:
    """Where the files lie and how commands are run."""

    def __init__(self, work: Path, command: list[str], seed: int) -> None:
        self.work, self.command, self.seed = work, command, seed
        (work / "data").mkdir(parents=True, exist_ok=True)

    def regard(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """The finished command."""
        call = [*self.command, *map(str, words)]
        return subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True)

    def rows(self, setup: str) -> tuple[Rows, Rows]:
        """Training and dev pairs of a setup."""
        parts = builtin("g2p" if setup == "letters" else setup)
        draw = random.Random(self.seed)
        sizes = ((parts.train, EXAMPLES), (parts.dev, DEV))
        train, dev = ([(p.source, p.target) for p in draw.sample(a, n)] for a, n in sizes)
        return train, dev

    def file(self, name: str, rows: Rows) -> Path:
        """The pairs as a TSV file."""
        path = self.work / "data" / f"{name}-{self.seed}.tsv"
        path.write_text("".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
        return path

    def train(
        self, out: Path, train: Path, dev: Path, settings: tuple[str, ...], *more: str | Path
    ) -> None:
        """Trains a run, unless it is there already; one that breaks off is a run too."""
        if (out / "metrics.jsonl").exists():
            return
        words = [word for setting in settings for word in ("--set", setting)]
        ends = ("--out", out, "--force", "--seed", str(self.seed))
        steps = () if "--steps" in more else ("--steps", str(STEPS))
        done = self.regard("train", train, "--dev", dev, *words, *steps, *ends, *more)
        if not (out / "metrics.jsonl").exists():
            raise SystemExit(f"{out.name}: {done.stderr[-600:]}")


def settings_of(setup: str, *more: str) -> tuple[str, ...]:
    """The settings of a setup, with others on top."""
    return (*SHARED, *SETUPS[setup], *more)


def with_settings(*more: str, steps: int = STEPS) -> Callable[[Bench, str, Path], None]:
    """Plants settings."""

    def plant(bench: Bench, setup: str, out: Path) -> None:
        train, dev = bench.rows(setup)
        files = bench.file(setup, train), bench.file(f"{setup}-dev", dev)
        bench.train(out, *files, settings_of(setup, *more), "--steps", str(steps))

    return plant


def with_rows(change: Callable[[Rows], Rows], name: str) -> Callable[[Bench, str, Path], None]:
    """Plants a change of the training part."""

    def plant(bench: Bench, setup: str, out: Path) -> None:
        train, dev = bench.rows(setup)
        files = bench.file(f"{setup}-{name}", change(train)), bench.file(f"{setup}-dev", dev)
        bench.train(out, *files, settings_of(setup))

    return plant


def shuffled(rows: Rows) -> Rows:
    """Shuffle the targets."""
    targets = [target for _, target in rows]
    random.Random(1).shuffle(targets)
    return [(source, target) for (source, _), target in zip(rows, targets, strict=True)]


def another_language(bench: Bench, setup: str, out: Path) -> None:
    """English to French in training, German to French in dev; without data dates for words."""
    shared = Path(os.environ.get("REGARD_DATA") or REPOSITORY / "../shared/data")
    if not (shared / "tatoeba_en_fr").is_dir():
        train, dev = bench.rows("letters")[0], bench.rows("dates")[1]
        files = bench.file("letters", train), bench.file("other-dev", dev)
        return bench.train(out, *files, settings_of("letters"))
    with gzip.open(shared / "tatoeba_en_fr/train.tsv.gz", "rt") as file:
        pairs = [tuple(line.rstrip("\n").split("\t")[:2]) for line in file]
    sides = []
    for language in ("de", "fr"):
        with gzip.open(shared / f"multi30k/val.{language}.gz", "rt") as file:
            sides.append(file.read().splitlines()[:DEV])
    dev = list(zip(*sides, strict=True))
    files = bench.file("tatoeba", pairs[:: len(pairs) // EXAMPLES]), bench.file("german", dev)
    words = ("task.source.tokenizer=word", "task.target.tokenizer=word")
    return bench.train(out, *files, settings_of("dates", *words), "--steps", "100")


def blinded(bench: Bench, setup: str, out: Path) -> None:
    """The weights through which the decoder sees the source are zero and stay so."""
    train, dev = bench.rows(setup)
    files = bench.file(setup, train), bench.file(f"{setup}-dev", dev)
    first = out.with_name(f"{out.name}-first")
    bench.train(first, *files, settings_of(setup), "--steps", "1")
    weights = load_file(first / "model.safetensors")
    for name, weight in weights.items():
        if name == "decoder.join.weight":
            weight[:, weight.shape[0] :] = 0  # the context; the decoder's own state stays
        elif name.rpartition(".")[0] in SIGHT[setup] and name != "decoder.join.bias":
            weight.zero_()
    save_file(weights, first / "model.safetensors")
    frozen = (f"training.freeze={json.dumps(SIGHT[setup])}", "training.pretrained_lr_factor=1.0")
    bench.train(out, *files, settings_of(setup, *frozen), "--init-from", first)


def tagger(bench: Bench, setup: str, out: Path) -> None:
    """A healthy tagger of made-up sentences, in which the word before decides."""
    draw = random.Random(bench.seed)
    nouns, verbs = ("dog", "house", "tree", "river", "walk"), ("see", "like", "walk", "paint")

    def sentence() -> tuple[str, str]:
        words = [("the", "DET"), (draw.choice(nouns), "NOUN"), ("can", "AUX")]
        words += [(draw.choice(verbs), "VERB"), ("a", "DET"), (draw.choice(nouns), "NOUN")]
        if draw.random() < 0.5:
            words.insert(1, (f"old{draw.randint(1, 99)}", "ADJ"))
        return " ".join(word for word, _ in words), " ".join(tag for _, tag in words)

    rows = [sentence() for _ in range(1200)]
    files = bench.file("tags", rows[:1000]), bench.file("tags-dev", rows[1000:])
    settings = ("model.encoder.width=32", "model.encoder.layers=1", "training.batch_tokens=256")
    bench.train(out, *files, settings, "--task", "tag", "--steps", "200")


RATES = ("learning-rate-too-high", "learning-rate-too-low")
NARROW = ("model.encoder.width=4", "model.decoder.width=4")
ONE_HEAD = ("model.encoder.heads=1", "model.decoder.heads=1")
WET = ("model.encoder.dropout=0.9", "model.decoder.dropout=0.9")
FEW_TOKENS = ("task.source.tokenizer=word", "task.source.vocab_size=6")


def narrow(bench: Bench, setup: str, out: Path) -> None:
    """A width of four."""
    with_settings(*NARROW, *(ONE_HEAD if setup == "dates" else ()))(bench, setup, out)


FAULTS = [
    Planted("rate x 100", RATES[:1], "letters", with_settings("training.lr=0.3")),
    Planted("rate / 1000", RATES[1:], "dates", with_settings("training.lr=3e-6")),
    Planted(
        "targets shuffled",
        ("targets-independent-of-sources",),
        "dates",
        with_rows(shuffled, "shuffled"),
    ),
    Planted(
        "source and target swapped",
        ("source-and-target-swapped",),
        "letters",
        with_rows(lambda rows: [(b, a) for a, b in rows], "swapped"),
    ),
    Planted("width 4", ("model-too-small",), "letters", narrow),
    Planted("dropout 0.9", ("dropout-too-high",), "dates", with_settings(*WET)),
    Planted(
        "50 examples",
        ("too-little-data", "overfitting"),
        "letters",
        with_rows(lambda rows: rows[:50], "50"),
    ),
    Planted("dev of another language", ("dev-distribution-shift",), "dates", another_language),
    Planted("attention blinded", ("source-ignored",), "dates", blinded),
    Planted("tokens unknown", ("source-oov",), "letters", with_settings(*FEW_TOKENS)),
    Planted("healthy letters", (), "letters", with_settings(steps=HEALTHY_STEPS)),
    Planted("healthy dates", (), "dates", with_settings(steps=HEALTHY_STEPS)),
    Planted("healthy tagger", (), "tags", tagger),
]
ONLY_ONE = ("dev of another language", "healthy tagger", "healthy letters", "healthy dates")
