"""What `regard report` does: the page of one run, or a page that compares several."""

from pathlib import Path

from regard.core.errors import UserError, say
from regard.views.report.compare import write_comparison
from regard.views.report.overview import Summary, find_runs, summarise
from regard.views.report.report_page import write_report


def report_command(folders: list[Path], out: Path | None) -> None:
    """Writes the page and prints where it is."""
    found: dict[Path, Path] = {}
    for folder in folders:
        for run in _runs(folder):
            found.setdefault(run.resolve(), run)
    if out is not None and out.is_dir():
        raise UserError(f"--out {out}: a folder, where a file for the page is expected")
    runs = list(found.values())
    if len(runs) == 1:
        print(write_report(runs[0], out))
        return
    if out is None:
        raise UserError(f"{len(runs)} runs to compare: name the page, as in --out compare.html")
    print(write_comparison(_whole(runs), out))


def _runs(folder: Path) -> list[Path]:
    """The folder itself where it is a run, else all runs in it."""
    found, _ = find_runs(folder)
    if not found:
        raise UserError(f"{folder}: no run in it; regard runs lists what there is")
    return found


def _whole(folders: list[Path]) -> list[Summary]:
    """The runs that can be compared; the others are named."""
    runs = [summarise(folder) for folder in folders]
    whole = [run for run in runs if run.run.facts]
    for run in runs:
        if run not in whole:
            say(f"{run.folder}: left out: {' '.join(run.notes)}")
    if len(whole) < 2:
        raise UserError("fewer than two runs are left, which is nothing to compare")
    return whole
