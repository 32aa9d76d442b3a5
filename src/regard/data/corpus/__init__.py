"""Examples as numbers, in the order in which they are trained on."""
