"""Where examples come from: files of any size, pairs of files, built-in data."""
