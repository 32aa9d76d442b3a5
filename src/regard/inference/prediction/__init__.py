"""The command `regard predict`: reads sources, predicts them, and writes predictions in order."""
