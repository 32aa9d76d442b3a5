"""`regard runs`: what it finds, what it says of each run, and how it fits the terminal."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up import make_run
from rich.cells import cell_len

from regard.views.report.overview import (
    differing_settings,
    find_runs,
    format_setting,
    is_run,
    short_names,
    summarize,
)
from regard.views.report.run_table import compact_number, row, table

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def training(**settings: Any) -> dict[str, Any]:
    return {"training": {"lr": 0.002, "steps": 40, "seed": 1} | settings}


def listed(said: Any) -> list[dict[str, str]]:
    """The table as a reader takes it: cells by the names above them."""
    head, *lines = said.out.splitlines()
    return [dict(zip(split(head), split(line), strict=True)) for line in lines]


def split(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_line_for_each_run_newest_first(command: Command) -> None:
    make_run(Path("runs/old"), started="2026-01-01T00:00:00+00:00")
    make_run(Path("runs/new"), training(lr=0.01), started="2026-01-01T09:00:00+02:00")
    make_run(Path("runs/deep/er"), started="2026-01-01T08:00:00+00:00")
    said = command("runs")
    assert (said.code, said.err) == (0, "")
    deep, new, old = listed(said)
    assert [run["run"] for run in (deep, new, old)] == ["deep/er", "new", "old"]
    assert new == {
        "run": "new",
        "task": "transduce",
        "data": "words.tsv",
        "state": "finished",
        "best": "exact_match 62.50",
        "step": "40/40",
        "min": "4.0",
        "params": "1.23M",
        "lr": "0.01",
    }
    assert old["lr"] == "0.002" and "seed" not in old


def test_json_holds_the_numbers(command: Command) -> None:
    make_run(Path("runs/a"), training(lr=0.01), exact=(70.0, 50.0))
    make_run(Path("runs/b"), final=False)
    os.mkdir("runs/notes")
    said = command("runs", "--json", "--sort", "name")
    assert said.code == 0 and said.err == ""
    found = json.loads(said.out)
    assert found["without_runs"] == ["runs/notes"]
    first, second = found["runs"]
    assert first["folder"] == "runs/a" and first["settings"] == {"lr": 0.01}
    assert (first["metric"], first["best"], first["interval"]) == (
        "exact_match",
        70.0,
        [66.0, 74.0],
    )
    assert (first["best_step"], first["steps"], first["seconds"]) == (20, 40, 240.0)
    assert (first["parameters"], first["tokens_per_second"]) == (1_234_567, 5.0)
    assert second["best"] == 62.5 and second["interval"] is None and second["notes"] == []


def test_states(command: Command) -> None:
    make_run(Path("runs/a-done"))
    make_run(Path("runs/b-now"), final=False)
    long_ago = make_run(Path("runs/c-ago"), final=False)
    for path in long_ago.iterdir():
        os.utime(path, (1e9, 1e9))
    make_run(Path("runs/d-broken"))
    Path("runs/d-broken/run.json").write_text("{")
    states = [run["state"] for run in listed(command("runs", "--sort", "name"))]
    assert states == ["finished", "running", "stopped", "corrupted"]


@pytest.mark.parametrize("name", ["run.json", "config.yaml", "settings.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", [None, b"", b"[1", b"\xff\xfe: : -", b"7"])
def test_damaged_runs_are_named_and_the_others_listed(
    command: Command, name: str, content: bytes | None
) -> None:
    make_run(Path("runs/whole"))
    path = make_run(Path("runs/broken")) / name
    path.unlink() if content is None else path.write_bytes(content)
    said = command("runs")
    assert said.code == 0 and "Traceback" not in said.err
    assert {line.split()[0] for line in said.out.splitlines()} == {"run", "whole", "broken"}
    if name in ("run.json", "config.yaml") or content not in (None, b""):
        assert f"runs/broken: {name}" in said.err
    assert command("runs", "--json").code == 0


def test_folders_without_runs_are_named(command: Command) -> None:
    make_run(Path("runs/a"))
    Path("runs/plans/2026").mkdir(parents=True)
    Path("runs/plans/config.yaml").write_text("a: 1")  # one such file is no run yet
    Path("runs/.hidden").mkdir()
    said = command("runs")
    assert said.err == "skipped: runs/plans (contains no run)\n"
    assert len(listed(said)) == 1


def test_no_runs_says_how_to_make_one(command: Command) -> None:
    said = command("runs")
    assert (said.code, said.out) == (0, "")
    assert said.err == "no runs in runs\nhelp: train one: regard train reverse --steps 200\n"
    os.mkdir("runs")
    assert command("runs").err == said.err
    assert json.loads(command("runs", "--json").out) == {"runs": [], "without_runs": []}


def test_folders_that_are_named(command: Command) -> None:
    make_run(Path("one/a"))
    make_run(Path("two/b"))
    assert [run["run"] for run in listed(command("runs", "one"))] == ["a"]
    assert [run["run"] for run in listed(command("runs", "one/a"))] == ["one/a"]
    both = listed(command("runs", "one", "two", "two/b", "--sort", "name"))
    assert [run["run"] for run in both] == ["one/a", "two/b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "error: nowhere: no such folder"),
        (["file"], "error: file: expected a folder, found a file"),
        (
            ["--sort", "color"],
            "error: --sort: expected one of newest, name, best, minutes, parameters",
        ),
    ],
)
def test_misuse(command: Command, words: list[str], message: str) -> None:
    Path("file").touch()
    said = command("runs", *words)
    assert said.code == 2 and said.out == "" and said.err.startswith(message)


def test_orders(command: Command) -> None:
    make_run(Path("runs/a"), exact=(10.0, 20.0, 30.0), parameters=5)
    make_run(Path("runs/b"), exact=(90.0,), parameters=7)
    make_run(Path("runs/c"), exact=(50.0, 60.0), parameters=6)
    make_run(Path("runs/d"), exact=(), final=False, parameters=None)

    def order(sort: str) -> str:
        return "".join(run["run"] for run in listed(command("runs", "--sort", sort)))

    assert order("name") == "abcd"
    assert order("best") == "bcad"
    assert order("minutes") == "acbd"
    assert order("parameters") == "bcad"


def test_the_best_of_an_error_rate_is_the_lowest(command: Command) -> None:
    make_run(Path("runs/low"), exact=(90.0,), metric="loss")
    for name, value in (("low", 1.0), ("high", 3.0)):
        folder = Path("runs") / name
        if not folder.exists():
            make_run(folder, metric="loss")
        line = {"kind": "dev", "step": 1, "elapsed_seconds": 1.0, "scores": {"loss": value}}
        (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert [run["run"] for run in listed(command("runs", "--sort", "best"))] == ["low", "high"]


def test_signs_that_steer_a_terminal_are_not_printed(command: Command) -> None:
    make_run(Path("runs/a\x1b[31m"), data={"data": "x\x1b]0;y\x07"})
    said = command("runs")
    assert "\x1b" not in said.out + said.err and "\x07" not in said.out


def encoder(**settings: Any) -> dict[str, Any]:
    return {"model": {"encoder": settings}}


def test_settings_of_one_kind_count_among_runs_of_that_kind(tmp_path: Path) -> None:
    gru = summarize(make_run(tmp_path / "gru", encoder(kind="recurrent", cell="gru", layers=2)))
    lstm = summarize(make_run(tmp_path / "lstm", encoder(kind="recurrent", cell="lstm", layers=2)))
    folder = make_run(tmp_path / "other", encoder(kind="transformer", heads=4, layers=2))
    changed = {"changed": {"model.encoder.heads": [None, 4]}}
    (folder / "settings.json").write_text(json.dumps(changed))
    other = summarize(folder)
    assert differing_settings([gru, lstm]) == ["model.encoder.cell"]
    assert differing_settings([gru, other]) == ["model.encoder.kind"]
    assert differing_settings([gru, lstm, other]) == ["model.encoder.kind", "model.encoder.cell"]
    assert differing_settings([gru]) == []


def test_a_setting_that_an_older_run_lacks_counts_where_it_was_changed(tmp_path: Path) -> None:
    old = {"training": {"steps": 40, "seed": 1}}
    without = summarize(make_run(tmp_path / "without", old))
    changed = summarize(make_run(tmp_path / "changed"))  # its settings.json names training.lr
    default = summarize(make_run(tmp_path / "default", old | {"search": {"beam": 5}}))
    assert differing_settings([without, changed]) == ["training.lr"]
    assert differing_settings([without, default]) == []


def test_names_are_as_short_as_can_be() -> None:
    known = ["model.encoder.width", "model.decoder.width", "training.lr", "model.encoder.kind"]
    assert short_names(known, known) == {
        "model.encoder.width": "encoder.width",
        "model.decoder.width": "decoder.width",
        "training.lr": "lr",
        "model.encoder.kind": "encoder.kind",
    }
    assert short_names(["lr"], ["lr", "training.lr"]) == {"lr": "lr"}


def test_only_settings_of_the_same_task_and_data_are_compared(command: Command) -> None:
    make_run(Path("runs/a"), training(lr=0.1))
    make_run(Path("runs/b"), training(lr=0.2), data={"data": "other.tsv"})
    assert all(run["settings"] == {} for run in json.loads(command("runs", "--json").out)["runs"])


def drawn(width: int | None, folders: list[Path]) -> list[str]:
    names = {"model.encoder.kind": "encoder.kind", "training.lr": "lr", "search.beam": "beam"}
    runs = [row(summarize(folder), list(names)[:2], names, None) for folder in folders]
    return [line.plain for line in table(runs, width)]


def test_the_table_fits_any_width() -> None:
    folders = [make_run(Path(name)) for name in ("a", "a-run-with-a-name", "日本語")]
    wide = drawn(None, folders)
    assert len(wide) == 4 and all("recurrent" in line for line in wide[1:])
    for width in (140, 80, 60, 40):
        lines = drawn(width, folders)
        assert max(cell_len(line) for line in lines) <= width
        text = " ".join(lines)
        for word in ("recurrent", "0.002", "62.50", "a-run-with-a-name", "日本語", "1.23M"):
            assert word in text, (width, word)
    assert len(drawn(80, folders)) > 4  # the settings stand below each run


def test_columns_say_what_a_run_has_even_where_only_others_differ_in_it(command: Command) -> None:
    make_run(Path("runs/a"), training(lr=0.1))
    make_run(Path("runs/b"), training(lr=0.2))
    make_run(Path("runs/c"), training(lr=0.3), data={"data": "other.tsv"})
    assert {run["run"]: run["lr"] for run in listed(command("runs"))} == {
        **{"a": "0.1", "b": "0.2", "c": "0.3"}
    }


def test_small_things() -> None:
    assert [compact_number(n) for n in (950, 437_632, 1_730_816, 2e9)] == [
        "950",
        "438k",
        "1.73M",
        "2G",
    ]
    assert [format_setting(v) for v in (None, True, 2e-4, [1, "a"], "x")] == [
        *("none", "true", "0.0002", "1,a", "x")
    ]


def test_what_is_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "all" / "run")
    assert is_run(run) and not is_run(tmp_path / "all")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "to-run").symlink_to(run)
    (tmp_path / "links" / "to-all").symlink_to(tmp_path)  # a circle, if it were followed
    assert find_runs(tmp_path / "links") == ([tmp_path / "links" / "to-run"], [])
