"""Sources in files: tables with a file column, and folders by class."""

import errno
import io
import json
import os
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import by_class, draw, write

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.reading.images import Image
from regard.data.reading.media_table import file_medium
from regard.data.reading.read import Pairs
from regard.data.sources.media import MEDIA
from regard.data.sources.open import DataSpec


def read(task: str, path: Path, *settings: str, **columns: Any) -> Pairs:
    found: Pairs = load_config(None, [f"task.kind={task}", *settings]).task.read(
        DataSpec(str(path), **columns)
    )
    return found


def table(path: Path, rows: list[str], count: int = 4) -> Path:
    """Write a table, and the images 0.png, 1.png ... in the folder `i`."""
    path.write_text("\n".join(rows) + "\n")
    for number in range(count):
        write(path.parent / "i" / f"{number}.png", draw(number % 4, number))
    return path


@pytest.mark.parametrize("header", ["file", "path", "image", "FileName"])
def test_a_header_names_a_file_column(tmp_path: Path, header: str) -> None:
    rows = [f"i/{i}.png\t{'ab'[i % 2]}" for i in range(4)]
    found = read("classify", table(tmp_path / "t.tsv", [f"{header}\tlabel", *rows]))
    assert [pair.target for pair in found.pairs] == [("a",), ("b",), ("a",), ("b",)]
    assert [pair.line for pair in found.pairs] == [2, 3, 4, 5]
    np.testing.assert_array_equal(found.pairs[3].source.pixels[..., 0], draw(3, 3))
    assert "images: 4 files, paths relative to the folder of the table" in found.notes


@pytest.mark.parametrize("other", ["species", "label"])
@pytest.mark.parametrize("column", [None, "1", "photo"])
def test_a_file_header_is_enough(tmp_path: Path, other: str, column: str | None) -> None:
    rows = [f"i/{i}.png\t{'ab'[i % 2]}" for i in range(4)]
    path = table(tmp_path / "t.tsv", [f"photo\t{other}", *rows])
    found = read("classify", path, source_column=column)
    assert [pair.line for pair in found.pairs] == [2, 3, 4, 5]
    assert all(isinstance(pair.source, Image) for pair in found.pairs)
    records = [{"species": i % 2, "photo": f"i/{i}.png"} for i in range(4)]
    path = table(tmp_path / "t.jsonl", [json.dumps(one) for one in records])
    found = read("regress", path, target_column="species")
    assert [pair.target for pair in found.pairs] == [(0,), (1,), (0,), (1,)]


def test_words_that_are_also_headers_stay_texts(tmp_path: Path) -> None:
    path = table(tmp_path / "t.tsv", ["image\timage", "photo\tphoto", "sound\tson"])
    assert [pair.source for pair in read("transduce", path).pairs] == ["image", "photo", "sound"]


