"""Descriptions of models, part by part: sizes, receptive fields, parameters and operations."""
