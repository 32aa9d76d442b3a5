"""The cache of large data: found again, rebuilt if corrupted, safe with several writers."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.core.cache import cache_root, cached, load_metadata, make_key
from regard.core.errors import UserError
from regard.core.formatting import size
from regard.core.limits import MEMORY, memory_limit
from regard.data.corpus.order import batch_order
from regard.data.sources import textfile
from regard.data.sources.open import DataSpec
from regard.data.tensors.special import EOS
from regard.data.tokenizers import word_pieces
from regard.data.tokenizers.subword import BpeTokenizer, SubwordTokenizer
from regard.data.tokenizers.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Made:
    """A build that counts how often it ran."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, folder: Path) -> dict[str, Any]:
        self.count += 1
        np.arange(5000).tofile(folder / "numbers")
        (folder / "deep").mkdir()
        (folder / "deep" / "text").write_text("whole")
        return {"rows": 5000, "names": ["a"]}


def test_a_built_folder_is_reused(cache: Path) -> None:
    made = Made()
    folder, metadata = cached("things", "key", made)
    assert folder.parent.parent == cache
    assert cached("things", "key", made) == (folder, metadata)
    assert made.count == 1 and metadata == {"rows": 5000, "names": ["a"]}
    cached("things", "other", made)
    assert made.count == 2


def cut_short(folder: Path) -> None:
    path = folder / "numbers"
    path.write_bytes(path.read_bytes()[:-8])


def changed(folder: Path) -> None:
    (folder / "deep" / "text").write_text("whale")


def missing(folder: Path) -> None:
    (folder / "numbers").unlink()


def no_header(folder: Path) -> None:
    (folder / "header.json").unlink()


def other_facts(folder: Path) -> None:
    path = folder / "header.json"
    path.write_text(path.read_text().replace("5000", "6000"))


