"""How several workers share the tests."""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

from .grouping import unit_of

WAITING = 16  # tests that a worker has ahead, so that it never waits for the next


class Spreading(LoadScopeScheduling):
    """Each unit runs on one worker, those of most tests first.

    Units that are finished are forgotten: to count those again after each of many thousand tests
    takes more time than the tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def add_node_collection(self, node: Any, collection: Any) -> None:
        super().add_node_collection(node, collection)
        self.places = {nodeid: place for place, nodeid in enumerate(collection)}

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        nodeid = self.registered_collections[node][item_index]
        units, name = self.assigned_work[node], unit_of(nodeid)
        del units[name][nodeid]
        if not units[name]:
            del units[name]
        self._reschedule(node)

    def _pending_of(self, workload: dict[str, dict[str, bool]]) -> int:
        return sum(map(len, workload.values()))

    def _reschedule(self, node: Any) -> None:
        if node.shutting_down:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) < WAITING:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()

    def _assign_work_unit(self, node: Any) -> None:
        name, unit = self.workqueue.popitem(last=False)
        self.assigned_work[node][name] = unit
        node.send_runtest_some([self.places[nodeid] for nodeid in unit])
