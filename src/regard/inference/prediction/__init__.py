"""Answers to many texts: read as they come, answered in windows, written in order."""