def test_a_chosen_column_of_existing_files(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", [f"{i * 0.5},i/{i}.png,x" for i in range(4)])
    found = read("regress", path, source_column="2", target_column="1")
    assert [pair.target for pair in found.pairs] == [(0.0,), (0.5,), (1.0,), (1.5,)]
    assert all(isinstance(pair.source, Image) for pair in found.pairs)


def test_texts_like_paths_stay_texts(tmp_path: Path) -> None:
    rows = [f"gone/{i}.png\t{'ab'[i % 2]}" for i in range(4)]
    for columns in ({}, {"source_column": "1"}):
        found = read("classify", table(tmp_path / "t.tsv", rows), **columns)
        assert found.pairs[0].source == "gone/0.png"
    texts = [f"/usr/lib/{i}\t{'ab'[i % 2]}" for i in range(4)]
    found = read("classify", table(tmp_path / "u.tsv", ["path\tlabel", *texts]))
    assert found.pairs[0].source == "/usr/lib/0"


def test_names_of_files_without_a_header_are_texts_with_a_note(tmp_path: Path) -> None:
    rows = [f"i/{i}.png\t{'ab'[i % 2]}" for i in range(4)]
    for task, header in (("classify", []), ("transduce", []), ("transduce", ["scan\tname"])):
        found = read(task, table(tmp_path / "t.tsv", [*header, *rows]))
        assert found.pairs[len(header)].source == "i/0.png"
        assert "--source-column COLUMN reads the files" in found.notes[-1]


def test_captions_with_several_references(tmp_path: Path) -> None:
    records = [{"image": f"i/{i}.png", "captions": [f"no. {i}", f"number {i}"]} for i in range(3)]
    path = table(tmp_path / "t.jsonl", [json.dumps(one) for one in records])
    found = read("transduce", path)
    assert [pair.target for pair in found.pairs[:3]] == ["no. 0", "number 0", "no. 1"]
    assert found.pairs[0].source is found.pairs[1].source  # read once


def test_labels_in_json_and_several_labels(tmp_path: Path) -> None:
    records = [{"file": f"i/{i}.png", "label": i} for i in range(3)]
    path = table(tmp_path / "t.jsonl", [json.dumps(one) for one in records])
    assert [p.target for p in read("classify", path).pairs] == [("0",), ("1",), ("2",)]
    path = table(tmp_path / "t.tsv", ["file\tlabels", "i/0.png\ta;b", "i/1.png\t"])
    pairs = read("classify", path, "task.label_separator=;").pairs
    assert [pair.target for pair in pairs] == [("a", "b"), ()]


def test_all_missing_files_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    rows = ["file\tlabel", *(f"i/{i}.png\ta" for i in range(30))]
    with pytest.raises(UserError) as error:
        read("classify", table(tmp_path / "t.tsv", rows))
    lines = str(error.value).splitlines()
    assert lines[0] == f"{tmp_path}/t.tsv line 6: {tmp_path}/i/4.png: no such file"
    assert lines[10] == "and 16 more; 26 of 30 files missing in total"
    assert f"relative to the folder of the table, {tmp_path}" in lines[11]


def test_files_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables").mkdir()
    rows = ["file\tlabel", *(f"i/{i}.png\ta" for i in range(4))]
    path = table(tmp_path / "t.tsv", rows).rename(tmp_path / "tables" / "t.tsv")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="exist relative to the current folder"):
        read("classify", path)


def test_bad_files_are_listed_with_table_line_and_reason(tmp_path: Path) -> None:
    rows = ["file\tlabel", *(f"i/{i}.png\ta" for i in range(4)), "i/x.png\tb", "i\tb"]
    path = table(tmp_path / "t.tsv", rows)
    (tmp_path / "i" / "x.png").write_text("not an image")
    (tmp_path / "i" / "0.png").write_bytes((tmp_path / "i" / "0.png").read_bytes()[:60])
    with pytest.raises(UserError) as error:
        read("classify", path)
    lines = str(error.value).splitlines()
    assert lines[0].startswith(f"{path} line 2: {tmp_path}/i/0.png: corrupted or truncated PNG")
    assert lines[1].startswith(f"{path} line 6: {tmp_path}/i/x.png: expected an image")
    assert lines[1].endswith("found text")
    assert lines[2] == f"{path} line 7: {tmp_path}/i: expected an image, found a folder"
    assert lines[3] == "help: copy or export the image again"
    assert lines[4] == "help: convert the file, or remove it from the data"
    assert lines[5].startswith("help: name a file; ") and len(lines) == 6


def test_empty_names_are_errors(tmp_path: Path) -> None:
    path = table(tmp_path / "t.tsv", ["file\tlabel", "i/0.png\ta", " \tb"])
    with pytest.raises(UserError, match="line 3: expected the name of a file, found nothing"):
        read("classify", path)


def test_folders_by_class(tmp_path: Path) -> None:
    folder = by_class(tmp_path / "pets")
    write(folder / "cat" / "more" / "a.bmp", draw(0, 9))
    found = read("classify", folder)
    assert found.name == "pets"
    assert [pair.target[0] for pair in found.pairs] == ["cat"] * 6 + ["dog"] * 5
    assert found.notes == [
        "read as a folder by class: 11 images (10 .png, 1 .bmp) in 2 classes",
    ]
    np.testing.assert_array_equal(found.pairs[0].source.pixels[..., 0], draw(0, 0))


