"""Diagnosis of a run: statistics of its log, data and model, then findings with fixes."""
