"""Configurations: classes, recipes, loading, automatic settings."""
