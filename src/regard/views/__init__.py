"""Figures, HTML pages, reports, inspections and plots."""
