"""IDX and NPZ files of images: what is read, and what is rejected before memory is allocated."""

import gzip
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import CODES, draw, idx, write_idx

from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.reading.read import Pairs
from regard.data.sources.open import DataSpec

PIXELS = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
LABELS = np.array([7, 2, 7], np.uint8)


def read(task: str, *settings: str, **files: Any) -> Pairs:
    found: Pairs = load_config(None, [f"task.kind={task}", *settings]).task.read(DataSpec(**files))
    return found


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_pairs_of_files(tmp_path: Path, suffix: str) -> None:
    source = write_idx(tmp_path / f"train-images-idx3-ubyte{suffix}", PIXELS)
    target = write_idx(tmp_path / f"train-labels-idx1-ubyte{suffix}", LABELS)
    found = read("classify", source=source, target=target)
    assert [pair.target for pair in found.pairs] == [("7",), ("2",), ("7",)]
    np.testing.assert_array_equal(found.pairs[1].source.pixels[..., 0], PIXELS[1])
    assert str(found.pairs[1].source) == f"train-images-idx3-ubyte{suffix} image 2"
    assert found.notes == ["read as IDX", "3 images of 4x5, 1 channel"]


@pytest.mark.parametrize("kind", CODES)
def test_types(tmp_path: Path, kind: str) -> None:
    target = np.array([[1, 2], [3, 4], [5, 60]], kind)
    files = write_idx(tmp_path / "a", PIXELS), write_idx(tmp_path / "b", target)
    found = read("regress", source=files[0], target=files[1])
    assert [pair.target for pair in found.pairs] == [(1, 2), (3, 4), (5, 60)]


def test_colors_and_floats(tmp_path: Path) -> None:
    images = np.linspace(0, 1, 3 * 2 * 2 * 3, dtype=np.float32).reshape(3, 2, 2, 3)
    files = write_idx(tmp_path / "a", images), write_idx(tmp_path / "b", LABELS)
    found = read("classify", source=files[0], target=files[1])
    np.testing.assert_array_equal(found.pairs[2].source.pixels, np.rint(images[2] * 255))
    assert "float32 pixels converted to uint8" in found.notes


def test_texts_next_to_idx_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("a\nb\nc\n")
    with pytest.raises(UserError, match=r"b\.txt: expected an IDX file, found other data"):
        read("classify", source=write_idx(tmp_path / "a", PIXELS), target=str(tmp_path / "b.txt"))


def header(*sizes: int, code: int = 0x08) -> bytes:
    return struct.pack(f">HBB{len(sizes)}I", 0, code, len(sizes), *sizes)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (header(3, 4, 5) + bytes(59), LABELS, "expected 60 bytes for shape (3, 4, 5), found 59"),
        (header(3, 4, 5) + bytes(61), LABELS, "expected 60 bytes for shape (3, 4, 5), found more"),
        (header(3, 4, 5)[:10], LABELS, "truncated IDX file: no complete header"),
        (header(1, 100_000, 100_000), LABELS, "image of 100,000 x 100,000 pixels"),
        (header(2**32 - 1, 8000, 8000), LABELS, "expected at most 8.0 GB"),
        (header(2**32 - 1, 4, 5, 3) + b"x" * 100, LABELS, "expected at most 8.0 GB"),
        (header(0, 4, 5), LABELS, "no images"),
        (header(3, 0, 5), LABELS, "expected at least 1 x 1"),
        (header(3, 4, 4, 5) + bytes(240), LABELS, "expected 1 to 4 channels as last dimension"),
        (LABELS, PIXELS, "expected images with 3 or 4 dimensions, found shape (3,)"),
        (PIXELS, LABELS[:2], "has 3 images, but"),
        (PIXELS, header(2**32 - 1, 2**31), "expected at most 8.0 GB"),
        (PIXELS, header(2**31) + bytes(100), "corrupted or truncated IDX file"),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_bad_files(tmp_path: Path, images: Any, labels: Any, message: str, suffix: str) -> None:
    files = write_idx(tmp_path / f"a{suffix}", images), write_idx(tmp_path / f"b{suffix}", labels)
    tracemalloc.start()
    try:
        with pytest.raises(UserError) as error:
            read("classify", source=files[0], target=files[1])
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert message in str(error.value)


def test_gzip_bombs_are_read_up_to_the_size_in_the_header(tmp_path: Path) -> None:
    bomb = write_idx(tmp_path / "a.gz", header(3, 4, 5) + bytes(200_000_000))
    tracemalloc.start()
    with pytest.raises(UserError, match="found more"):
        read("classify", source=bomb, target=write_idx(tmp_path / "b", LABELS))
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    truncated = tmp_path / "c.gz"
    truncated.write_bytes(gzip.compress(idx(PIXELS))[:-12])
    with pytest.raises(UserError, match="truncated gzip file"):
        read("classify", source=str(truncated), target=write_idx(tmp_path / "b", LABELS))


