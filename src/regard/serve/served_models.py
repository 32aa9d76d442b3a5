"""The served models and their metadata."""

import contextlib
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.exchange.engine_choice import load_predictor, select_engine
from regard.inference.predictor import Predictor
from regard.metrics.metric_names import HIGHER_IS_BETTER
from regard.nn.quantize import num_parameters
from regard.serve.search_schema import model_search_schema
from regard.serve.settings import ServeSettings
from regard.storage.run_folder import RunFolder, number, read_folder
from regard.views.inspection.about import description
from regard.views.report.score_table import headline

EXAMPLES = 3  # texts to try on the page


class ServedModel:
    """A model with its name. capabilities: names of the routes that the model supports."""

    def __init__(self, name: str, predictor: Predictor) -> None:
        self.name, self.predictor, self.task = name, predictor, predictor.task
        abilities, is_text = predictor.abilities, not predictor.config.task.writes_sounds
        inspects = is_text and predictor.module is not None  # other engines expose no internals
        self.capabilities = [
            *(["predict"] if "predict" in abilities else []),
            *(["stream"] if "predict" in abilities and is_text else []),
            *(["inspect"] if inspects else []),
            *(["alternatives"] if "alternatives" in abilities else []),
        ]

    def warm_up(self) -> None:
        """Run one prediction, so that the first request does not pay for initialization."""
        if "predict" in self.capabilities:
            with contextlib.suppress(UserError):  # text for a model that expects numbers
                text = next(iter(example_texts(self.predictor.folder)), "")
                media = self.task.source.media  # a text would be the path of a file
                source = self.task.source.blank() if media else self.task.parse(text)
                self.predictor.predict([source])

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
            "reads": source.reads(),
            "examples": [] if source.media else example_texts(predictor.folder),
            "training": training_facts(predictor.folder),
            "direction": {
                "source": _text_direction(source.alphabet()),
                "target": _text_direction(target if self.task.reads_source else source.alphabet()),
            },
        }


def _text_direction(tokens: Iterable[str]) -> str:
    """Return ltr or rtl, the direction of most characters of these tokens."""
    classes = [unicodedata.bidirectional(char) for token in tokens for char in token]
    return "rtl" if classes.count("R") + classes.count("AL") > classes.count("L") else "ltr"


def example_texts(folder: Path) -> list[str]:
    """Return the first source texts of the sample predictions in a run folder."""
    sources = [sample.get("source") for sample in read_folder(folder).samples]
    texts = dict.fromkeys(source for source in sources if isinstance(source, str) and source)
    return list(texts)[:EXAMPLES]


def training_facts(folder: Path) -> dict[str, Any] | None:
    """Return the data of a run, its size, the score on the dev set, and one of its examples.

    Return None if they are unknown. Only the name of a data file is shown, not its path.
    """
    run = read_folder(folder)
    main, sizes, data = headline(run), run.facts.get("examples"), run.facts.get("data")
    if main is None or not isinstance(sizes, dict) or not isinstance(data, dict):
        return None
    names = [data.get(key) for key in ("data", "source", "target")]
    counts = {key: int(number(sizes.get(key)) or 0) for key in ("training", "dev")}
    return {
        "data": [Path(name).name for name in names if isinstance(name, str)],
        "examples": counts["training"],
        "dev_examples": counts["dev"],
        "metric": main.metric,
        "score": main.value,
        "higher_is_better": HIGHER_IS_BETTER.get(main.metric, True),
        "sample": _sample(run),
    }


def _sample(run: RunFolder) -> dict[str, Any] | None:
    """Return the source and the expected output of the first sample that has both as texts."""
    for sample in run.samples:
        references = sample.get("references")
        target = references[0] if isinstance(references, list) and references else None
        pair = {"source": sample.get("source"), "target": target}
        if all(isinstance(text, str) and text for text in pair.values()):
            return pair
    return None


def open_models(
    specs: Sequence[str], engine: str | None = None, quantize: str | None = None
) -> dict[str, Predictor]:
    """Load the models named by specs (FOLDER or NAME=FOLDER); return them by name."""
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
    found = {name: load_predictor(folder, engine, quantize) for name, folder in folders.items()}
    if engine == "auto":
        for predictor in found.values():
            select_engine(predictor)
    return found
