"""The command line: one module per command, and shared options."""

from regard.cli.main_app import main

__all__ = ["main"]
