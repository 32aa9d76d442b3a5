"""Image files: what is converted, and broken, mislabeled or malicious files."""

import io
import os
import struct
import tracemalloc
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import draw, write
from PIL import Image as Pillow

from regard.core.errors import UserError
from regard.data.reading.image_files import IMAGES, read_image
from regard.data.reading.pillow_images import decode_image

GRAY, COLORS = draw(1, 0), draw(1, 0, channels=3)
SIDE = 100_000


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(side: int) -> bytes:
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = zlib.compress(bytes(10_000))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    )


def tiff(side: int) -> bytes:
    tags = [(256, side), (257, side), (258, 8), (259, 1), (262, 1), (273, 8), (278, side)]
    tags += [(279, 100)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags))
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + bytes(104)


BOMBS = {
    "png": png(SIDE),
    "bmp": b"BM" + struct.pack("<IHHI", 54, 0, 0, 54)
    + struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, 0, 0, 0, 0, 0),
    "gif": b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + bytes(6)
    + b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x02\x02\x4c\x01\x00;",
    "ppm": f"P6 {SIDE} {SIDE} 255\n".encode() + bytes(100),
    "pgm": f"P5 {SIDE} {SIDE} 255\n".encode() + bytes(100),
    "tiff": tiff(SIDE),
}  # fmt: skip


