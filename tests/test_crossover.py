"""`regard crossover`: cells in their own processes, limits, resuming, and who pays from where."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from regard.cli.main_app import app
from regard.core.errors import UserError
from regard.experiments.crossover import measure_cell as measuring
from regard.experiments.crossover import run_crossover as running
from regard.experiments.crossover.attention_layer import (
    KERNELS,
    Decoding,
    attend,
    build_layer,
    check_kernels,
    is_causal,
    kernel_options,
)
from regard.experiments.crossover.cell_store import CellStore, Measured, describe_machine
from regard.experiments.crossover.measure_cell import Cell, Cost, measure_cell
from regard.experiments.crossover.own_process import LimitExceeded, Limits
from regard.experiments.crossover.run_crossover import Crossover, run_crossover
from regard.experiments.crossover.show import number, table_lines
from regard.views.figures.style import styled
from regard.views.plots.cost_plot import plot_costs


def costing(milliseconds: float) -> Measured:
    """A cell that takes so long, half of it forward."""
    return Measured(Cost(milliseconds / 2, milliseconds / 2, None, 1.0))


def crossed(*rows: tuple[str, list[float | None]]) -> Crossover:
    """A result with these times over lengths 128, 256, ...; None: skipped."""
    lengths = [128 * 2**i for i in range(len(rows[0][1]))]
    cells = {
        Cell(kernel, length): Measured(None, "too slow") if ms is None else costing(ms)
        for kernel, times in rows
        for length, ms in zip(lengths, times, strict=True)
    }
    return Crossover({"threads": 1}, [kernel for kernel, _ in rows], lengths, cells)


class FakeClock:
    """A clock that advances by one second per call."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_has_a_cost(kernel: str, monkeypatch: Any) -> None:
    """Times are those of the clock: one second between two calls of it."""
    monkeypatch.setattr(measuring.time, "perf_counter", FakeClock())
    monkeypatch.setattr(measuring, "tune_malloc", lambda: None)
    monkeypatch.setattr(measuring, "_peak_bytes", iter([2**20, 4 * 2**20]).__next__)
    threads = torch.get_num_threads()
    try:
        cost = measure_cell(Cell(kernel, 20), threads)
    finally:
        torch.set_num_threads(threads)
    assert cost == Cost(1000.0, 1000.0, 1000.0 if is_causal(kernel) else None, 3.0)


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if is_causal(kernel)])
@torch.inference_mode()
def test_decoding_reads_as_one_pass_does(kernel: str) -> None:
    """What is timed is real decoding: pieces and single steps give what one pass gives."""
    torch.manual_seed(0)
    layer = build_layer(kernel, 20, causal=True).eval()
    x = torch.randn(1, 20, measuring.WIDTH)
    pieces = Decoding(layer)
    found = [pieces.read(x[:, :7]), *(pieces.read(x[:, at : at + 1]) for at in range(7, 20))]
    torch.testing.assert_close(torch.cat(found, 1), Decoding(layer).read(x), atol=1e-5, rtol=1e-5)


def test_a_layer_reads_all_positions() -> None:
    out = attend(build_layer("linear", 12, causal=False), torch.randn(1, 12, measuring.WIDTH))
    assert out.shape == (1, 12, measuring.WIDTH) and out.requires_grad


def test_settings_that_follow_the_length() -> None:
    assert kernel_options("strided", 4096).model_dump()["stride"] == 64
    assert kernel_options("linformer", 4096).model_dump()["length"] == 4096
    assert kernel_options("synthesizer", 4096).model_dump()["length"] == 4096
    assert kernel_options("softmax-explicit", 8).model_dump()["fused"] is False
    assert kernel_options("local", 8) == kernel_options("local", 8192)


def test_a_kernel_pays_from_where_it_stays_ahead() -> None:
    found = crossed(
        ("softmax", [1.0, 4.0, 16.0, 64.0]),
        ("local", [2.0, 3.0, 4.0, 8.0]),
        ("linear", [0.5, 5.0, 6.0, 9.0]),  # ahead, behind, ahead for good
        ("relu", [0.5, 3.0, 15.0, 65.0]),  # behind in the end
        ("topk", [0.5, 1.0, 2.0, None]),  # never known to stay ahead
    )
    assert found.pays_from == {"local": 256, "linear": 512, "relu": None, "topk": None}


def test_a_kernel_pays_where_softmax_is_skipped() -> None:
    found = crossed(("softmax", [1.0, None]), ("local", [2.0, 3.0]), ("topk", [2.0, None]))
    assert found.pays_from == {"local": 256, "topk": None}


def test_the_tables() -> None:
    found = crossed(("softmax", [1.0, 123456.0]), ("local", [2.0, None]))
    lines = list(table_lines(found))
    assert lines[0] == "forward + backward, ms"
    assert lines[1].split() == ["128", "256"]
    assert lines[2].split() == ["softmax", "1", "123,456"]
    assert lines[3].split() == ["local", "2", "skipped"]
    assert lines[-1].split() == ["local", "never", "here"]
    assert number(None) == "-" and number(0.12345) == "0.123"


