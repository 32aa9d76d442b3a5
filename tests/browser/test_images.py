"""The web UI with images and sounds: choose, draw, play, inspect; accessible, in two languages."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import pytest
from playwright.sync_api import Page, expect

import regard
from regard.core.png import encode_png

from .conftest import Served, Tab
from .steps import part, wait_for_result
from .test_accessibility import both_themes, violations

SIDE = 8


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., Any]) -> Path:
    """Return a folder with a classifier of bright and dark images, and the PNG file `a.png`."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    labels = np.arange(60) % 2
    pixels = (rng.integers(0, 100, (60, SIDE, SIDE)) + 150 * labels[:, None, None]).astype(np.uint8)
    names = np.array(["dark", "bright"])
    np.savez(folder / "data.npz", images=pixels, labels=names[labels])
    (folder / "a.png").write_bytes(encode_png(np.full((24, 24, 1), 230, np.uint8)))
    said = command(
        *("train", folder / "data.npz", "--task", "classify", "--steps", "40"),
        *("--out", folder / "run", "--set", "model.encoder.kind=cnn"),
        *("--set", "model.pooling=attention"),
    )
    assert said.code == 0, said.err
    return folder


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory, command: Callable[..., Any]) -> Path:
    """Return a folder with a classifier of tones, and the WAV file `0.wav`, which falls."""
    folder = tmp_path_factory.mktemp("sounds")
    table = corpora.spoken(folder, 16)
    said = command(
        *("train", table, *corpora.SPOKEN, "--task", "classify", "--steps", "25"),
        *("--out", folder / "run", "--set", "model.encoder.width=16"),
        *("--set", "model.encoder.layers=1", "--set", "training.lr=0.02"),
    )
    assert said.code == 0, said.err
    return folder


@pytest.fixture(scope="module")
def image_server(images: Path, sounds: Path) -> Iterator[Served]:
    """Serve the classifiers of images and of sounds."""
    surroundings = os.environ | {"PYTHONPATH": str(Path(regard.__file__).parents[1])}
    models = (f"bright={images / 'run'}", f"tones={sounds / 'run'}")
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "serve", *models, "--port", "0"],
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Served(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(120)


def choose(page: Page, file: Path) -> None:
    """Choose a file and wait for its prediction."""
    expect(page.locator("#files")).to_be_visible()
    page.locator("#file").set_input_files(file)
    wait_for_result(page)


@both_themes
def test_an_image_is_predicted_and_inspected(
    tab: Tab, image_server: Served, images: Path, theme: str
) -> None:
    page = tab(image_server.address, color_scheme=theme)
    choose(page, images / "a.png")
    expect(part(page, "text")).to_have_text("bright")
    expect(page.locator("#text")).to_be_hidden()
    expect(part(page, "probabilities").locator("li")).to_have_count(2)
    about = page.locator("[data-role=file]")
    expect(about).to_contain_text("24 × 24 resized to 8 × 8, grayscale")
    page.locator("#inspect").click()
    expect(page.locator("[data-picture=frame]")).to_be_visible()
    for view in ("none", "saliency", "class", "attention"):
        page.locator(f"[data-overlay={view}]").click()
        expect(page.locator("[data-picture=frame]")).to_have_attribute(
            "aria-label", re.compile(".")
        )
    expect(page.locator("[data-tiles=filters] canvas").first).to_be_visible()
    maps = page.locator("figure[data-maps='0']")
    expect(maps.locator("[data-field=image]")).to_be_hidden()
    maps.locator("canvas[role=img]").first.click(position={"x": 2, "y": 2})
    expect(maps.locator("[data-says=field]")).to_contain_text(
        "Row 1, column 1 of encoder.stack.blocks.0 depends on rows 1 to 2 and columns 1 to 2"
    )
    assert violations(page) == []


def test_a_drawing_is_predicted_in_chinese(tab: Tab, image_server: Served, images: Path) -> None:
    page = tab(image_server.address)
    choose(page, images / "a.png")
    page.locator("[data-language=zh]").click()
    expect(page.locator("#text-label")).to_have_text("输入文件")
    page.locator(".draw summary").click()
    box = page.locator(".pen").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 90, steps=4)
    page.mouse.up()
    expect(page.locator("[data-role=file]")).to_contain_text("绘图 1")
    wait_for_result(page)


