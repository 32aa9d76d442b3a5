"""The HTML report of a run: scores, curves, sample predictions, data and settings."""

from regard.views.report.report_page import write_report

__all__ = ["write_report"]
