"""`regard crossover`: time and memory of attention kernels over lengths."""