@pytest.mark.parametrize("damage", [cut_short, changed, missing, no_header, other_facts])
def test_a_corrupted_entry_is_rebuilt_with_a_warning(
    damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    made = Made()
    folder, metadata = cached("things", "key", made)
    assert "corrupted" not in capsys.readouterr().err
    damage(folder)
    assert cached("things", "key", made) == (folder, metadata)
    assert made.count == 2
    assert "corrupted" in capsys.readouterr().err
    assert os.listdir(folder.parent) == ["key"]


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    def build(folder: Path) -> dict[str, Any]:
        (folder / "half").write_text("half")
        raise UserError("bad data")

    with pytest.raises(UserError, match="bad data"):
        cached("things", "key", build)
    assert os.listdir(cache / "things") == []


def test_of_two_writers_the_first_to_finish_decides() -> None:
    """Both continue with one complete folder, and nothing else is left."""
    both = threading.Barrier(2, timeout=120)
    found: list[tuple[Path, dict[str, Any]]] = []

    def build(folder: Path) -> dict[str, Any]:
        (folder / "part").write_text("x" * 100)
        both.wait()
        return {"by": "either"}

    threads = [
        threading.Thread(target=lambda: found.append(cached("things", "key", build)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] == found[1]
    assert os.listdir(found[0][0].parent) == ["key"]


def test_a_cache_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"(?s)cannot write.*REGARD_CACHE=FOLDER"):
        cached("things", "key", Made())


def test_cache_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_root() == tmp_path / "cache"
    monkeypatch.delenv("REGARD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "regard"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "regard"


def test_keys_tell_parts_apart() -> None:
    keys = [make_key("ab", "c"), make_key("a", "bc"), make_key("abc"), make_key(b"abc")]
    assert len(set(keys)) == 4
    assert make_key({"a": 1, "b": 2}) == make_key({"b": 2, "a": 1})


def open_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The digests of a file that is opened twice, and which of them were read from the file."""
    read: list[str] = []
    check = textfile._check
    monkeypatch.setattr(textfile, "_check", lambda *given: read.append(given[0]) or check(*given))
    return [textfile.open_text(str(path)).digest for _ in range(2)], read


def test_a_file_is_read_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n")
    os.utime(path, ns=(0, 10**18))  # long ago: a file that is just written is not trusted
    first, read = open_twice(path, monkeypatch)
    assert first[0] == first[1] and len(read) == 1
    path.write_text("a\tc\n")  # as long as before
    second, read = open_twice(path, monkeypatch)
    assert second[0] == second[1] != first[0]


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("a\tb\n")
    textfile.open_text(str(path))
    assert load_metadata(str(path)) == {}


@pytest.mark.parametrize(
    ("given", "count"),
    [("", MEMORY), ("5", 5), ("2KB", 2048), ("1.5 MiB", 3 << 19), ("1g", 1 << 30)],
)
def test_sizes(given: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_MEMORY", given)
    assert memory_limit() == count


def test_a_wrong_size_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_MEMORY", "much")
    with pytest.raises(UserError, match="REGARD_MEMORY: expected a size such as 500MB"):
        memory_limit()
    assert [size(n) for n in (5, 2048, 50 << 20, 3 << 29)] == [
        "5 bytes",
        "2.0 KB",
        "50 MB",
        "1.5 GB",
    ]


def test_cached_words_are_tokenized_like_full_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also with spaces anywhere, characters that are hidden, unknown ones, and few words kept."""
    monkeypatch.setattr(word_pieces, "MAX_CACHED_WORDS", 5)
    random = np.random.default_rng(0)
    letters = list("  ab\t\r\u2581é<")
    texts = ["".join(random.choice(letters, random.integers(0, 9))) for _ in range(600)]
    tokenizer = BpeTokenizer.build(texts[:200] + ["abba baab"] * 9, 40)
    assert tokenizer._words is not None
    for start in range(0, 600, 50):
        some = [*texts[start : start + 50], "ø unknown", "", " ", "  "]
        flat, lengths = tokenizer.encode_flat(some, EOS)
        slow = super(SubwordTokenizer, tokenizer).encode_flat(some, EOS)
        assert flat.tolist() == slow[0].tolist() and lengths.tolist() == slow[1].tolist()


def test_words_are_cached_by_several_threads() -> None:
    """While one thread splits new words, another one cannot add its own between them."""
    others = list[threading.Thread]()

    def split(words: list[str]) -> list[list[int]]:
        if not others:
            others.append(threading.Thread(target=lambda: found.append(pieces.encode(["three"]))))
            others[0].start()
            others[0].join(0.2)  # it waits for this thread
        return [[len(word)] * len(word) for word in words]

    found = list[Any]()
    pieces = word_pieces.WordPieces(split, 0)
    flat, lengths = pieces.encode(["a bc", "a"])
    others[0].join()
    assert flat.tolist() == [1, 2, 2, 1] and lengths.tolist() == [3, 1]
    assert [found[0][0].tolist(), found[0][1].tolist()] == [[5] * 5, [5]]
    assert pieces.encode(["bc three"])[0].tolist() == [2, 2, 5, 5, 5, 5, 5]


def test_rows_are_closed() -> None:
    class Letters(Tokenizer):
        kind = "letters"

        def encode(self, text: str) -> list[int]:
            return [ord(letter) for letter in text]

        build = load = tokenize = join = None  # type: ignore[assignment]

    flat, lengths = Letters([]).encode_flat(["ab", "", "c"], 3)
    assert flat.tolist() == [97, 98, 3, 3, 99, 3] and lengths.tolist() == [3, 1, 2]


def test_a_process_that_encodes_does_not_load_torch() -> None:
    """Each takes memory of its own, and torch is most of what training takes."""
    code = "import sys, regard.data.corpus.encode; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_large_corpus_is_ordered_in_any_type() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, (500, 2))
    wide, narrow = (batch_order(lengths.astype(t), 200, 1, 0) for t in (np.int64, np.uint16))
    assert [rows.tolist() for rows in wide] == [rows.tolist() for rows in narrow]


def test_a_small_file_stays_in_memory(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\nc\td\n")
    assert DataSpec(str(tmp_path / "a.tsv")).read_large() is None
    assert not cache.exists()
