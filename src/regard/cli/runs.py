"""The command `regard runs`: a table as wide as the terminal."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.command_options import Debug, Json
from regard.core.errors import UserError, info


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders to search for runs (default: runs/)."),
    ] = None,
    sort: Annotated[
        str, typer.Option(help="Sort by newest, name, best (score), minutes or parameters.")
    ] = "newest",
    json_object: Json = False,
    debug: Debug = False,
) -> None:
    """List runs with their scores and differing settings."""
    from rich.console import Console

    from regard.views.report import run_table
    from regard.views.report.overview import short_names, summarize
    from regard.views.report.run_table import printable, row, table

    if sort not in run_table.ORDERS:
        raise UserError(f"--sort: expected one of {', '.join(run_table.ORDERS)}, found {sort!r}")
    found, without_runs = run_table.search_runs(folders or [])
    listed = run_table.sort_runs([summarize(folder) for folder in found], sort)
    differing = run_table.settings_to_show(listed)
    keys = list(dict.fromkeys(key for run in listed for key in differing[run.folder]))
    names = short_names(keys, [key for run in listed for key in run.settings])
    if json_object:
        records = [run_table.as_record(run, differing[run.folder], names) for run in listed]
        record = {"runs": records, "without_runs": [str(folder) for folder in without_runs]}
        print(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return
    for run in listed:
        for note in run.notes:
            info(f"{printable(str(run.folder))}: {note}")
    for folder in without_runs:
        info(f"skipped: {printable(str(folder))} (contains no run)")
    searched = folders or [run_table.DEFAULT]
    if not listed:
        where = printable(", ".join(map(str, searched)))
        info(f"no runs in {where}")
        info("help: train one: regard train reverse --steps 200")
        return
    base_folder = searched[0] if len(searched) == 1 else None
    rows = [row(run, differing[run.folder], names, base_folder) for run in listed]
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    width = console.width if sys.stdout.isatty() else None  # otherwise one line per run
    for line in table(rows, width):
        console.print(line, soft_wrap=True)
