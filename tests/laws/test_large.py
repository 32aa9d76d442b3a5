"""Large files are streamed: vocabulary, corpus, dev set and check are as of small ones."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Pair
from regard.data.sources import textfile
from regard.data.sources.large import LargePairs, large_base
from regard.data.sources.open import DataSpec, TrainDev
from regard.tasks.transduce import TransduceTask

WORDS = ["the", "cat", "saw", "a", "dog", "on", "mats", "and", "ran", "away", "é", "Straße", "x"]


def texts(seed: int, count: int) -> list[str]:
    """Sentences, some of them unusual."""
    generator = random.Random(seed)
    odd = ["  two  spaces ", "e\u0301", "zero\u200bwidth", "\ufffd", "single", "x " * 40]
    made = [" ".join(generator.choices(WORDS, k=generator.randint(4, 9))) for _ in range(count)]
    for text in odd:
        made[generator.randrange(count)] = text
    return made


def sentences(count: int = 400) -> list[tuple[str, str]]:
    """Pairs with repeats, copies, several targets of a source and empty sides."""
    pairs = list(zip(texts(1, count), texts(2, count), strict=True))
    pairs[50] = pairs[10]
    pairs[60] = (pairs[10][0], "another target of the same source")
    pairs[70] = ("the same on both sides of it", "the same on both sides of it")
    pairs[80], pairs[81] = ("", "no source"), ("no target here at all", " ")
    return pairs


def table(pairs: list[tuple[str, str]], mark: str = "\t", end: str = "\n") -> str:
    return "".join(f"{one}{mark}{other}{end}" for one, other in pairs)


def objects(pairs: list[tuple[str, str]]) -> str:
    rows = [{"source": one, "target": [other, other + "!"]} for one, other in pairs]
    return "\n\n".join(json.dumps(row) for row in rows)


FILES: dict[str, dict[str, str]] = {
    "tsv": {"a.tsv": table(sentences())},
    "blank lines, CR LF, byte order mark": {
        "a.tsv": "\ufeff\r\n" + table(sentences(), end="\r\n") + "\n \n"
    },
    "header, more columns": {
        "a.tsv": "id\tsource\ttarget\n"
        + table([(f"{i}\t{s}", t) for i, (s, t) in enumerate(sentences())])
    },
    "three columns": {"a.txt": table([(s, f"{t}\tmore") for s, t in sentences()])},
    "csv": {"a.csv": table(sentences(), ";") + "\n" + table(sentences(90), ";")},
    "jsonl": {"a.jsonl": objects(sentences())},
    "guessed": {"a.data": table(sentences())},
    "aligned": {
        "a.en": table([(s, "") for s, _ in sentences()], ""),
        "a.de": table([(t, "") for _, t in sentences()], "", "\r\n"),
    },
    "no line end": {"a.tsv": table(sentences()).removesuffix("\n")},
}
SETTINGS: dict[str, list[str]] = {
    "auto": [],
    "char": ["task.source.tokenizer=char", "task.target.tokenizer=char"],
    "features": ["task.source.tokenizer=char_features", "task.target.tokenizer=char_features"],
    "nfd": [
        *("task.source.tokenizer=char", "task.source.normalization=nfd"),
        *("task.target.tokenizer=bpe", "task.target.normalization=nfd"),
    ],
    "unigram, limit": [
        *("task.source.tokenizer=unigram", "task.target.tokenizer=word", "task.max_length=12"),
        "task.source.vocab_size=60",
    ],
    "bpe apart": [
        "task.source.tokenizer=bpe",
        "task.shared_vocab=false",
        "task.target.tokenizer=whitespace",
    ],
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and blocks of a few lines."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(textfile, "BLOCK", 500)
    return tmp_path / "cache"


def write(folder: Path, files: dict[str, str], zipped: bool = False) -> DataSpec:
    folder.mkdir(exist_ok=True)
    paths = []
    for name, text in files.items():
        path = folder / (name + ".gz" * zipped)
        path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
        paths.append(str(path))
    return DataSpec(paths[0]) if len(paths) == 1 else DataSpec(None, *paths)


class Opened:
    """Everything that a run computes from its data before training."""

    def __init__(self, place: DataSpec, settings: list[str], dev: DataSpec | None = None) -> None:
        config = load_config(None, settings).task
        self.data: TrainDev = config.open(place, dev or DataSpec(option="--dev-"))
        kept, _ = config.trainable(self.data.train)
        self.task, self.options, self.auto_settings = config.fit(kept)
        self.kept, self.notes = self.options.trainable(self.data.train, self.task)
        self.corpus: Corpus = self.task.corpus(self.kept)
        self.check = self.task.check(self.data.train, self.data.dev)

    def metadata(self) -> dict[str, Any]:
        """All that must not depend on how the file was read."""
        assert isinstance(self.task, TransduceTask)
        batches = [self.corpus.batch(rows) for rows in self.corpus.order(200, 1, 0)]
        return {
            "train": list(self.data.train),
            "dev": self.data.dev,
            "notes": [n for n in self.data.notes if "streamed; index in" not in n] + self.notes,
            "vocabularies": (self.task.source.content(), self.task.target.content()),
            "options": self.options,
            "auto": self.auto_settings,
            "ratio": self.task.ratio,
            "lengths": self.corpus.lengths.tolist(),
            "digest": self.corpus.digest(),
            "tokens": [batch.source.data.tolist() for batch in batches],
            "check": self.check,
        }


def both(
    place: DataSpec,
    monkeypatch: pytest.MonkeyPatch,
    settings: list[str],
    dev: DataSpec | None = None,
) -> tuple[Opened, Opened]:
    """The same data, read into memory and streamed."""
    monkeypatch.setenv("REGARD_MEMORY", "1GB")
    small = Opened(place, settings, dev)
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    large = Opened(place, settings, dev)
    assert large_base(small.data.train) is None
    assert isinstance(large_base(large.data.train), LargePairs)
    return small, large


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_the_same_in_pieces(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write(tmp_path, FILES[name])
    small, large = both(place, monkeypatch, ["task.source.tokenizer=char"])
    assert large.metadata() == small.metadata()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_vocabulary_is_the_same_in_pieces(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write(tmp_path, FILES["tsv"])
    dev = write(tmp_path / "dev", {"dev.tsv": table(sentences(90))})
    small, large = both(place, monkeypatch, settings)
    again = Opened(place, settings)
    assert large.metadata() == small.metadata() == again.metadata()
    small, large = both(place, monkeypatch, settings, dev)
    assert large.metadata() == small.metadata()


def test_gzip_is_the_same_and_unzipped_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    place = write(tmp_path, FILES["aligned"], zipped=True)
    small, large = both(place, monkeypatch, ["task.source.tokenizer=char"])
    assert large.metadata() == small.metadata()
    assert len(list((cache / "text").iterdir())) == 2


def test_gzip_of_several_members_is_streamed_whatever_its_trailer_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of bgzip, whose last member is empty, and of `cat a.gz b.gz`."""
    lines = FILES["tsv"]["a.tsv"].splitlines(keepends=True)
    parts = ["".join(lines[start : start + 20]).encode() for start in range(0, len(lines), 20)]
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(b"".join(map(gzip.compress, [*parts, b""])))
    assert path.read_bytes()[-4:] == bytes(4)  # the size in the trailer
    monkeypatch.setenv("REGARD_MEMORY", str(path.stat().st_size + 1))
    large = DataSpec(str(path)).read_large()
    assert large is not None
    assert [(pair.source, pair.target) for pair in large.pairs] == sentences()


