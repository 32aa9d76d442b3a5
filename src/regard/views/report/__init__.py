"""One self-contained HTML page about a run: scores, curves, samples, data, settings."""

from regard.views.report.report_page import write_report

__all__ = ["write_report"]