def npz(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_npz_targets(tmp_path: Path) -> None:
    texts = np.array([["a cat", "one cat"], ["a dog", ""], ["an eel", "eel"]])
    path = npz(tmp_path / "a.npz", images=PIXELS, labels=texts)
    targets = [pair.target for pair in read("transduce", data=path).pairs]
    assert targets == ["a cat", "one cat", "a dog", "an eel", "eel"]
    path = npz(tmp_path / "b.npz", images=PIXELS, labels=[[0, 1, 1], [0, 0, 0], [1, 0, 0]])
    found = read("classify", data=path)
    assert [pair.target for pair in found.pairs] == [("1", "2"), (), ("0",)]
    assert "3 values per target, read as 0 and 1 per label" in found.notes
    path = npz(tmp_path / "c.npz", x_train=PIXELS, y_train=np.array([b"u", b"v", b"u"]))
    found = read("classify", data=path, source_column="x_train", target_column="y_train")
    assert [pair.target for pair in found.pairs] == [("u",), ("v",), ("u",)]


def test_several_values_are_names_or_indicators_in_all_rows(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", images=PIXELS, labels=[[0, 1], [1, 1], [2, 1]])
    found = read("classify", data=path)
    assert [pair.target for pair in found.pairs] == [("0", "1"), ("1",), ("2", "1")]
    assert "2 values per target, read as names of labels" in found.notes


def test_conversions_of_arrays_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ("task.source.size=8,8", "task.source.channels=3")
    npz_file = {"data": npz(tmp_path / "a.npz", images=PIXELS, labels=LABELS)}
    names = write_idx(tmp_path / "x", PIXELS), write_idx(tmp_path / "y", LABELS)
    for files in (npz_file, {"source": names[0], "target": names[1]}):
        found = read("classify", *settings, **files)
        assert {pair.source.shape for pair in found.pairs} == {(8, 8, 3)}
        assert found.notes[-2:] == ["images converted to RGB: 3", "images resized to 8x8: 3"]
    monkeypatch.setenv("REGARD_MEMORY", "9")  # 288 bytes of images
    with pytest.raises(UserError, match="the first 2 of 3 images take 384 bytes of memory"):
        read("classify", *settings, **npz_file)


def corrupt(data: bytearray, change: str) -> bytes:
    """Return the bytes of an NPZ file with corrupted data, or other fields in its headers."""
    if change == "data":
        start = data.find(b"images.npy") + 40
        data[start : start + 40] = bytes(255 - byte for byte in data[start : start + 40])
        return bytes(data)
    value, offset = (1, 6) if change == "encrypted" else (99, 8)
    for signature, at in ((b"PK\3\4", offset), (b"PK\1\2", offset + 2)):
        found = data.find(signature)
        while found >= 0:
            data[found + at] = value
            found = data.find(signature, found + 1)
    return bytes(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("data", "corrupted or truncated NPZ file"),
        ("encrypted", "NPZ file that is not supported: File 'images.npy' is encrypted"),
        ("compression", "NPZ file that is not supported: That compression method"),
    ],
)
def test_npz_files_that_cannot_be_read(tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, images=draw(0, 0, (40, 40))[None], labels=[1])
    path.write_bytes(corrupt(bytearray(path.read_bytes()), change))
    with pytest.raises(UserError) as error:
        read("classify", data=str(path))
    assert message in str(error.value) and "help: copy it again" in str(error.value)


@pytest.mark.parametrize(
    ("arrays", "task", "message"),
    [
        ({"images": PIXELS, "labels": ["a", "b", "c"]}, "regress", "a.npz image 1: expected num"),
        ({"images": PIXELS, "labels": [1, 2, np.nan]}, "regress", "a.npz image 3: expected num"),
        ({"images": PIXELS, "labels": ["a", " ", "c"]}, "classify", "a.npz image 2: expected lab"),
        ({"images": PIXELS, "labels": [1, np.nan, 2]}, "classify", "a.npz image 2: expected lab"),
        ({"images": PIXELS, "labels": [[1, 2], [3, np.inf], [1, 2]]}, "classify", "npz image 2: "),
        ({"images": PIXELS, "labels": np.zeros((3, 2, 2))}, "classify", "(N, K), found (3, 2, 2)"),
        ({"images": PIXELS, "labels": 3}, "classify", "but labels has one value"),
        ({"images": PIXELS, "labels": [1, 2]}, "classify", "but labels has 2 entries"),
        ({"x_train": PIXELS, "y_train": [1]}, "classify", "no array `images`: found x_train, y_tr"),
        ({"images": PIXELS * 1.0, "labels": LABELS}, "classify", "expected floats from 0 to 1"),
        ({"images": PIXELS[:, None, None], "labels": LABELS}, "classify", "(N, H, W) or (N, H, W"),
        ({"images": PIXELS.reshape(1, 3, 4, 5), "labels": [1]}, "classify", "np.moveaxis"),
        ({"images": np.array([{}], object), "labels": [1]}, "classify", "array of Python objects"),
    ],
)
def test_bad_npz_files(tmp_path: Path, arrays: Any, task: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read(task, data=npz(tmp_path / "a.npz", **arrays))
    assert message in str(error.value)


def test_splits_are_for_tables(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", images=PIXELS, labels=LABELS)
    with pytest.raises(UserError, match="only tables have columns of splits"):
        read("classify", data=path, split_column="split")
