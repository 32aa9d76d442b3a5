"""The command line: one file for each command, and what they share."""

from regard.cli.main_app import main

__all__ = ["main"]
