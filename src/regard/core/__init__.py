"""Foundations: errors, options, files, processes and threads."""
