"""The command `regard report`."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug
from regard.cli.output_files import PAGE, Force, check_overwrite
from regard.core.errors import UserError, info


def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="Run folders, or folders that contain runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write (default for a single run: RUN/report.html)."),
    ] = None,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Write the HTML report of a run, or one that compares runs.

    regard report runs/a runs/b --out compare.html
    """
    from regard.views.report.compare import write_comparison
    from regard.views.report.overview import find_runs, summarize
    from regard.views.report.report_page import write_report

    found: dict[Path, Path] = {}
    for folder in folders:
        inside, _ = find_runs(folder)
        if not inside:
            raise UserError(f"{folder}: contains no run", help="list all runs with: regard runs")
        for run in inside:
            found.setdefault(run.resolve(), run)
    if out is not None and out.is_dir():
        raise UserError(f"--out {out}: expected a file, found a folder")
    if out is not None:
        check_overwrite("--out", out, PAGE, force)
    if len(found) == 1:
        (run,) = found.values()
        print(write_report(run, out))
        return
    if out is None:
        raise UserError(
            f"{len(found)} runs to compare: --out is missing", help="--out compare.html"
        )
    readable = []
    for one in map(summarize, found.values()):
        if one.run.facts:
            readable.append(one)
        else:
            info(f"skipped: {one.folder} ({' '.join(one.notes)})")
    if len(readable) < 2:
        raise UserError("nothing to compare: fewer than two readable runs")
    print(write_comparison(readable, out))
