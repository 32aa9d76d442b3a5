"""The served models and their metadata."""

import contextlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.exchange.engine_choice import load_predictor
from regard.inference.predictor import Predictor
from regard.nn.quantize import num_parameters
from regard.serve.search_schema import model_search_schema
from regard.serve.settings import ServeSettings
from regard.views.inspection.about import description


class ServedModel:
    """A model with its name. capabilities: names of the routes that the model supports."""

    def __init__(self, name: str, predictor: Predictor) -> None:
        self.name, self.predictor, self.task = name, predictor, predictor.task
        abilities = predictor.abilities
        self.capabilities = [
            *(["predict", "stream"] if "predict" in abilities else []),
            *(
                ["inspect"] if predictor.module is not None else []
            ),  # other engines expose no internals
            *(["alternatives"] if "alternatives" in abilities else []),
        ]

    def warm_up(self) -> None:
        """Run one prediction, so that the first request does not pay for initialization."""
        if "predict" in self.capabilities:
            with contextlib.suppress(UserError):  # text for a model that expects numbers
                text = example_text(self.predictor.folder) or ""
                self.predictor.predict([self.task.parse(text)])

    def info(self, settings: ServeSettings) -> dict[str, Any]:
        """Return the model's metadata for clients."""
        predictor, config, source = self.predictor, self.predictor.config, self.task.source
        module, written = predictor.module, self.task.output_tokenizer
        engine = [] if module is not None else [{"part": "engine", "kind": predictor.engine.name}]
        parts = [*config.model.describe(), *engine]
        target = [] if written is None else written.names()
        return {
            "name": self.name,
            "task": self.task.kind,
            "description": description(parts),
            "parts": parts,
            "parameters": None if module is None else num_parameters(module),
            "search": config.search.model_dump(mode="json"),
            "settings": model_search_schema(config, settings),
            "capabilities": self.capabilities,
            "example": example_text(predictor.folder),
            "direction": {
                "source": _text_direction(source.alphabet()),
                "target": _text_direction(target if self.task.reads_source else source.alphabet()),
            },
        }


def _text_direction(tokens: Iterable[str]) -> str:
    """Return ltr or rtl, the direction of most characters of these tokens."""
    classes = [unicodedata.bidirectional(char) for token in tokens for char in token]
    return "rtl" if classes.count("R") + classes.count("AL") > classes.count("L") else "ltr"


def example_text(folder: Path) -> str | None:
    """Return the source text of the first sample prediction in a run folder, if any."""
    try:
        with open(folder / "samples.jsonl", encoding="utf-8") as lines:
            source = json.loads(next(lines))["source"]
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        StopIteration,
    ):  # the file may have been edited
        return None
    return source if isinstance(source, str) else None


def open_models(
    specs: Sequence[str], engine: str | None = None, quantize: str | None = None
) -> dict[str, Predictor]:
    """Load the models named by specs (FOLDER or NAME=FOLDER); return them by name."""
    if engine == "auto":
        raise UserError(
            "--engine auto: not supported by serve: it needs many texts to measure the speed",
            help="find the fastest engine with regard predict or evaluate, then name it",
        )
    folders: dict[str, Path] = {}
    for spec in specs:
        name, equals, folder = spec.partition("=")
        if (
            not equals or not name or "/" in name or Path(spec).is_dir()
        ):  # a folder name may contain =
            name, folder = Path(spec).resolve().name, spec
        if name in folders:
            raise UserError(f"two models are named {name}", help="rename one: NAME=FOLDER")
        folders[name] = Path(folder)
    return {name: load_predictor(folder, engine, quantize) for name, folder in folders.items()}
