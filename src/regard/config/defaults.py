"""Sizes, dropout, batch and rates for a user who says nothing: chosen from the data."""

from typing import Any

import torch
from pydantic import TypeAdapter

from regard.config.load import Config, Tree, check_config
from regard.core import parallel
from regard.core.options import Choice
from regard.inputs import usual_frontend
from regard.optim.optimizers import Descent, Optimizer
from regard.tasks.task import Facts

SIDES = ("encoder", "decoder")
OPTIMIZER: TypeAdapter[Any] = TypeAdapter(Optimizer)
ENOUGH = 500_000  # symbols from which on a model is made for speed
EPOCH_SYMBOLS = 40_000_000  # symbols seen by a run whose length is left open


def fill(config: Config, facts: Facts) -> tuple[Config, list[Choice]]:
    """The configuration with every open setting filled, and what was chosen and why."""
    tree = config.model_dump(mode="json")
    chosen: list[Choice] = []
    why = _reason(facts)

    def choose(section: Tree, path: str, key: str, value: Any) -> None:
        if key in section and section[key] is None:
            section[key] = value
            chosen.append(Choice(f"{path}.{key}", value, why))

    model, training = tree["model"], tree["training"]
    sides = [side for side in SIDES if side in model]
    _choose_kinds(config, tree, facts, chosen)
    for side in sides:
        part, path = model[side], f"model.{side}"
        width = next((model[s]["width"] for s in sides if model[s]["width"]), _width(facts))
        choose(part, path, "width", width)
        choose(part, path, "layers", _layers(facts, part["kind"], side))
        choose(part, path, "heads", _heads(part["width"]))
        choose(part, path, "feedforward", 4 * part["width"])
        choose(part, path, "cross", "bilinear" if facts.symbols >= ENOUGH else "additive")
    recurrent = [model[side]["width"] for side in sides if model[side]["kind"] == "recurrent"]
    choose(model, "model", "embedding", min([64, *recurrent]) if _letters(facts) else 0)
    if "frontend" in model and model["frontend"] is None:  # follows from the kind of the sources
        model["frontend"] = usual_frontend(facts.source).model_dump()
    if "pool" in model:
        choose(model, "model", "pool", _pool(model))
    _choose_optimizer(tree, facts, chosen)
    if training["optimizer"]["kind"] != "exact":
        optimizer = OPTIMIZER.validate_python(training["optimizer"])
        if facts.vectors and model["encoder"]["kind"] == "linear":
            for key, value in _convex(facts, optimizer).items():
                choose(training, "training", key, value)
        choose(training, "training", "tokens", _tokens(facts))
        for side in sides:
            rate = _dropout(_passes(facts, tree), facts, model[side])
            choose(model[side], f"model.{side}", "dropout", rate)
        lr = optimizer.default_lr(_lr(facts, model))
        choose(training, "training", "lr", float(f"{lr:.3g}"))
        if facts.task in ("classify", "regress") and not facts.vectors and not training["steps"]:
            choose(training, "training", "epochs", _few_epochs(facts))
        if not any(training[key] for key in ("budget", "steps", "epochs")):
            choose(training, "training", "epochs", _epochs(facts))
            choose(training, "training", "patience", 5)
    for side in sides:
        choose(model[side], f"model.{side}", "dropout", 0.0)
    return check_config(tree, "settings"), chosen


def _reason(facts: Facts) -> str:
    """What most settings are chosen by."""
    examples = f"{facts.examples:,} examples" if facts.examples > 1 else ""
    symbols = f"{facts.symbols:,} symbols" if facts.symbols > facts.examples else ""
    return ", ".join(filter(None, (examples, symbols))) or "1 example"


def _choose_kinds(config: Config, tree: Tree, facts: Facts, chosen: list[Choice]) -> None:
    """Fills `kind=auto`: as the other side where that is given, else what suits the data."""
    model = tree["model"]
    sides = [side for side in SIDES if side in model]
    named = [model[side]["kind"] for side in sides if model[side]["kind"] != "auto"]
    for side in sides:
        if model[side]["kind"] == "auto":
            given = {key: value for key, value in model[side].items() if value is not None}
            annotation: Any = type(config.model).model_fields[side].annotation
            kinds = [part.model_fields["kind"].default for part in annotation.__args__]
            kind, why = _kind(facts)
            if named and named[0] in kinds:
                kind, why = named[0], "the kind of the other side"
            slot: TypeAdapter[Any] = TypeAdapter(annotation)
            options = slot.validate_python({"kind": kind})
            model[side] = options.model_dump(mode="json") | given | {"kind": kind}
            chosen.append(Choice(f"model.{side}.kind", kind, why))


def _kind(facts: Facts) -> tuple[str, str]:
    """The kind of network that suits the data, and why."""
    if facts.vectors:
        return "mlp", "vectors of numbers"
    if facts.task == "tag":
        return "recurrent", "an LSTM from both ends learns tags soonest"
    if facts.task in ("classify", "regress"):
        return "window", "phrases decide, wherever they stand"
    if facts.subwords:
        return "transformer", "sentences of words and subwords"
    return "recurrent", "short strings of letters, which an LSTM learns sooner"