def test_the_plot_has_a_line_per_kernel() -> None:
    rows = crossed(("softmax", [1.0, 4.0]), ("local", [2.0, None])).as_dict()["rows"]
    with styled():
        figure = plot_costs(rows)
    time_panel, _, step_panel = figure.axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in time_panel.get_lines()}
    assert lines["softmax"] == [[128, 1.0], [256, 4.0]] and lines["local"] == [[128, 2.0]]
    assert time_panel.get_xscale() == time_panel.get_yscale() == "log"
    texts = {text.get_text().strip() for text in time_panel.texts}
    assert texts == {"~ n", "~ n²"}
    assert [text.get_text() for text in step_panel.texts] == ["not measured"]


def test_the_slopes_are_one_and_two() -> None:
    rows = crossed(("softmax", [1.0, 4.0, 16.0])).as_dict()["rows"]
    with styled():
        lines = plot_costs(rows).axes[0].get_lines()[1:]
    slopes = []
    for line in lines:
        (x0, x1), (y0, y1) = line.get_data()
        slopes.append(torch.tensor(y1 / y0).log().item() / torch.tensor(x1 / x0).log().item())
    assert slopes == pytest.approx([1.0, 2.0])


def planned(monkeypatch: Any, costs: dict[Cell, Any]) -> list[Cell]:
    """Cells cost what is planned, or raise it; returns the cells that are measured."""
    seen: list[Cell] = []

    def call(work: Any, args: tuple[Cell, int], limits: Limits) -> Cost:
        seen.append(args[0])
        result = costs.get(args[0], Cost(1.0, 1.0, 1.0, 1.0))
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(running, "call_in_process", call)
    return seen


def test_longer_lengths_of_a_skipped_kernel_are_skipped(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    seen = planned(monkeypatch, {Cell("topk", 64): LimitExceeded("takes more than 15 s")})
    found = run_crossover(tmp_path, ["softmax", "topk"], [32, 64, 128], 1)
    assert Cell("topk", 128) not in seen and len(seen) == 5
    assert found.cost("topk", 128) is None and found.cost("topk", 32) is not None
    errors = capsys.readouterr().err
    assert "skipped: topk at 64 positions (takes more than 15 s)" in errors
    assert "skipped: topk at 128 positions (64 positions exceed a limit already)" in errors
    skipped = [row for row in found.as_dict()["rows"] if row["forward_ms"] is None]
    assert [(row["kernel"], row["length"]) for row in skipped] == [("topk", 64), ("topk", 128)]


def test_an_interrupted_command_continues(tmp_path: Path, monkeypatch: Any) -> None:
    """Ctrl-C keeps finished cells, and a second call measures only the others."""
    arguments = ["crossover", "--lengths", "16,32", "--kernels", "local", "--out", str(tmp_path)]
    first = planned(monkeypatch, {Cell("softmax", 32): KeyboardInterrupt()})
    stopped = CliRunner().invoke(app, [*arguments, "--threads", "1"])
    assert stopped.exit_code == 130 and "run the same command to continue" in stopped.stderr
    assert first == [Cell("softmax", 16), Cell("local", 16), Cell("softmax", 32)]
    assert not (tmp_path / "crossover.json").exists()
    second = planned(monkeypatch, {})
    done = CliRunner().invoke(app, [*arguments, "--threads", "1"])
    assert done.exit_code == 0 and second == [Cell("softmax", 32), Cell("local", 32)]
    assert "2 of 4 cells are measured already" in done.stderr


def test_the_command(tmp_path: Path) -> None:
    """Real cells, in real processes."""
    arguments = ["--lengths", "16,32", "--kernels", "linear,nystrom", "--threads", "1", "--json"]
    result = CliRunner().invoke(app, ["crossover", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert set(found) == {"machine", "rows", "pays_from"}
    assert found["machine"]["threads"] == 1
    assert set(found["pays_from"]) == {"linear", "nystrom"}
    keys = ["kernel", "length", "forward_ms", "backward_ms", "step_ms", "peak_mb"]
    assert all(list(row) == keys for row in found["rows"])
    assert all(row["forward_ms"] > 0 and row["backward_ms"] > 0 for row in found["rows"])
    steps = {row["kernel"]: row["step_ms"] for row in found["rows"]}
    assert steps["nystrom"] is None and steps["linear"] > 0
    assert json.loads((tmp_path / "crossover.json").read_text()) == found
    assert (tmp_path / "crossover.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_kernels() -> None:
    with pytest.raises(UserError, match=r"--kernels longforner: .*did you mean longformer\?"):
        check_kernels(["longforner"])
    assert check_kernels(["local", "local"]) == ["softmax", "local"]


@pytest.mark.parametrize("lengths", ["", "128,x", "0", "128,,256", "-4", "1.5", "9" * 20])
def test_invalid_lengths(lengths: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["crossover", "--lengths", lengths, "--out", str(tmp_path)])
    assert isinstance(result.exception, UserError)
    assert "expected integers from 1 to 1,048,576" in str(result.exception)


def test_other_files_of_that_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text("{")
    with pytest.raises(UserError, match="not a file of this command\nhelp: delete it, or choose"):
        CellStore(tmp_path, describe_machine(1))


def test_a_panel_without_measurements_is_labeled() -> None:
    """At length 1, and for kernels that are not causal, no decoding step is measured."""
    row = {"kernel": "nystrom", "length": 1, "forward_ms": 1.0, "backward_ms": 2.0, "peak_mb": 3.0}
    with styled():
        figure = plot_costs([row | {"step_ms": None}])
        figure.canvas.draw()
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert texts == [[], [], ["not measured"]]
