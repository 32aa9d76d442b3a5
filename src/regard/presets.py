"""Sizes, dropout, batch and rates for a user who says nothing: chosen from the data."""

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from regard.config import Config, Tree, check_config
from regard.models.decoder import Decoder
from regard.models.encoder import Encoder
from regard.tasks.base import Choice

SIDES: dict[str, TypeAdapter[Any]] = {
    "encoder": TypeAdapter(Encoder),
    "decoder": TypeAdapter(Decoder),
}
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
        choose(part, path, "dropout", _dropout(facts, tree["training"]))
    training = tree["training"]
    choose(training, "training", "tokens", _tokens(facts))
    choose(training, "training", "lr", 2e-3)
    if not (training["budget"] or training["steps"] or training["epochs"]):
        epochs = max(3.0, min(100.0, round(EPOCH_SYMBOLS / facts.symbols)))
        choose(training, "training", "epochs", epochs)
        choose(training, "training", "patience", 5)
    return check_config(tree, "presets"), chosen


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


def _dropout(facts: Facts, training: Tree) -> float:
    """More where a small data set is seen often; little where time allows few passes."""
    if training["budget"]:
        return 0.1
    return 0.3 if facts.symbols < 1_000_000 else 0.2 if facts.symbols < 5_000_000 else 0.1


def _tokens(facts: Facts) -> int:
    """Batches that leave enough updates in an epoch."""
    return 512 if facts.symbols < 500_000 else 800 if facts.symbols < 5_000_000 else 4096
