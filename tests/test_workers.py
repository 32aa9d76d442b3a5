"""Copies of the process that share work: in order, errors and deaths are heard, none is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard import Constraints
from regard.core.errors import UserError
from regard.core.workers import fork_map, num_workers
from regard.inference import torch_engine
from regard.inference.predictor import Predictor
from regard.nn.fast import fast

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system that cannot fork")


def test_results_come_in_order() -> None:
    """Though the first item takes longest, and every worker has a thread of torch to itself."""

    def work(item: int) -> tuple[int, int, int]:
        torch.randn(300, 300).matmul(torch.randn(300, 300 * (9 - item)))
        return item, os.getpid(), torch.get_num_threads()

    found = list(fork_map(work, range(9), 2))
    assert [item for item, _, _ in found] == list(range(9))
    assert os.getpid() not in {pid for _, pid, _ in found}
    assert {threads for _, _, threads in found} == {1}
    assert not multiprocessing.active_children()


def test_an_error_is_raised_here() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise UserError("item 3: no such thing")
        return item

    with pytest.raises(UserError, match="item 3: no such thing"):
        list(fork_map(work, range(6), 2))
    assert not multiprocessing.active_children()


def test_a_worker_that_is_killed() -> None:
    def work(item: int) -> int:
        if item == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(UserError, match=r"(?s)a worker process died.*REGARD_WORKERS=1"):
        list(fork_map(work, range(6), 2))
    assert not multiprocessing.active_children()


def test_who_stops_listening_leaves_nothing_behind() -> None:
    results = fork_map(lambda item: item, range(50), 3)
    assert next(results) == 0 and len(multiprocessing.active_children()) == 3
    results.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_no_more_workers_than_items() -> None:
    results = fork_map(lambda item: item, [7], 5)
    assert next(results) == 7 and len(multiprocessing.active_children()) == 1
    assert list(results) == []


@pytest.mark.parametrize("given", ["0", "-1", "two", ""])
def test_an_invalid_number_of_workers(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_WORKERS", given)
    with pytest.raises(UserError, match="REGARD_WORKERS: expected"):
        num_workers()


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3}])
def test_workers_change_no_answer(
    trained: Any, words: list[str], options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = regard.load(trained.run)
    found = []
    for count in ("1", "2"):
        monkeypatch.setenv("REGARD_WORKERS", count)
        found.append(model.predict_detailed(words[:70], nbest=2, batch_size=8, **options))
    for one, other in zip(*found, strict=True):
        assert one.text == other.text and one.score == pytest.approx(other.score, abs=1e-5)
        assert [a.text for a in one.nbest] == [a.text for a in other.nbest]


def test_the_fast_path_is_made_once_for_all_workers(
    trained: Any, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are copies that end: what only they had made, each later call would make again."""
    loaded = regard.load(trained.run).predictor_
    model = loaded.engine.torch_module()
    fresh = Predictor.of(loaded.task, loaded.config, model, loaded.folder)
    made: list[int] = []
    monkeypatch.setattr(torch_engine, "fast", lambda module: made.append(1) or fast(module))
    monkeypatch.setenv("REGARD_WORKERS", "2")
    for _ in range(2):
        fresh.predict(words[:70], rows=8)
    assert len(made) == 1


def test_alternatives_at_a_place(trained: Any) -> None:
    """The most probable first, each leading to the best answer that continues with it."""
    model = regard.load(trained.run)
    best = model.predictor_.predict(["abcd"])[0]
    begun = best.tokens[0]
    found = model.predictor_.alternatives("abcd", Constraints(begun), 3)
    assert [p for _, p, _ in found] == sorted((p for _, p, _ in found), reverse=True)
    assert len({token for token, _, _ in found}) == 3 and sum(p for _, p, _ in found) <= 1
    for token, p, answer in found:
        continued = (*answer.tokens, "<eos>")
        assert continued[:2] == (begun, token)
        assert answer.token_logprobs[1] == pytest.approx(torch.tensor(p).log().item(), abs=1e-4)


def test_workers_end_with_their_original() -> None:
    """Also when that is killed and can tell them nothing."""
    script = """
import os, signal, sys
from regard.core.workers import fork_map
found = fork_map(lambda item: os.getpid(), list(range(8)), 2)
print(next(found), next(found), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )  # returns only when no process holds its output any more
    assert done.returncode == -signal.SIGKILL and len(done.stdout.split()) == 2
    end = time.monotonic() + 120
    while alive := [pid for pid in done.stdout.split() if runs(pid)]:
        assert time.monotonic() < end, f"still there: {alive}"
        time.sleep(0.1)


def runs(pid: str) -> bool:
    """Whether there is such a process, and not only a dead one not yet reaped."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_only_the_main_thread_makes_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a server would hold its connections open, and not hear that a client is gone."""
    monkeypatch.setenv("REGARD_WORKERS", "2")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(num_workers).result() == 1
    assert num_workers() == 2
