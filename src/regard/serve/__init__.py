"""The HTTP server for trained models."""
