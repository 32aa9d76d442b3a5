"""Sizes, dropout, batch and rates for a user who says nothing: chosen from the data."""

from typing import Any

import torch
from pydantic import TypeAdapter

from regard.config import Config, Tree, check_config
from regard.models.decoder import Decoder
from regard.models.encoder import Encoder
from regard.tasks.base import Choice, Facts

SIDES: dict[str, TypeAdapter[Any]] = {
    "encoder": TypeAdapter(Encoder),
    "decoder": TypeAdapter(Decoder),
}
EPOCH_SYMBOLS = 40_000_000  # symbols seen by a run whose length is left open


def fill(config: Config, facts: Facts) -> tuple[Config, list[Choice]]:
    """The configuration with every open setting filled, and what was chosen and why."""
    tree = config.model_dump(mode="json")
    chosen: list[Choice] = []
    why = f"{facts.examples:,} examples, {facts.symbols:,} symbols"

    def choose(section: Tree, path: str, key: str, value: Any) -> None:
        if key in section and section[key] is None:
            section[key] = value
            chosen.append(Choice(f"{path}.{key}", value, why))

    _choose_kinds(tree["model"], facts, chosen)
    for side in SIDES:
        part, path = tree["model"][side], f"model.{side}"
        other = tree["model"]["decoder" if side == "encoder" else "encoder"]
        recurrent = part["kind"] == "recurrent"
        width = other["width"] or _width(facts)
        choose(part, path, "width", width)
        choose(part, path, "layers", _layers(facts, recurrent, side))
        choose(part, path, "heads", _heads(part["width"]))
        choose(part, path, "feedforward", 4 * part["width"])
    training = tree["training"]
    choose(training, "training", "tokens", _tokens(facts))
    for side in SIDES:
        passes = _passes(facts, tree)
        choose(tree["model"][side], f"model.{side}", "dropout", _dropout(passes))
    choose(training, "training", "lr", 2e-3)
    if not (training["budget"] or training["steps"] or training["epochs"]):
        choose(training, "training", "epochs", _epochs(facts))
        choose(training, "training", "patience", 5)
    return check_config(tree, "settings"), chosen


def _choose_kinds(model: Tree, facts: Facts, chosen: list[Choice]) -> None:
    """Fills `kind=auto`: as the other side where that is given, else what suits the symbols."""
    named = [model[side]["kind"] for side in SIDES if model[side]["kind"] != "auto"]
    if named:
        kind, why = named[0], "the kind of the other side"
    elif facts.subwords:
        kind, why = "transformer", "sentences of words and subwords"
    else:
        kind, why = "recurrent", "short strings of letters, which an LSTM learns sooner"
    for side in SIDES:
        if model[side]["kind"] == "auto":
            given = {key: value for key, value in model[side].items() if value is not None}
            options = SIDES[side].validate_python({"kind": kind})
            model[side] = options.model_dump(mode="json") | given | {"kind": kind}
            chosen.append(Choice(f"model.{side}.kind", kind, why))


def _width(facts: Facts) -> int:
    """Larger data, wider vectors."""
    if facts.subwords:
        return 192 if facts.symbols < 5_000_000 else 256 if facts.symbols < 50_000_000 else 512
    return 128 if facts.symbols < 500_000 else 256


def _layers(facts: Facts, recurrent: bool, side: str) -> int:
    """Deeper encoders than decoders: they cost the same to train, and decoding stays fast."""
    if recurrent:
        return 2 if side == "encoder" else 1
    if facts.symbols < 50_000_000:
        return 3 if side == "encoder" else 2
    return 6


def _heads(width: int) -> int:
    """Heads of 64, or the nearest divisor."""
    return next(h for h in range(max(1, width // 64), 0, -1) if width % h == 0)


def _passes(facts: Facts, tree: Tree) -> float:
    """How often the run will see the data: given, or guessed from the time and the size.

    A symbol costs about 6 operations a weight; a core does some 3e10 a second.
    """
    training, parts = tree["training"], [tree["model"][side] for side in SIDES]
    weights = sum(12 * part["layers"] * part["width"] ** 2 for part in parts)
    weights += facts.vocabulary * parts[1]["width"]
    speed = 1e13 if torch.cuda.is_available() else 3e10 * torch.get_num_threads()
    batch = 2 * training["tokens"] * training["accumulate"]  # symbols of both sides
    given = {
        "epochs": 1.0,
        "steps": batch / facts.symbols,
        "budget": speed / (3 * weights * facts.symbols),
    }
    passes = [float(training[key]) * factor for key, factor in given.items() if training[key]]
    return min(passes, default=_epochs(facts))


def _dropout(passes: float) -> float:
    """More where the data is seen often; none where time allows few passes."""
    return 0.0 if passes < 4.5 else 0.1 if passes < 15 else 0.2 if passes < 40 else 0.3


def _epochs(facts: Facts) -> float:
    """Passes of a run whose length is left open."""
    return max(3.0, min(100.0, round(EPOCH_SYMBOLS / facts.symbols)))


def _tokens(facts: Facts) -> int:
    """Batches that leave enough updates in an epoch."""
    return 512 if facts.symbols < 500_000 else 800 if facts.symbols < 5_000_000 else 4096