def test_the_size_of_gzip_is_measured_no_further_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textfile, "CHUNK", 1000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\tb\n" * 5000) * 2)
    assert textfile.text_size(str(path), 1 << 20) == 40_000
    assert textfile.text_size(str(path), 3500) == 4000
    path.write_bytes(b"a\tb\n" * 5000)
    assert textfile.text_size(str(path), 3500) == 20_000


def test_pairs_in_a_file_are_a_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = write(tmp_path, FILES["tsv"])
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    large = place.read_large()
    assert large is not None
    small = [Pair(*pair, line) for line, pair in enumerate(sentences(), 1)]
    pairs = large.pairs
    assert list(pairs) == small and len(pairs) == len(small)
    assert pairs[17] == small[17] and pairs[-1] == small[-1]
    assert list(pairs[5::37]) == small[5::37]
    assert list(pairs[5::37][2:4]) == small[5::37][2:4]
    with pytest.raises(IndexError):
        pairs[len(small)]


BAD: dict[str, dict[str, str | bytes]] = {
    "columns": {"a.tsv": table(sentences()) + "lost\n" + "a\tb\tc\n" * 12 + table(sentences())},
    "one column": {"a.tsv": "one\n" * 600},
    "needed columns": {"a.tsv": "source\tx\ttarget\n" + "a\tb\tc\n" * 300 + "a\tb\n"},
    "an empty side": {"a.tsv": "a\t\n" * 600},
    "only a header": {"a.tsv": "source\ttarget\n" + "\n" * 1200},
    "NUL": {"a.tsv": table(sentences()) + "a\0\tb\n"},
    "UTF-16": {"a.tsv": table(sentences()).encode("utf-16")},
    "Latin-1": {"a.tsv": (table(sentences()) + "\nü\tb\n" * 12).encode() + b"\xfc\tx\n" * 12},
    "old Mac": {"a.tsv": "a\tb\r" * 600},
    "lost line": {"a.en": "a\n" * 900, "a.de": "b\n" * 899},
    "invalid JSON": {"a.jsonl": objects(sentences()) + "\n{}\n[\n" * 8},
    "array": {"a.jsonl": "[\n" + objects(sentences())},
    "white space": {"a.tsv": "\n" * 2000},
    "bad CSV": {"a.csv": "a,b\n" * 500 + "a,b\rc,d\n"},
}


