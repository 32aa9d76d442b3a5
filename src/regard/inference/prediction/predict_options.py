"""All that `regard predict` is told: what is asked, how predictions are written, where they go."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config.load import put
from regard.core import parallel
from regard.core.errors import UserError
from regard.inference.prediction.output_lines import OutputFormat
from regard.inference.prediction.sink import check_output
from regard.inference.predictor import Predictor
from regard.inference.shortlisted import shortlist_path
from regard.storage.fingerprint import file_digest, model_digest
from regard.tasks.batches import TOKENS
from regard.tasks.values import Constraints


@dataclass(frozen=True)
class Share:
    """Part `number` (from 1) of `parts` parts of all sources, one after the other."""

    number: int = 1
    parts: int = 1

    @classmethod
    def of(cls, shard: str | None) -> "Share":
        """Return the share that `--shard` names, divided again over the processes of this job."""
        number, parts = 1, 1
        if shard is not None:
            match = re.fullmatch(r"(\d+)/(\d+)", shard)
            if not match or not 1 <= int(match[1]) <= int(match[2]):
                raise UserError(
                    f"--shard {shard}: NUMBER/PARTS expected, as 3/16: the third of sixteen parts"
                )
            number, parts = int(match[1]), int(match[2])
        size = parallel.size()
        return cls((number - 1) * size + parallel.rank() + 1, parts * size)

    def bounds(self, count: int) -> tuple[int, int]:
        """Return the first source of this part and the first after it, of so many."""
        return (self.number - 1) * count // self.parts, self.number * count // self.parts


@dataclass(frozen=True)
class PredictOptions:
    """What is asked, how predictions are written, and where they go.

    search: settings by name; settings: the same as `search.key=value`. others: models that predict
    together with the first one. request: what is asked of all predictions; input_json: of each.
    """

    model: str
    texts: tuple[str, ...] = ()
    input: str = "-"
    input_json: bool = False
    output: Path | None = None
    form: OutputFormat = field(default_factory=OutputFormat)
    constraints: Constraints = field(default_factory=Constraints)
    search: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    ensemble: tuple[str, ...] = ()
    engine: str | None = None
    quantize: str | None = None
    shortlist: bool | Path = False
    batch_size: int | None = None
    batch_tokens: int = TOKENS
    columns: tuple[str | None, str | None] = (None, None)
    shard: str | None = None
    force: bool = False

    def check(self) -> Share:
        """Refuse what cannot be, before a model is loaded; return the share of this process."""
        check_output(self.output)
        self.form.check()
        share = Share.of(self.shard)
        if self.shortlist and self.ensemble:
            raise UserError("--shortlist: not supported with --ensemble")
        return share

    def check_model(self, predictor: Predictor) -> None:
        """Refuse what this model does not do."""
        form, task, abilities = self.form, predictor.task, predictor.abilities
        if form.nbest > 1 and "nbest" not in abilities:
            raise UserError(f"--nbest: a {task.kind} model gives one answer to each source")
        special = self.input_json or form.alignment or form.alternatives > 0
        if special or self.constraints != Constraints():
            if "constraints" not in abilities:
                raise UserError(
                    "--prefix, --require, --ban, --input-json, --alternatives, --alignments: only "
                    "supported for task transduce"
                )
            task.encode_constraints(self.constraints)
        if self.texts and self.input_json:
            raise UserError("--input-json: reads JSON lines from --input or a pipe, no texts")

    def facts(self, share: Share, search: Any) -> dict[str, Any]:
        """Return all that predictions depend on but the sources. Batch sizes are not among it."""
        form, constraints = self.form, self.constraints
        short = shortlist_path(Path(self.model), self.shortlist) if self.shortlist else None
        return {
            "model": model_digest(Path(self.model)),
            "ensemble": [model_digest(Path(name)) for name in self.ensemble],
            "engine": {"name": self.engine, "quantize": self.quantize},
            "shortlist": short and file_digest(short),
            "search": search.model_dump(mode="json"),
            "prefix": constraints.prefix,
            "require": list(constraints.require),
            "ban": list(constraints.ban),
            "nbest": form.nbest,
            "json": {"input": self.input_json, "output": form.json_lines},
            "token_scores": form.token_scores,
            "alignments": form.alignment,
            "alternatives": form.alternatives,
            "columns": list(self.columns),
            "shard": f"{share.number}/{share.parts}",
        }


def search_changes(search: dict[str, Any], settings: Sequence[str] | None) -> dict[str, Any]:
    """Return the settings of the search that are to be others; None: as the model has it.

    settings: more of them, as `search.key=value`.
    """
    tree: dict[str, Any] = {}
    for setting in settings or ():
        put(tree, setting)
    if set(tree) - {"search"} or not isinstance(tree.get("search", {}), dict):
        key = sorted(set(tree) - {"search"} or tree)[0]
        raise UserError(
            f"--set {key}: a trained model keeps all its settings but those of the search, "
            "as in search.beam=1"
        )
    return {**search, **tree.get("search", {})}
