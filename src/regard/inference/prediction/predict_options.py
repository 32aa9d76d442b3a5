"""All that `regard predict` is told: what is asked, how answers are wanted, where they go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config.load import put
from regard.core.errors import UserError
from regard.inference.prediction.output_lines import Form
from regard.inference.prediction.shard_files import Share
from regard.inference.shortlisted import shortlist_path
from regard.storage.fingerprint import file_digest, model_digest
from regard.tasks.batches import TOKENS
from regard.tasks.values import Request


@dataclass(frozen=True)
class Wanted:
    """What is asked, how answers are wanted, and where they go.

    search: settings by name; settings: the same as `search.key=value`. others: models that answer
    together with the first one. request: what is asked of all answers; input_json: of each as well.
    """

    model: str
    texts: tuple[str, ...] = ()
    input: str = "-"
    input_json: bool = False
    output: Path | None = None
    form: Form = field(default_factory=Form)
    request: Request = field(default_factory=Request)
    search: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    engine: str | None = None
    quantize: str | None = None
    shortlist: bool | Path = False
    batch_size: int | None = None
    batch_tokens: int = TOKENS
    columns: tuple[str | None, str | None] = (None, None)
    shard: str | None = None
    force: bool = False

    def facts(self, share: Share, search: Any) -> dict[str, Any]:
        """All that answers depend on but the sources. The size of batches is not among it."""
        form, asked = self.form, self.request
        short = shortlist_path(Path(self.model), self.shortlist) if self.shortlist else None
        return {
            "model": model_digest(Path(self.model)),
            "with": [model_digest(Path(other)) for other in self.others],
            "engine": {"name": self.engine, "quantize": self.quantize},
            "shortlist": short and file_digest(short),
            "search": search.model_dump(mode="json"),
            "prefix": asked.prefix,
            "must": list(asked.must),
            "ban": list(asked.ban),
            "nbest": form.nbest,
            "json": {"input": self.input_json, "output": form.json_lines},
            "symbols": form.symbols,
            "alignments": form.alignment,
            "alternatives": form.alternatives,
            "columns": list(self.columns),
            "shard": f"{share.number}/{share.parts}",
        }


def search_changes(
    config: Any, search: dict[str, Any], settings: Sequence[str] | None
) -> dict[str, Any]:
    """The settings of the search that are wanted otherwise; None: as the model has it.

    settings: others, as `search.key=value`.
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
    changes = {**search, **tree.get("search", {})}
    kind = changes.get("kind") or config.search.kind
    longest = changes.pop("max_length", None)
    changes["length" if kind == "sample" and longest else "max_length"] = longest
    return changes
