"""Which tests belong together when several workers share them, and which kinds break which laws."""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FOLDERS = {"browser": "browser", "serve": "sockets"}
PROCESSES = {"test_processes", "test_torchrun", "test_predict", "test_resume", "test_workers"}
ALONE = {  # their models are made once a file
    *("test_estimators", "test_estimators_tasks", "test_evaluation", "test_cli_search"),
    *("test_export_onnx", "test_import_marian", "test_import_errors", "test_inspection"),
    *("test_quantize", "test_transfer"),
}


def group_of(path: Path) -> str | None:
    """The group of a file of tests: processes, sockets and browsers never meet; None: no group."""
    folder, name = path.parts[0], path.stem
    if folder in FOLDERS:
        return FOLDERS[folder]
    if folder == "laws":
        return None
    if name in PROCESSES:
        return "processes"
    return name if name in ALONE else None


@cache
def unit_of(node: str) -> str:
    """The tests that one worker runs in a row: a group; the laws of one model, so that only that
    worker builds it; or a test alone."""
    file, _, test = node.partition("::")
    path = Path(*Path(file).parts[1:])  # the first part is `tests`
    model = test.partition("[")[2] if path.parts[0] == "laws" else ""
    return group_of(path) or model or node


def kinds_that_fail(nodes: Iterable[str]) -> list[str]:
    """Of the laws that fail: `decoder.cell=gru: steps equal one pass, select commutes`."""
    laws: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        found = re.search(r"tests/laws/.*::test_(\w+)\[([^\]]*)\]", node)
        if found:
            chosen = [part for part in found[2].split("-") if "=" in part]
            kind = ", ".join(chosen) if chosen else found[2]
            laws[kind].add(found[1].replace("_", " "))
    return [f"{kind}: {', '.join(sorted(names))}" for kind, names in sorted(laws.items())]
