"""Serve trained models over HTTP."""