@pytest.mark.parametrize("kind", BOMBS)
def test_headers_of_huge_images(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(BOMBS[kind])
    tracemalloc.start()
    with pytest.raises(UserError) as error:
        read_image(str(path))
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert "pixels" in str(error.value)
    assert str(error.value).startswith(str(path))


def test_a_compressed_image_of_too_many_pixels(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Pillow.new("1", (9_000, 9_000)).save(stream, "PNG")  # about 10 KB
    with pytest.raises(UserError, match=r"9,000 x 9,000 pixels: expected at most 67,108,864"):
        decode_image(stream.getvalue(), "a.png")


def test_every_truncation_is_an_error_of_its_file(tmp_path: Path) -> None:
    for kind in ("png", "bmp", "gif", "tiff", "webp", "jpg", "ppm"):
        data = write(tmp_path / f"a.{kind}", COLORS).read_bytes()
        for end in {0, 1, 4, 10, len(data) // 2}:
            with pytest.raises(UserError, match=f"a.{kind}: ") as error:
                decode_image(data[:end], f"a.{kind}")
            assert error.value.help


def test_random_bytes_never_crash() -> None:
    random = np.random.default_rng(0)
    stream = io.BytesIO()
    for kind in ("PNG", "GIF", "BMP", "TIFF", "JPEG", "WEBP", "PPM"):
        stream = io.BytesIO()
        Pillow.fromarray(COLORS).save(stream, kind)
        for _ in range(60):
            data = bytearray(stream.getvalue())
            for _ in range(3):
                data[random.integers(len(data))] = random.integers(256)
            try:
                decode_image(bytes(data), "a")
            except UserError as error:
                assert str(error).startswith("a: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.png: the file is empty: expected an image"),
        (b"a text\n", "found text"),
        (b"\x00\x01" * 50, "found other data"),
        (b"%PDF-1.4\n\xff\xff", "found other data"),
    ],
)
def test_files_that_are_no_images(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_image(str(path))
    assert message in str(error.value) and error.value.help


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="expected an image, found a folder"):
        read_image(str(tmp_path))
    write(tmp_path / "cat.png", GRAY)
    with pytest.raises(UserError, match=r"did you mean .*cat\.png"):
        read_image(str(tmp_path / "cta.png"))


def test_files_are_closed(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.png", GRAY))
    before = len(os.listdir("/proc/self/fd"))
    kept = [read_image(path) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) == before and len(kept) == 50


def save(image: Any, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def test_conversions() -> None:
    """Each conversion is counted, and its pixels are as computed by hand."""
    half = np.full((2, 2, 4), (200, 100, 0, 128), np.uint8)  # half transparent
    blended = np.rint(np.array([200, 100, 0]) * 128 / 255 + 255 * 127 / 255)
    palette = Pillow.fromarray(COLORS).quantize(4)
    wide = Pillow.fromarray(np.array([[0, 256, 65535]], np.uint16))
    rotated = Pillow.fromarray(GRAY).getexif()
    rotated[0x0112] = 6  # shown rotated by 90 degrees clockwise
    cases = [
        (save(Pillow.fromarray(GRAY), "PNG"), GRAY[..., None], []),
        (save(Pillow.fromarray(COLORS), "BMP"), COLORS, []),
        (
            save(Pillow.fromarray(half), "PNG"),
            np.broadcast_to(blended, (2, 2, 3)),
            ["images with transparency, placed on a white background"],
        ),
        (save(palette, "PNG"), palette.convert("RGB"), ["palette images converted to RGB"]),
        (save(wide, "PNG"), [[[0], [1], [255]]], ["16-bit images reduced to 8 bits"]),
        (save(Pillow.fromarray(GRAY > 99), "PNG"), (GRAY > 99)[..., None] * 255, []),
        (
            save(Pillow.fromarray(GRAY), "PNG", exif=rotated),
            np.rot90(GRAY, -1)[..., None],
            ["images rotated as their EXIF orientation says"],
        ),
        (
            save(
                Pillow.fromarray(GRAY),
                "TIFF",
                save_all=True,
                append_images=[Pillow.fromarray(GRAY + 1)],
            ),
            GRAY[..., None],
            ["animated or multi-page images, only the first frame read"],
        ),
    ]
    for data, pixels, changes in cases:
        found: Counter[str] = Counter()
        image = decode_image(data, "a", found)
        np.testing.assert_allclose(image.pixels, np.asarray(pixels), atol=1)
        assert [*found] == changes and image.changes == tuple(changes)


def wide_png(color: int, channels: int) -> bytes:
    """Return a PNG of 2 x 2 pixels with 16 bits per channel, which are 0x80FF."""
    header = struct.pack(">IIBBBBB", 2, 2, 16, color, 0, 0, 0)
    rows = (b"\0" + b"\x80\xff" * 2 * channels) * 2
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("data", "channels", "value"),
    [
        (wide_png(2, 3), 3, 0x80),
        (wide_png(4, 2), 1, 191),  # half black on white
        (b"P6 2 2 65535\n" + b"\x80\xff" * 12, 3, 0x80),
        (b"P3 2 2 65535\n" + b"32896 " * 12, 3, 0x80),
    ],
)
def test_16_bits_per_channel_are_counted(data: bytes, channels: int, value: int) -> None:
    found: Counter[str] = Counter()
    image = decode_image(data, "a", found)
    assert image.shape == (2, 2, channels) and found["16-bit images reduced to 8 bits"] == 1
    np.testing.assert_allclose(image.pixels, value, atol=1)


def test_a_transparent_gray_stays_gray() -> None:
    pixels = np.array([[0, 7], [7, 200]], np.uint8)
    for image in (Pillow.fromarray(pixels), Pillow.fromarray(pixels > 99)):
        found = decode_image(save(image, "PNG", transparency=0), "a")
        assert found.shape == (2, 2, 1)
        assert found.pixels[0, 0, 0] == 255
        assert found.changes == ("images with transparency, placed on a white background",)


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.array([[0, 300]], np.float32), "a.tif: expected floats from 0 to 1, found 0 to 300"),
        (np.array([[0, 70_000]], np.int32), "a.tif: expected integers from 0 to 65,535"),
        (np.array([[-4, 7]], np.int32), "found -4 to 7"),
    ],
)
def test_values_beyond_16_bits(pixels: np.ndarray, message: str) -> None:
    with pytest.raises(UserError) as error:
        decode_image(save(Pillow.fromarray(pixels), "TIFF"), "a.tif")
    assert message in str(error.value) and "corrupted" not in str(error.value)
    assert error.value.help


def test_mislabeled_files_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.png", GRAY).rename(tmp_path / "a.jpg")
    changes: Counter[str] = Counter()
    read_image(str(path), changes)
    assert changes == {"images named .jpg, read as PNG": 1}


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "tif", "webp"])
def test_files_without_suffix_are_recognized(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", COLORS)
    assert IMAGES.recognizes(str(path))
    assert IMAGES.recognizes(str(path.rename(tmp_path / "b")))
    (tmp_path / "c").write_text("a text")
    assert not IMAGES.recognizes(str(tmp_path / "c"))
    assert not IMAGES.recognizes(str(tmp_path / "gone"))
