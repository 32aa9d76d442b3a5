"""Small data for each task, made up: learned in a second or two."""

import io
import random
import wave
from pathlib import Path
from typing import Any

import numpy as np

PEOPLE, PLACES = ("Anna", "Ben", "Carla", "Dora"), ("Rome", "Ulm", "Bonn", "Oslo")
VERBS, REST = ("sees", "likes", "knows"), ("the", "old", "green", "house", "tree", "dog")
SETTINGS = {
    "transduce": ("model.encoder.kind=recurrent", "model.encoder.width=32"),
    "tag": ("model.encoder.width=32", "training.lr=0.01"),
    "classify": ("model.encoder.width=16", "training.lr=0.01"),
    "regress": ("model.encoder.width=16", "training.lr=0.01"),
    "language-model": (
        *("model.decoder.width=32", "model.decoder.layers=1", "training.lr=0.01"),
        *("task.context_length=32", "search.max_length=30"),
    ),
}
STEPS = {"transduce": 20, "tag": 60, "classify": 40, "regress": 120, "language-model": 40}


def small(task: str) -> list[str]:
    """Options of `train` for a model that is small and learns fast."""
    settings = [word for setting in SETTINGS[task] for word in ("--set", setting)]
    return ["--task", task, "--steps", str(STEPS[task]), *settings]


def tagged(count: int, seed: int = 1) -> list[list[tuple[str, str]]]:
    """Sentences of words with tags in BIO: people, with or without a surname, and places."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        sentence = [(draw.choice(PEOPLE), "B-PER")]
        if draw.random() < 0.5:
            sentence.append(("Long", "I-PER"))
        sentence.append((draw.choice(VERBS), "O"))
        sentence += [(word, "O") for word in draw.sample(REST, draw.randint(1, 3))]
        found.append([*sentence, ("in", "O"), (draw.choice(PLACES), "B-LOC")])
    return found


def columns(count: int, seed: int = 1) -> str:
    """The sentences as CoNLL-2003 writes them: word, part of speech, chunk, entity."""
    rows = ["\n".join(f"{word} X B-NP {tag}" for word, tag in s) for s in tagged(count, seed)]
    return "-DOCSTART- -X- -X- O\n\n" + "".join(f"{row}\n\n" for row in rows)


def conllu(count: int, seed: int = 1) -> str:
    """The sentences as CoNLL-U, with comments and a multi-word range in each."""
    kinds = {"B-PER": "PROPN", "I-PER": "PROPN", "B-LOC": "PROPN"}
    blocks = []
    for number, sentence in enumerate(tagged(count, seed), 1):
        rows = [f"# sent_id = {number}", "1-2\tAnnasees" + "\t_" * 8]
        for place, (word, tag) in enumerate(sentence, 1):
            kind = "VERB" if word in VERBS else kinds.get(tag, "X")
            rows.append(f"{place}\t{word}\t{word.lower()}\t{kind}\tx{place}\t_\t0\troot\t_\tNo=Yes")
        blocks.append("\n".join(rows) + "\n\n")
    return "".join(blocks)


def tag_lines(count: int, seed: int = 1) -> str:
    """The sentences as TSV: words, tab, tags."""
    rows = [zip(*sentence, strict=True) for sentence in tagged(count, seed)]
    return "".join("\t".join(" ".join(side) for side in row) + "\n" for row in rows)


def labeled(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Short opinions with one of three labels."""
    words = {"good": ("fine", "lovely"), "bad": ("awful", "dull"), "even": ("plain", "usual")}
    draw, found = random.Random(seed), []
    for _ in range(count):
        label = draw.choice(list(words))
        text = [*draw.sample(REST, 2), draw.choice(words[label])]
        draw.shuffle(text)
        found.append((" ".join(text), label))
    return found


def vectors(count: int, seed: int = 1) -> list[tuple[tuple[float, float], float]]:
    """Pairs of numbers and their sum, weighed."""
    draw = random.Random(seed)
    rows = [(round(draw.uniform(-2, 2), 3), round(draw.uniform(0, 9), 3)) for _ in range(count)]
    return [((a, b), round(3 * a - b + 5, 3)) for a, b in rows]


