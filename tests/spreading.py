"""How several workers share the tests."""

from xdist.scheduler import LoadScopeScheduling

from .grouping import unit_of


class Spreading(LoadScopeScheduling):
    """Each unit runs on one worker, those of most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
