"""Cells of `regard crossover`: processes with limits, and the file that keeps finished cells."""

import os
import time
from pathlib import Path

import pytest
import torch

from regard.core.errors import UserError
from regard.experiments.crossover.cell_store import CellStore, Measured, describe_machine
from regard.experiments.crossover.measure_cell import Cell, Cost
from regard.experiments.crossover.own_process import LimitExceeded, Limits, call_in_process

UNLIMITED = Limits(60.0, None)
COST = Measured(Cost(0.5, 0.5, None, 1.0))


def test_a_call_in_a_process_of_its_own() -> None:
    assert call_in_process(os.getpid, (), UNLIMITED) != os.getpid()
    with pytest.raises(ZeroDivisionError):
        call_in_process(divmod, (1, 0), UNLIMITED)


def test_a_call_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(LimitExceeded, match=r"takes more than 0\.05 s"):
        call_in_process(time.sleep, (600,), Limits(0.05, None))


def test_a_call_that_needs_too_much_memory_is_reported() -> None:
    with pytest.raises(LimitExceeded, match="needs more than 256 MB of memory"):
        call_in_process(torch.zeros, (2**32,), Limits(60.0, 2**28))


def test_a_process_that_dies_is_reported() -> None:
    with pytest.raises(LimitExceeded, match="died"):
        call_in_process(os._exit, (9,), UNLIMITED)


def test_other_settings_in_the_same_folder(tmp_path: Path) -> None:
    CellStore(tmp_path, describe_machine(1)).add(Cell("softmax", 16), COST)
    with pytest.raises(UserError, match="measured with threads 1 instead of 2") as error:
        CellStore(tmp_path, describe_machine(2))
    assert "choose another --out" in str(error.value)


def test_cells_are_restored(tmp_path: Path) -> None:
    store = CellStore(tmp_path, describe_machine(1))
    store.add(Cell("softmax", 16), COST)
    store.add(Cell("topk", 16), Measured(None, "too slow"))
    assert CellStore(tmp_path, describe_machine(1)).cells == store.cells


@pytest.mark.parametrize("content", ["[]", "{", '{"machine": 3}', '{"machine": {}}'])
def test_corrupted_cells(content: str, tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(content)
    with pytest.raises(UserError, match=r"cells\.json"):
        CellStore(tmp_path, describe_machine(1))
