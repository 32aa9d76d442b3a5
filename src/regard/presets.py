"""Sizes, dropout, batch and rates for a user who says nothing: chosen from the data."""

from dataclasses import dataclass
from typing import Any

from regard.config import Config, Tree, check_config
from regard.tasks.base import Choice

EPOCH_SYMBOLS = 40_000_000  # symbols seen by a run whose length is left open


@dataclass(frozen=True)
class Facts:
    """What the choice depends on. symbols: of both sides, over all examples."""

    examples: int
    symbols: int
    subwords: bool


def fill(config: Config, facts: Facts) -> tuple[Config, list[Choice]]:
    """The configuration with every open setting filled, and what was chosen and why."""
    tree = config.model_dump(mode="json")
    chosen: list[Choice] = []
    why = f"{facts.examples:,} examples, {facts.symbols:,} symbols"

    def choose(section: Tree, path: str, key: str, value: Any) -> None:
        if key in section and section[key] is None:
            section[key] = value
            chosen.append(Choice(f"{path}.{key}", value, why))

    for side in ("encoder", "decoder"):
        part, path = tree["model"][side], f"model.{side}"
        other = tree["model"]["decoder" if side == "encoder" else "encoder"]
        recurrent = part["kind"] == "recurrent"
        width = other["width"] or _width(facts)
        choose(part, path, "width", width)
        choose(part, path, "layers", 1 if recurrent else _layers(facts))
        choose(part, path, "heads", _heads(part["width"]))
        choose(part, path, "feedforward", 4 * part["width"])
        choose(part, path, "dropout", _dropout(facts, tree["training"]["budget"]))
    training = tree["training"]
    choose(training, "training", "tokens", _tokens(facts, training["budget"]))
    choose(training, "training", "lr", 2e-3)
    if not (training["budget"] or training["steps"] or training["epochs"]):
        epochs = max(3.0, min(100.0, round(EPOCH_SYMBOLS / facts.symbols)))
        choose(training, "training", "epochs", epochs)
        choose(training, "training", "patience", 5)
    return check_config(tree, "presets"), chosen


def _width(facts: Facts) -> int:
    """Larger data, wider vectors."""
    if facts.symbols < 200_000:
        return 128
    return 256


def _layers(facts: Facts) -> int:
    return 3


def _heads(width: int) -> int:
    """Heads of 64, or the nearest divisor."""
    return next(h for h in range(max(1, width // 64), 0, -1) if width % h == 0)


def _dropout(facts: Facts, budget: float | None) -> float:
    """More where a small data set is seen often; little where time allows few passes."""
    return 0.1


def _tokens(facts: Facts, budget: float | None) -> int:
    """Batches that leave enough updates in an epoch."""
    return 2048
