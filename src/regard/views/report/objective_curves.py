"""Curves of what an objective reports besides its loss, and where loss and metric disagree."""

from html import escape

from regard.metrics.metric_names import best_of
from regard.storage.run_folder import RunFolder, points
from regard.views.report.curves import Series, plot_curves
from regard.views.report.html_parts import note

SIZE = (320, 170)
# Title, and the names of the lines with their keys in metrics.jsonl.
FIGURES = [
    (
        "Inputs of the decoder that are own predictions",
        {"own predictions": "own_inputs", "wrong ones": "wrong_inputs"},
    ),
    ("Reward of the outputs", {"reward": "reward", "baseline": "baseline"}),
    ("Entropy of the outputs, nats", {"entropy": "entropy"}),
    ("Fraction of sampled tokens", {"sampled fraction": "sampled_fraction"}),
    ("KL divergence from the teacher, nats per token", {"divergence": "kl"}),
]


def loss_figures(run: RunFolder, title: str) -> list[tuple[str, list[Series]]]:
    """Return title and lines of each loss figure.

    Objectives that reward outputs have a loss per source; their dev loss is cross entropy.
    """
    train = Series("train", points(run.train, "loss"))
    dev = Series("dev", points(run.dev, "loss"))
    if not points(run.train, "reward"):
        return [(title, [train, dev])]
    return [("Loss per source", [train]), (title, [dev])]


def objective_figures(run: RunFolder) -> list[str]:
    """Return the figures of the terms that this run reports."""
    figures = []
    for title, keys in FIGURES:
        lines = [Series(name, points(run.train, key)) for name, key in keys.items()]
        lines = [line for line in lines if line.points]
        figures.append(plot_curves(title, lines, size=SIZE) if lines else "")
    return figures


def disagreement(run: RunFolder, metric: str, label: str) -> str:
    """Return a note if the dev loss and the metric are best at different steps."""
    losses, scores = points(run.dev, "loss"), points(run.dev, "scores", metric)
    if not losses or not scores or metric == "perplexity":
        return ""
    lowest = min(losses, key=lambda point: (point[1], -point[0]))[0]
    best = best_of(metric)(scores[::-1], key=lambda point: point[1])[0]
    if lowest == best:
        return ""
    return note(
        f"The dev loss is lowest at step {lowest:,.0f}; "
        f"{escape(label)} is best at step {best:,.0f}."
    )
