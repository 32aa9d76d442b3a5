"""The names of all measures, in the order they are shown."""

HIGHER_IS_BETTER = {
    "exact": True,
    "ser": False,
    "cer": False,
    "wer": False,
    "bleu": True,
    "chrf": True,
    "bleu_d2l": True,
    "accuracy": True,
    "f1": True,
    "macro_f1": True,
    "unseen_accuracy": True,
    "sentences": True,
    "subset_accuracy": True,
    "log_loss": False,
    "ece": False,
    "r2": True,
    "rmse": False,
    "mae": False,
    "loss": False,
    "perplexity": False,
    "bits_per_character": False,
}
"""For each name of a measure: does a better model have a larger number?"""
