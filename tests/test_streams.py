"""A process that was started without a stream: `regard predict MODEL <&-`."""

import io
import sys
from typing import Any

import pytest

from regard.cli import main
from regard.streams import mend_streams


def test_closed_streams_are_empty_and_silent(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    mend_streams()
    with sys.stdin, sys.stderr:
        assert sys.stdin.read() == "" and not sys.stdin.isatty()
        print("a remark", file=sys.stderr)
    assert capsys.readouterr().out == ""


def test_open_streams_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {name: io.StringIO() for name in ("stdin", "stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    mend_streams()
    assert {name: getattr(sys, name) for name in streams} == streams


def test_answers_need_a_place_to_go(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["regard", "recipes"])
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        main()
    monkeypatch.undo()
    assert stop.value.code == 2
    assert "error: standard output is closed" in capsys.readouterr().err
