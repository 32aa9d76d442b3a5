"""The configuration: its parts, how it is read, and its defaults."""
