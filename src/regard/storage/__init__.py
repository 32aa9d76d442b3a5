"""Run folders and exports: which files they contain, and how to read and write them."""
