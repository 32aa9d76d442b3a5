"""A process that was started without a stream: `regard predict MODEL <&-`."""

import contextlib
import io
import os
import subprocess
import sys
from typing import Any

import pytest

from regard.cli import main
from regard.cli.streams import fix_std_streams
from regard.core.version import __version__


def test_closed_streams_are_empty_and_silent(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    fix_std_streams()
    with sys.stdin, sys.stderr:
        assert sys.stdin.read() == "" and not sys.stdin.isatty()
        print("a remark", file=sys.stderr)
    assert capsys.readouterr().out == ""


def test_open_streams_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {name: io.StringIO() for name in ("stdin", "stdout", "stderr")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
    fix_std_streams()
    assert {name: getattr(sys, name) for name in streams} == streams


def test_answers_are_in_utf8_whatever_the_terminal_has(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", write_through=True))
    fix_std_streams()
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
    assert "error: disk full: " in capsys.readouterr().err


def test_answers_need_a_place_to_go(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["regard", "recipes"])
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        main()
    monkeypatch.undo()
    assert stop.value.code == 2
    assert "error: stdout is closed" in capsys.readouterr().err


EXIT = """
import atexit, sys
from regard.cli import main
atexit.register(print, "finalized")
sys.argv = ["regard", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(("command", "code"), [("--version", 0), ("nonsense", 2)])
@pytest.mark.parametrize("processes", ["1", "2"])
def test_one_of_several_processes_exits_without_finalizing(
    command: str, code: int, processes: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXIT, command],
        env=os.environ | {"WORLD_SIZE": processes},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert ("finalized" in done.stdout) == (processes == "1")
    assert done.stdout.startswith(__version__) if code == 0 else "nonsense" in done.stderr