def errors_of(place: DataSpec, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The errors for bad data, read into memory and streamed."""
    said = []
    for limit in ("1GB", "1KB"):
        monkeypatch.setenv("REGARD_MEMORY", limit)
        with pytest.raises(UserError) as error:
            load_config(None, []).task.open(place, DataSpec(option="--dev-"))
        said.append(str(error.value))
    return said


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_reported_in_the_same_words(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for file, text in BAD[name].items():
        path = tmp_path / file
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(str(path))
    place = DataSpec(paths[0]) if len(paths) == 1 else DataSpec(None, *paths)
    one, other = errors_of(place, monkeypatch)
    assert one == other


def test_an_unknown_column_is_an_error_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (table(sentences()), "one\n" * 600):
        write(tmp_path, {"a.tsv": text})
        place = DataSpec(str(tmp_path / "a.tsv"), source_column="lemma")
        one, other = errors_of(place, monkeypatch)
        assert one == other


def test_quoted_csv_is_not_streamed_and_that_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write(tmp_path, {"a.csv": 'one,"two\nlines"\n' * 300})
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    read = load_config(None, []).task.read(place)
    assert isinstance(read.pairs, list) and read.pairs[0].target == "two\nlines"
    assert any("several times that much memory" in note for note in read.notes)


def test_a_subset_knows_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batches of a part of a file are those of its pairs, not of others."""
    place = write(tmp_path, FILES["tsv"])
    _, large = both(
        place, monkeypatch, ["task.source.tokenizer=char", "task.target.tokenizer=char"]
    )
    task = large.task
    for rows in large.corpus.order(300, 3, 1)[:5]:
        batch = large.corpus.batch(rows)
        for row, ids, mask in zip(rows, batch.source.data, batch.source.mask, strict=True):
            assert task.source.tokenizer.decode(ids[mask].tolist()) == large.kept[int(row)].source
    assert large.corpus.lengths.dtype == np.uint16


def test_a_run_is_the_same_to_the_last_bit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., Any],
    tiny: list[str],
) -> None:
    """Weights, fingerprints and check; and the check of `regard check`."""
    place = write(tmp_path, FILES["tsv"])
    runs, checks = [], []
    for limit in ("1GB", "1KB"):
        monkeypatch.setenv("REGARD_MEMORY", limit)
        run = tmp_path / f"run-{limit}"
        said = command("train", place.data, "--steps", "3", "--out", run, *tiny)
        assert said.code == 0, said.err
        metadata = json.loads((run / "run.json").read_text())["fingerprints"]
        files = [(run / name).read_bytes() for name in ("model.safetensors", "check.json")]
        runs.append((metadata, files))
        checks.append(command("check", place.data).out.split("\n\n", 1)[1])
    assert runs[0] == runs[1] and checks[0] == checks[1]


def test_a_run_resumes_from_either(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., Any],
    tiny: list[str],
) -> None:
    """A run that began with pairs in memory continues with pairs in a file."""
    place = write(tmp_path, FILES["tsv"])
    run = tmp_path / "run"
    words = ("train", place.data, "--steps", "3", "--out", run, *tiny)
    monkeypatch.setenv("REGARD_MEMORY", "1GB")
    assert command(*words).code == 0
    (run / "scores.json").unlink()  # as if it had been killed in its last validation
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    said = command(*words, "--resume")
    assert said.code == 0, said.err
    assert (run / "scores.json").exists()
