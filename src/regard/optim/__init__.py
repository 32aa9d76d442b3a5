"""How weights move: optimizers, schedules, initializations, averages, precision."""
