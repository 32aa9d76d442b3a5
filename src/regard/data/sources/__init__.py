"""Open data: files of any size, pairs of files, built-in datasets."""