def table(count: int, seed: int = 1) -> str:
    """The numbers as CSV with a header."""
    return "a,b,y\n" + "".join(f"{a},{b},{y}\n" for (a, b), y in vectors(count, seed))


def running(count: int, seed: int = 1) -> str:
    """Plain text, a sentence a line."""
    return "".join(" ".join(w for w, _ in s) + ".\n" for s in tagged(count, seed))


def turned(count: int, seed: int = 1) -> str:
    """Words and the same words backwards."""
    draw = random.Random(seed)
    words = {"".join(draw.choices("aeilnorst", k=5)): None for _ in range(count)}
    return "".join(f"{word}\t{word[::-1]}\n" for word in words)


def write(task: str, folder: Path) -> tuple[Path, Path]:
    """Files to train on and to test with."""
    make = {
        "transduce": ("tsv", turned),
        "tag": ("conll", columns),
        "classify": ("tsv", lambda *a: "".join(f"{x}\t{y}\n" for x, y in labeled(*a))),
        "regress": ("csv", table),
        "language-model": ("txt", running),
    }
    end, text = make[task]
    paths = folder / f"{task}.{end}", folder / f"{task}-dev.{end}"
    for path, count, seed in zip(paths, (120, 30), (1, 2), strict=True):
        path.write_text(text(count, seed), "utf-8")
    return paths


def reads(config: Any, part: str) -> bool:
    """Whether a model is for images (part `grid`) or graphs (part `edges`)."""
    encoder = getattr(config.model, "encoder", None)
    frontend = getattr(config.model, "frontend", None)
    attends = getattr(getattr(encoder, "attention", None), "supports", None)
    return (
        part in getattr(encoder, "needs", ())
        or getattr(frontend, "reads", "") == {"grid": "image", "edges": "graph"}[part]
        or (part == "edges" and getattr(attends, "edges", False))
    )


def drawn(path: Path, count: int) -> Path:
    """Images of 28 x 28 pixels with a label each."""
    images = np.random.default_rng(count).integers(0, 256, (count, 28, 28), np.uint8)
    np.savez(path, images=images, labels=np.arange(count) % 3)
    return path


def tone(rises: bool, seed: int) -> np.ndarray:
    """A tone of 16 bits at 8,000 Hz, from 300 to 1,500 Hz or back, with noise."""
    random = np.random.default_rng(seed)
    hertz = np.linspace(300, 1500, random.integers(2400, 4000))
    phases = np.cumsum(hertz if rises else hertz[::-1]) * 2 * np.pi / 8000
    return (9000 * np.sin(phases) + random.normal(0, 200, len(hertz))).astype(np.int16)


def wav(samples: np.ndarray) -> bytes:
    """A WAV file of 8,000 Hz."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(samples.tobytes())
    return out.getvalue()


def spoken(folder: Path, count: int, first: int = 0) -> Path:
    """A table of tones that rise or fall, and what they are called."""
    rows = ["file\tword"]
    for seed in range(first, first + count):
        (folder / f"{seed}.wav").write_bytes(wav(tone(bool(seed % 2), seed)))
        rows.append(f"{seed}.wav\t{('down', 'up')[seed % 2]}")
    table = folder / f"tones{first}.tsv"
    table.write_text("\n".join(rows) + "\n")
    return table


SPOKEN = ("--source-column", "file", "--target-column", "word")


def write_for(config: Any, folder: Path) -> tuple[str | Path, ...]:
    """Write data that the model of a configuration reads; return the words for `train`."""
    if getattr(getattr(config.task, "source", None), "kind", "") == "sound":
        return spoken(folder, 12), "--dev", spoken(folder, 4, first=12), *SPOKEN
    if reads(config, "edges"):
        return ("communities",)
    if reads(config, "grid"):
        return drawn(folder / "train.npz", 70), "--dev", drawn(folder / "dev.npz", 9)
    train, dev = write(config.task.kind, folder)
    return train, "--dev", dev
