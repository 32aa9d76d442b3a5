"""The HTML report of a run: scores, curves, sample predictions, data and settings."""

from regard.views.report.report_page import write_report
from regard.views.report.update import update_report

__all__ = ["update_report", "write_report"]
