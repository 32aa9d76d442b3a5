"""The report as a by-product, whose failure does not end the command that writes it."""

from pathlib import Path

from regard.core.errors import UserError, warn
from regard.views.report.report_page import write_report


def update_report(folder: Path) -> None:
    """Write the report of a run; print a warning if it cannot be written, as on a full disk."""
    try:
        write_report(folder)
    except (UserError, OSError) as error:
        warn(f"no report: {error}", help=f"write it later: regard report {folder}")