def test_a_broken_image_is_named(tab: Tab, image_server: Served, tmp_path: Path) -> None:
    page = tab(image_server.address)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    expect(page.locator("#files")).to_be_visible()
    page.locator("#file").set_input_files(broken)
    expect(page.locator("#files [role=alert]")).to_contain_text("broken.png")


def test_a_sound_is_played_and_predicted(tab: Tab, image_server: Served, sounds: Path) -> None:
    page = tab(f"{image_server.address}#model=tones")
    expect(page.locator("#files")).to_contain_text("or drop a sound here")
    choose(page, sounds / "0.wav")
    expect(part(page, "text")).to_have_text("down")
    expect(page.locator("#files audio")).to_be_visible()
    expect(page.locator("[data-role=file]")).to_have_text("0.wav")
    assert violations(page) == []
    page.locator("#inspect").click()
    expect(page.locator("#inspection audio")).to_be_visible()


DROP = """(bytes) => {
  const dataTransfer = new DataTransfer();
  for (const name of ["a.wav", "b.wav"]) {
    dataTransfer.items.add(new File([new Uint8Array(bytes)], name, { type: "audio/wav" }));
  }
  document.querySelector("#files").dispatchEvent(new DragEvent("drop", { dataTransfer }));
}"""


def test_the_first_of_several_dropped_files_is_read(
    tab: Tab, image_server: Served, sounds: Path
) -> None:
    page = tab(f"{image_server.address}#model=tones")
    expect(page.locator("#files")).to_contain_text("or drop a sound here")
    page.evaluate(DROP, list((sounds / "0.wav").read_bytes()))
    expect(page.locator("#files [role=alert]")).to_have_text(
        "Only a.wav is read, the first of 2 files."
    )
    expect(page.locator("[data-role=file]")).to_have_text("a.wav")


def test_a_recording_is_played_and_predicted(tab: Tab, image_server: Served) -> None:
    """The microphone of the test browser beeps."""
    page = tab(f"{image_server.address}#model=tones")
    record = page.locator("[data-role=record]")
    expect(record).to_have_text("Record")
    record.click()
    expect(record).to_have_text("Stop recording")
    page.wait_for_timeout(1500)
    record.click()
    expect(page.locator("[data-role=file]")).to_have_text("recording 1.wav")
    expect(part(page, "text")).to_have_text(re.compile("up|down"))
    expect(page.locator("#files audio")).to_be_visible()
    expect(record).to_have_text("Record")


@pytest.mark.parametrize("content", [b"no sound", corpora.wav(corpora.tone(True, 0) * 0)])
def test_a_sound_that_cannot_be_used_is_an_error(
    tab: Tab, image_server: Served, tmp_path: Path, content: bytes
) -> None:
    page = tab(f"{image_server.address}#model=tones")
    tab.allowed = ("422", "400")
    (tmp_path / "bad.wav").write_bytes(content)
    page.locator("#file").set_input_files(tmp_path / "bad.wav")
    expect(page.locator("[role=alert]:visible").first).to_contain_text(
        re.compile("expected a sound|the recording is silent")
    )


def test_the_neighborhood_of_a_node_is_drawn(tab: Tab, tmp_path: Path) -> None:
    """The layers of a GAT have different numbers of heads."""
    tagger = regard.Tagger(settings={"model.encoder.kind": "gat"}, steps=2)
    edges = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3]]
    tagger.fit(np.eye(6), ["x", "y"] * 3, edges=edges)
    regard.inspect(tagger, "0").save(tmp_path / "page.html")
    page = tab((tmp_path / "page.html").as_uri())
    expect(page.locator(".graph-node")).to_have_count(6)
    expect(page.locator(".graph-node.explained")).to_have_count(1)
    expect(page.locator("line.graph-edge")).to_have_count(7)
    page.locator("[data-graph-head]").select_option("3")
    page.locator("[data-graph-layer]").select_option("1")
    expect(page.locator("[data-graph-head]")).to_have_count(0)
    expect(page.locator("line.graph-edge").first).to_have_attribute(
        "stroke-width", re.compile(r"^[\d.]+$")
    )
    assert violations(page) == []
