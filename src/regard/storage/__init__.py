"""The run folder: which files are in it, and how they are read and written."""
