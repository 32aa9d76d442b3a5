"""Training jobs and diagnosis of runs."""