def _width(facts: Facts) -> int:
    """Larger data, wider vectors."""
    if facts.vectors:
        return 64
    if facts.task in ("tag", "language-model"):
        return 256
    if facts.subwords:
        return 192 if facts.symbols < 5_000_000 else 256 if facts.symbols < 50_000_000 else 512
    return 128 if facts.symbols < 500_000 else 256


def _layers(facts: Facts, kind: str, side: str) -> int:
    """Deeper encoders than decoders: they cost the same to train, and decoding stays fast."""
    if kind in ("mlp", "window"):
        return 1
    if kind == "recurrent":
        return 2 if side == "encoder" or facts.task == "language-model" else 1
    if facts.symbols < 50_000_000:
        return 3 if side == "encoder" else 4 if facts.task == "language-model" else 2
    return 6


def _letters(facts: Facts) -> bool:
    """Whether symbols are so few that short vectors tell them apart as well as long ones."""
    few = 0 < facts.inputs <= 128 and facts.vocabulary <= 128
    return few and facts.symbols >= ENOUGH


def _heads(width: int) -> int:
    """Heads of 64, or the nearest divisor."""
    return next(h for h in range(max(1, width // 64), 0, -1) if width % h == 0)


def _pool(model: Tree) -> str:
    """What suits the encoder."""
    return "max" if model["encoder"]["kind"] == "window" else "mean"


def _choose_optimizer(tree: Tree, facts: Facts, chosen: list[Choice]) -> None:
    """Fills `kind=auto`: a formula where there is one; no decay where the answer must be exact."""
    training, model = tree["training"], tree["model"]
    if training["optimizer"]["kind"] != "auto":
        return
    encoder = model.get("encoder") or {}
    linear = bool(facts.vectors) and encoder.get("kind") == "linear"
    if model.get("kind") == "ngram" or (linear and tree["objective"]["kind"] == "mse"):
        kind, why = "exact", "it is solved by a formula"
    else:
        kind = "adam" if linear else "adamw"
        why = "linear: nothing may decay" if linear else _reason(facts)
    training["optimizer"] = {"kind": kind}
    chosen.append(Choice("training.optimizer.kind", kind, why))


def _passes(facts: Facts, tree: Tree) -> float:
    """How often the run will see the data: given, or guessed from the time and the size.

    A symbol costs about 6 operations a weight; a core does some 5e10 a second.
    """
    training, model = tree["training"], tree["model"]
    parts = [model[side] for side in SIDES if side in model]
    weights = sum(12 * part.get("layers", 1) * part["width"] ** 2 for part in parts)
    weights += facts.vocabulary * parts[-1]["width"] if parts else 1
    speed = 1e13 if torch.cuda.is_available() else 5e10 * torch.get_num_threads()
    batches = training["accumulate"] * parallel.size()
    batch = len(parts) * training["tokens"] * batches  # symbols of all sides
    given = {
        "epochs": 1.0,
        "steps": batch / facts.symbols,
        "budget": speed / (3 * weights * facts.symbols),
    }
    passes = [float(training[key]) * factor for key, factor in given.items() if training[key]]
    return min(passes, default=_epochs(facts))


def _dropout(passes: float, facts: Facts, part: Tree) -> float:
    """More where the data is seen often; none where time allows few passes."""
    if part["kind"] == "linear":
        return 0.0 if facts.vectors else 0.3
    if facts.task in ("tag", "classify") and not facts.vectors:
        return 0.33
    return 0.0 if passes < 4.5 else 0.1 if passes < 15 else 0.2 if passes < 40 else 0.3


def _lr(facts: Facts, model: Tree) -> float:
    """The highest rate; recurrent language models bear twice as much, and gates over letters."""
    cells = [model[side].get("cell") for side in SIDES if side in model]
    if facts.task == "language-model":
        return 4e-3 if all(cells) else 2e-3
    return 4e-3 if _letters(facts) and all(cell in ("lstm", "gru") for cell in cells) else 2e-3


def _epochs(facts: Facts) -> float:
    """Passes of a run whose length is left open."""
    return max(3.0, min(100.0, round(EPOCH_SYMBOLS / facts.symbols)))


def _convex(facts: Facts, optimizer: Descent) -> dict[str, float]:
    """Large steps over all data until they end, for models with a single best answer."""
    tokens = min(facts.examples, 4096)
    steps = max(400, -(-facts.examples // tokens))
    lr = min(1.0, optimizer.default_lr(0.1))
    return {"tokens": tokens, "lr": lr, "steps": steps, "validate_every": steps}


def _few_epochs(facts: Facts) -> float:
    """Passes over texts with one answer each: they are soon known by heart."""
    return max(3.0, min(8.0, round(1_000_000 / facts.symbols)))


def _tokens(facts: Facts) -> int:
    """Batches that leave enough updates in an epoch."""
    if facts.vectors:
        return 32 if facts.examples < 10_000 else 256
    if facts.task == "language-model":
        return 1024
    return 512 if facts.symbols < 500_000 else 800 if facts.symbols < 5_000_000 else 4096