def test_other_files_are_counted(tmp_path: Path) -> None:
    folder = by_class(tmp_path / "pets")
    (folder / "list.txt").write_text("x")
    (folder / "cat" / "notes.md").write_text("x")
    (folder / "cat" / "._0.png").write_text("x")
    (folder / "empty").mkdir()
    write(folder / "bird" / "0.png", draw(2, 0))
    (folder / "bird" / "0.png").rename(folder / "bird" / "0")  # recognized by its first bytes
    found = read("classify", folder)
    assert len(found.pairs) == 11
    assert found.notes == [
        "read as a folder by class: 11 images (10 .png, 1 without suffix) in 3 classes",
        "skipped: 1 file outside of class folders: list.txt",
        "skipped: 2 files of other kinds: cat/._0.png, cat/notes.md",
        "skipped: 1 folder without images: empty",
        "warning: classes with one image, which cannot be in both the training and the dev set: "
        "bird",
    ]


def test_a_link_to_a_parent_is_followed_once(tmp_path: Path) -> None:
    folder = by_class(tmp_path / "pets")
    os.symlink(folder, folder / "cat" / "loop")
    assert len(read("classify", folder).pairs) < 25


def test_conversions_are_counted(tmp_path: Path) -> None:
    folder = by_class(tmp_path / "pets")
    write(folder / "cat" / "0.png", draw(0, 0, (16, 16), 3))
    settings = ("task.source.size=8,8", "task.source.channels=1")
    found = read("classify", folder, *settings)
    assert {pair.source.shape for pair in found.pairs} == {(8, 8, 1)}
    assert found.notes[1:] == ["images converted to grayscale: 1", "images resized to 8x8: 1"]


@pytest.mark.parametrize(
    ("task", "change", "message"),
    [
        ("regress", "", "a folder has classes, but this task needs numbers"),
        ("transduce", "", "a folder has classes, but this task needs texts"),
        ("classify", "flat", "expected one subfolder with images per class, found 5 image files"),
        ("classify", "empty", "no files that can be read"),
        ("classify", "splits", "found the splits train, val"),
        ("classify", "memory", "take 64 bytes of memory: expected at most 32 bytes"),
    ],
)
def test_folder_errors(
    tmp_path: Path, task: str, change: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = by_class(tmp_path / "x", names=("train", "val") if change == "splits" else ("a", "b"))
    if change == "flat":
        folder = folder / "a"
    if change == "empty":
        folder = tmp_path / "y"
        folder.mkdir()
    if change == "memory":
        monkeypatch.setenv("REGARD_MEMORY", "1")
    with pytest.raises(UserError, match=message):
        read(task, folder)


def test_unreadable_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions as the system denies them, also if root runs the tests."""
    folder = by_class(tmp_path / "x")
    denied = {str(folder / "cat" / "0.png")}

    def deny(function: Callable[..., Any]) -> Callable[..., Any]:
        def checked(path: Any, *args: Any, **options: Any) -> Any:
            if str(path) in denied:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *args, **options)

        return checked

    monkeypatch.setattr("builtins.open", deny(open))
    monkeypatch.setattr(os, "scandir", deny(os.scandir))
    with pytest.raises(UserError, match=r"0\.png: cannot read: Permission denied"):
        read("classify", folder)
    denied.add(str(folder / "dog"))
    with pytest.raises(UserError, match=r"dog: cannot read: Permission denied"):
        read("classify", folder)


def test_files_are_recognized_by_content_if_they_have_no_suffix(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    for number in range(4):
        (tmp_path / f"s{number}").write_bytes(wav_bytes())
        (tmp_path / f"{number}.m4a").write_bytes(b"\0\0\0 ftypM4A " + bytes(40))
    table.write_text("file\tlabel\n" + "".join(f"s{n}\t{'ab'[n % 2]}\n" for n in range(4)))
    found = file_medium(str(table), ("file", "label"), MEDIA)
    assert found is not None and found.name == "sound"
    table.write_text("file\tlabel\n" + "".join(f"{n}.m4a\t{'ab'[n % 2]}\n" for n in range(4)))
    with pytest.raises(UserError, match=r"expected images or sounds, found 0\.m4a, 1\.m4a"):
        file_medium(str(table), ("file", "label"), MEDIA)
    table.write_text("text\tlabel\n" + "".join(f"{n}.m4a\t{'ab'[n % 2]}\n" for n in range(4)))
    assert file_medium(str(table), (None, None), MEDIA) is None


def wav_bytes() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.arange(2000, dtype=np.int16).tobytes())
    return stream.getvalue()
