"""The command that writes the page of a run, or a page that compares several."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug
from regard.core.errors import UserError, info


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders, or folders of runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page; of one run else its report.html.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the page of a run, or compare runs: regard report runs/a runs/b --out both.html."""
    from regard.views.report.compare import write_comparison
    from regard.views.report.overview import find_runs, summarize
    from regard.views.report.report_page import write_report

    found: dict[Path, Path] = {}
    for folder in folders:
        inside, _ = find_runs(folder)
        if not inside:
            raise UserError(f"{folder}: no run in it; regard runs lists what there is")
        for run in inside:
            found.setdefault(run.resolve(), run)
    if out is not None and out.is_dir():
        raise UserError(f"--out {out}: a folder, where a file for the page is expected")
    if len(found) == 1:
        (run,) = found.values()
        print(write_report(run, out))
        return
    if out is None:
        raise UserError(f"{len(found)} runs to compare: name the page, as in --out compare.html")
    whole = []
    for one in map(summarize, found.values()):
        if one.run.facts:
            whole.append(one)
        else:
            info(f"{one.folder}: left out: {' '.join(one.notes)}")
    if len(whole) < 2:
        raise UserError("fewer than two runs are left, which is nothing to compare")
    print(write_comparison(whole, out))
