"""Forced passes: forward passes over one source with a fixed output, for inspection."""
