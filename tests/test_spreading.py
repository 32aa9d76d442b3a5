"""Several workers share the tests: each test runs once, and groups stay together."""

from collections import deque
from types import SimpleNamespace
from typing import Any

from .grouping import unit_of
from .spreading import Spreading

TESTS = [
    *(f"tests/laws/test_{law}.py::test_{law}[{kind}]" for law in "abc" for kind in range(40)),
    *(f"tests/serve/test_{n % 3}.py::test_{n}" for n in range(30)),
    *(f"tests/runs/test_resume.py::test_{n}" for n in range(25)),
    *(f"tests/test_x.py::test_{n}" for n in range(50)),
]


class Worker:
    """Runs what it is sent, in that order."""

    def __init__(self) -> None:
        self.queue: deque[int] = deque()
        self.done: list[str] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id="worker")

    def send_runtest_some(self, places: list[int]) -> None:
        assert not self.shutting_down
        self.queue.extend(places)

    def shutdown(self) -> None:
        self.shutting_down = True


def test_each_test_runs_once_and_groups_stay_together() -> None:
    option = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(
        option=option, getvalue={"tx": ["popen", "popen"]}.__getitem__, getoption=lambda name: []
    )
    spreading, workers = Spreading(config, None), [Worker(), Worker()]
    for worker in workers:
        spreading.add_node(worker)  # type: ignore[arg-type]
        spreading.add_node_collection(worker, TESTS)
    spreading.schedule()
    while not spreading.tests_finished or any(worker.queue for worker in workers):
        for pace, worker in enumerate(workers, 1):
            for _ in range(min(pace, len(worker.queue))):
                # a worker knows the next test before it runs one, or that there is none
                assert len(worker.queue) > 1 or worker.shutting_down
                place = worker.queue.popleft()
                worker.done.append(TESTS[place])
                spreading.mark_test_complete(worker, place)
    assert sorted(test for worker in workers for test in worker.done) == sorted(TESTS)
    assert all(worker.done and worker.shutting_down for worker in workers)
    units = [{unit_of(test) for test in worker.done} for worker in workers]
    assert not units[0] & units[1]
