"""What people look at: figures, pages, reports, inspections, plots."""
