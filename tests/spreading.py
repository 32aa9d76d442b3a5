"""How several workers share the tests."""

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

from .grouping import group_of


class Spreading(LoadScopeScheduling):
    """Each group runs on one worker, the largest first; other tests on the next free worker."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.partition("::")[0])
        return group_of(Path(*file.parts[1:])) or nodeid  # the first part is `tests`
