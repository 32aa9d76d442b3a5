"""The models that are served, and what is said of them."""

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
from regard.serve.search_schema import settings_schema
from regard.serve.settings import ServeSettings
from regard.views.inspection.about import description


class Served:
    """A model under its name. can: what can be asked of it."""

    def __init__(self, name: str, predictor: Predictor) -> None:
        self.name, self.predictor, self.task = name, predictor, predictor.task
        able = predictor.abilities
        self.can = [
            *(["predict", "stream"] if "predict" in able else []),
            *(["inspect"] if predictor.module is not None else []),  # engines let nobody in
            *(["alternatives"] if "alternatives" in able else []),
        ]

    def warm(self) -> None:
        """Answer a text, so that the first client need not wait for what is done once."""
        if "predict" in self.can:
            with contextlib.suppress(UserError):  # a text where numbers are expected
                self.predictor.predict([self.task.parse(example(self.predictor.folder) or "")])

    def facts(self, settings: ServeSettings) -> dict[str, Any]:
        """Return what a client may know."""
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
            "settings": settings_schema(config, settings),
            "can": self.can,
            "example": example(predictor.folder),
            "direction": {
                "source": _written(source.alphabet()),
                "target": _written(target if self.task.reads_source else source.alphabet()),
            },
        }


def _written(names: Iterable[str]) -> str:
    """Return ltr or rtl: as most letters of these tokens are written."""
    ways = [unicodedata.bidirectional(letter) for name in names for letter in name]
    return "rtl" if ways.count("R") + ways.count("AL") > ways.count("L") else "ltr"


def example(folder: Path) -> str | None:
    """Return a text to try: one of those that the run showed while it was trained."""
    try:
        with open(folder / "samples.jsonl", encoding="utf-8") as lines:
            source = json.loads(next(lines))["source"]
    except (OSError, ValueError, LookupError, TypeError, StopIteration):  # others may write there
        return None
    return source if isinstance(source, str) else None


def open_models(
    places: Sequence[str], engine: str | None = None, quantize: str | None = None
) -> dict[str, Predictor]:
    """Load the models of FOLDER or NAME=FOLDER, by name."""
    if engine == "auto":
        raise UserError(
            "--engine auto: measures on many texts, and a server has few at a time; let regard "
            "predict or evaluate find the fastest, and name it"
        )
    folders: dict[str, Path] = {}
    for place in places:
        name, equals, folder = place.partition("=")
        if not equals or not name or "/" in name or Path(place).is_dir():  # = in its own name
            name, folder = Path(place).resolve().name, place
        if name in folders:
            raise UserError(f"two models are called {name}; name one of them: NAME=FOLDER")
        folders[name] = Path(folder)
    return {name: load_predictor(folder, engine, quantize) for name, folder in folders.items()}
