"""The command `regard inspect`: lines, files and errors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import regard

Command = Callable[..., Any]


def test_short_lines_for_a_terminal(command: Command, trained: Any, models: Any) -> None:
    said = command("inspect", trained.run, "abcd", "--beam", "2")
    assert said.code == 0 and "greedy search: " in said.out
    assert "attends to" in said.out and "--out page.html" in said.out
    answer = command("predict", trained.run, "abcd", "--beam", "2").out.strip()
    assert f"target: {answer}\n" in said.out
    texts = {"tag": "Anna sees Rome", "classify": "the fine dog", "regress": "1, 2"}
    for task, text in {**texts, "language-model": "Anna"}.items():
        said = command("inspect", models(task).run, text)
        assert said.code == 0, said.err
        assert (
            f"{task}, " in said.out
            and ("value" if task == "regress" else "alternatives") in said.out
        )


def test_signs_that_move_the_cursor_are_written_out(command: Command, trained: Any) -> None:
    said = command("inspect", trained.run, "a\x1b[2Jb\n")
    assert said.code == 0 and "\x1b" not in said.out and r"source: a\x1b[2Jb\n" in said.out


def test_a_file_of_json_is_the_value(command: Command, trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    said = command("inspect", trained.run, "abж", "--json", path, "--set", "search.beam=3")
    assert said.code == 0 and said.out == "" and f"written: {path}" in said.err
    found = regard.inspect(regard.load(trained.run), "abж", beam=3).as_dict()
    assert json.loads(path.read_text("utf-8")) == found
    said = command("inspect", trained.run, "abж", "--json", "-", "--beam", "3")
    assert json.loads(said.out) == found


def test_pages_and_pictures_are_written(command: Command, trained: Any, tmp_path: Path) -> None:
    page, png, svg = (tmp_path / f"a.{end}" for end in ("html", "png", "svg"))
    said = command("inspect", trained.run, "abc", "--out", page, "--png", png, "--svg", svg)
    assert said.code == 0, said.err
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert png.read_bytes().startswith(b"\x89PNG") and "<svg" in svg.read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("abc", "--open"), "add --out page.html"),
        (("abc", "--png", "a.jpg"), "expected a file name that ends in .png"),
        (("abc", "--out", "nowhere/a.html"), "no such folder: nowhere"),
        (("abc", "--json", "nowhere/a.json"), "no such folder: nowhere"),
        (("abc", "--json", ""), "--json .: expected a file name, found a folder"),
        (("abc", "--out", "/"), "--out /: expected a file name, found a folder"),
        (("abc", "--out", "a.b", "--json", "./a.b"), "--json a.b: same file as --out"),
        (("abc", "--set", "model.width=3"), "only search.* can be changed"),
        (("a" * 300,), "--max-tokens 301"),
    ],
)
def test_commands_that_are_errors(
    command: Command, trained: Any, given: tuple[str, ...], message: str
) -> None:
    said = command("inspect", trained.run, *given)
    assert said.code == 2 and said.out == "" and message in said.err and "Traceback" not in said.err


def test_a_browser_opens_the_page(
    command: Command, trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda place: bool(seen.append(place)) or True)
    page = tmp_path / "a.html"
    assert command("inspect", trained.run, "abc", "--out", page, "--open").code == 0
    assert seen == [page.resolve().as_uri()]
    monkeypatch.setattr("webbrowser.open", lambda place: False)
    said = command("inspect", trained.run, "abc", "--out", page, "--open")
    assert said.code == 2 and "no browser could be opened" in said.err


def test_files_of_other_kinds_are_overwritten_only_by_force(
    command: Command, trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"--out": "a.html", "--json": "a.json", "--png": "a.png", "--svg": "a.svg"}
    for option, name in names.items():
        Path(name).write_text("mine")
        said = command("inspect", trained.run, "abc", option, name)
        assert said.code == 2 and f"{option} {name}: the file exists and is not a" in said.err
        assert "--force" in said.err and Path(name).read_text() == "mine"
    words = [word for pair in names.items() for word in pair]
    assert command("inspect", trained.run, "abc", *words, "--force").code == 0
    said = command("inspect", trained.run, "abca", *words)  # its own files
    assert said.code == 0, said.err
    Path("a.html").write_text("")
    assert command("inspect", trained.run, "abc", "--out", "a.html").code == 0


def test_other_commands_keep_files_of_other_kinds(
    command: Command, trained: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"report": "a.html", "plot": "a.svg", "shortlist": "a.safetensors"}
    words = {
        "report": [trained.run],
        "plot": ["softmax"],
        "shortlist": [trained.run, trained.train],
    }
    for name, file in names.items():
        Path(file).write_text("mine")
        said = command(name, *words[name], "--out", file)
        assert said.code == 2 and f"--out {file}: the file exists and is not a" in said.err
        assert Path(file).read_text() == "mine"
        for more in ("--force", None):  # then its own file
            said = command(name, *words[name], "--out", file, *([more] if more else []))
            assert said.code == 0, said.err
