"""Files as examples; every error has a file and a line."""
