"""The models that are served, and what is said of them."""

import contextlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from regard.core.errors import UserError
from regard.estimators import Estimator, load
from regard.serve.search_schema import settings_schema
from regard.serve.settings import ServeSettings
from regard.tasks.language_model import LanguageModelTask
from regard.views.inspection.about import about, description


class Served:
    """A model under its name. model: what its task runs, made once."""

    def __init__(self, name: str, estimator: Estimator) -> None:
        self.name, self.estimator, self.task = name, estimator, estimator.task_
        self.predictor = estimator.predictor_
        self.answering = "constraints" in self.task.abilities

    @property
    def can(self) -> list[str]:
        """What can be asked of it: who only fills gaps answers nothing, engines let nobody in."""
        masked = isinstance(self.task, LanguageModelTask) and self.task.masked
        return [
            *([] if masked else ["predict", "stream"]),
            *(["inspect"] if isinstance(self.estimator.model_, nn.Module) else []),
            *(["alternatives"] if self.answering else []),
        ]

    def warm(self) -> None:
        """Answers a text, so that the first client need not wait for what is done once."""
        if "predict" in self.can:
            with contextlib.suppress(UserError):  # a text where numbers are expected
                source = self.task.parse(example(self.estimator.folder_) or "")
                self.predictor.predict([source])

    def facts(self, settings: ServeSettings) -> dict[str, Any]:
        """What a client may know."""
        return {
            **self._about(),
            "name": self.name,
            "search": self.estimator.config_.search.model_dump(mode="json"),
            "settings": settings_schema(self.estimator, settings),
            "can": self.can,
            "example": example(self.estimator.folder_),
            "direction": self._direction(),
        }

    def _about(self) -> dict[str, Any]:
        """Its task, its parts in a line, and its size, where that is known."""
        model, options = self.estimator.model_, self.estimator.config_.model
        if isinstance(model, nn.Module):
            return about(self.predictor)
        parts = [*options.describe(), {"part": "engine", "kind": model.name}]
        told = {"description": description(parts), "parts": parts, "parameters": None}
        return {"task": self.estimator.task, **told}

    def _direction(self) -> dict[str, str]:
        """Which way its texts are written."""
        task: Any = self.task
        source, target = task.source.alphabet(), getattr(task, "target", None)
        written = [] if target is None else target.names()
        if isinstance(task, LanguageModelTask):
            written = source
        return {"source": _written(source), "target": _written(written)}


def _written(names: Iterable[str]) -> str:
    """ltr or rtl: as most letters of these symbols are written."""
    kinds = [unicodedata.bidirectional(letter) for name in names for letter in name]
    right = sum(kind in ("R", "AL") for kind in kinds)
    return "rtl" if right > kinds.count("L") else "ltr"


def example(folder: Path) -> str | None:
    """A text to try: one of those that the run showed while it was trained."""
    try:
        with open(folder / "samples.jsonl", encoding="utf-8") as lines:
            source = json.loads(next(lines))["source"]
    except (OSError, ValueError, LookupError, TypeError, StopIteration):  # others may write there
        return None
    return source if isinstance(source, str) else None


def open_models(
    places: Sequence[str], engine: str | None = None, quantize: str | None = None
) -> dict[str, Estimator]:
    """The models of FOLDER or NAME=FOLDER, by name."""
    if engine == "auto":
        raise UserError(
            "--engine auto: measures on many texts, and a server has few at a time; let regard "
            "predict or evaluate find the fastest, and name it"
        )
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
            raise UserError(f"two models are called {name}; name one of them: NAME=FOLDER")
        seen.add(name)
