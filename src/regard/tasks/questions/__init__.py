"""What each task makes of a source that is inspected: what is shown, and passes over copies."""
