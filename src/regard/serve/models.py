"""The models that are served, and what is said of them."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from regard.engines import Engine
from regard.errors import UserError
from regard.estimators import Estimator, load
from regard.serve.searches import settings_schema
from regard.serve.settings import ServeSettings
from regard.tasks.answering import Answering, as_engine
from regard.tasks.language_model import LanguageModel
from regard.tasks.tag import Tag


class Served:
    """A model under its name. model: what its task runs, made once."""

    def __init__(self, name: str, estimator: Estimator) -> None:
        self.name, self.estimator, self.task = name, estimator, estimator.task_
        self.answering = isinstance(self.task, Answering)
        self.model: Any = as_engine(estimator.model_) if self.answering else estimator.model_
        self.streams = self.answering or isinstance(self.task, LanguageModel)

    @property
    def can(self) -> list[str]:
        """What can be asked of it."""
        if isinstance(self.task, LanguageModel) and self.task.masked:
            return []
        looked_into = isinstance(self.estimator.model_, nn.Module)
        return [
            "predict",
            "stream",
            *(["inspect"] if looked_into else []),
            *(["alternatives"] if self.answering else []),
        ]

    def symbols(self, text: str, side: str) -> int:
        """How many symbols a text has; side: text, or target."""
        task: Any = self.task
        if isinstance(task, Tag):
            return len(text.split())
        inputs = getattr(task, "inputs", None)
        own = getattr(task, "target" if side == "target" else "source", None)
        vocabulary = own or getattr(inputs, "vocabulary", None) or getattr(task, "vocabulary", None)
        return 1 if vocabulary is None else len(vocabulary.encode(text))

    def facts(self, settings: ServeSettings) -> dict[str, Any]:
        """What a client may know."""
        return {
            "name": self.name,
            "task": self.estimator.task,
            "description": self._description(),
            "parameters": self._parameters(),
            "search": self.estimator.config_.search.model_dump(mode="json"),
            "settings": settings_schema(self.estimator, settings),
            "can": self.can,
            "example": example(self.estimator.folder_),
            "direction": self._direction(),
        }

    def _parameters(self) -> int | None:
        model = self.estimator.model_
        return sum(p.numel() for p in model.parameters()) if isinstance(model, nn.Module) else None

    def _description(self) -> str:
        """Its parts with their kinds and sizes, in a line."""
        tree = self.estimator.config_.model.model_dump()
        parts = [f"{name} {_sized(part)}" for name, part in tree.items() if isinstance(part, dict)]
        model = self.estimator.model_
        engine = f", run by {model.name}" if isinstance(model, Engine) else ""
        return (", ".join(parts) or _sized(tree)) + engine

    def _direction(self) -> dict[str, str]:
        """Which way its texts are written."""
        task: Any = self.task
        inputs = getattr(task, "inputs", None)
        source = getattr(task, "letters" if isinstance(task, Tag) else "source", None)
        source = source or getattr(inputs, "vocabulary", None) or getattr(task, "vocabulary", None)
        target = getattr(task, "target", None)
        target = target or (source if isinstance(task, LanguageModel) else None)
        return {"source": _written(source), "target": _written(target)}


def _sized(part: dict[str, Any]) -> str:
    """The kind of a part, and how large it is."""
    layers, width = part.get("layers"), part.get("width")
    named = [str(part[key]) for key in ("kind", "cell") if part.get(key)]
    return " ".join([*named, *([f"{layers} x {width}"] if layers and width else [])])


def _written(vocabulary: Any) -> str:
    """ltr or rtl: as most letters of a vocabulary are written."""
    if vocabulary is None:
        return "ltr"
    names = (vocabulary.name(number) for number in range(len(vocabulary)))
    kinds = [unicodedata.bidirectional(letter) for name in names for letter in name]
    right = sum(kind in ("R", "AL") for kind in kinds)
    return "rtl" if right > kinds.count("L") else "ltr"


def example(folder: Path) -> str | None:
    """A text to try: one of those that the run showed while it was trained."""
    try:
        with open(folder / "samples.jsonl", encoding="utf-8") as lines:
            source = json.loads(next(lines)).get("source")
    except (OSError, ValueError, StopIteration):
        return None
    return source if isinstance(source, str) else None


def open_models(
    places: Sequence[str], engine: str | None = None, quantize: str | None = None
) -> dict[str, Estimator]:
    """The models of FOLDER or NAME=FOLDER, by name."""
    named = [_named(place) for place in places]
    _check_names(name for name, _ in named)
    return {name: load(folder, engine=engine, quantize=quantize) for name, folder in named}


def _named(place: str) -> tuple[str, Path]:
    """The name and the folder of a model; a folder may have = in its own name."""
    name, equals, folder = place.partition("=")
    if equals and name and "/" not in name and not Path(place).is_dir():
        return name, Path(folder)
    return Path(place).resolve().name, Path(place)


def _check_names(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f"two models are called {name}; name them: other={name}")
        seen.add(name)
