"""A process that was started without a stream: `regard predict MODEL <&-`."""

import contextlib
import io
import os
import sys
from typing import Any

import pytest

from regard.cli import main
from regard.cli.streams import mend_streams


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


def test_answers_are_in_utf8_whatever_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    mend_streams()
    print("f\u00e4hrt \u2581")
    assert written.getvalue().decode("utf-8") == "f\u00e4hrt \u2581\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_full_disk_is_called_so(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["regard", "recipes"])
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as stop:
            main()
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
    assert stop.value.code == 2
    assert "error: no room for what is written: " in capsys.readouterr().err


def test_answers_need_a_place_to_go(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["regard", "recipes"])
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        main()
    monkeypatch.undo()
    assert stop.value.code == 2
    assert "error: standard output is closed" in capsys.readouterr().err
