"""Read examples from files; every error names the file and the line."""
