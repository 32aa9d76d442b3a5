"""Options of `regard predict`: the input, the output and its format, the search."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config.load import put
from regard.core.errors import UserError
from regard.data.sources.open import DataSpec
from regard.inference.prediction.output_lines import OutputFormat
from regard.inference.prediction.shards import Shard
from regard.inference.prediction.sink import check_output
from regard.inference.predictor import Predictor
from regard.inference.shortlisted import shortlist_path
from regard.storage.fingerprint import file_digest, model_digest
from regard.tasks.batches import MAX_TOKENS
from regard.tasks.values import Constraints


@dataclass(frozen=True)
class PredictOptions:
    """Options of `regard predict`.

    texts: sources on the command line; if empty, `input` is read ("-": stdin). input_json: whether
    input lines are JSON objects with a source and its own constraints. constraints: constraints on
    all predictions. search: search options by name. settings: search options as
    "search.key=value". ensemble: folders of further models, averaged with the first. rescore: the
    folder of a model that ranks the hypotheses, with its weight. columns: source and target column
    of tagger files. graph: tables of nodes and edges to predict, if it has edges. shard: "K/N".
    force: overwrite the output file, and discard partial output.
    """

    model: str
    texts: tuple[str, ...] = ()
    input: str = "-"
    input_json: bool = False
    output: Path | None = None
    format: OutputFormat = field(default_factory=OutputFormat)
    constraints: Constraints = field(default_factory=Constraints)
    search: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    ensemble: tuple[str, ...] = ()
    rescore: str | None = None
    rescore_weight: float | None = None
    engine: str | None = None
    quantize: str | None = None
    shortlist: bool | Path = False
    batch_size: int | None = None
    batch_tokens: int = MAX_TOKENS
    columns: tuple[str | None, str | None] = (None, None)
    graph: DataSpec = field(default_factory=DataSpec)
    shard: str | None = None
    force: bool = False

    def check(self) -> Shard:
        """Return the shard of this process. Raise UserError if options cannot be combined."""
        check_output(self.output, self.input, self.force)
        self.format.check()
        shard = Shard.of(self.shard)
        if self.shortlist and self.ensemble:
            raise UserError("--shortlist: not supported with --ensemble")
        return shard

    def check_model(self, predictor: Predictor) -> None:
        """Raise UserError if the model does not support these options."""
        format, task, abilities = self.format, predictor.task, predictor.abilities
        if format.nbest > 1 and "nbest" not in abilities:
            raise UserError(f"--nbest: not supported for task {task.kind}")
        if self.rescore and (format.alignment or format.alternatives):
            raise UserError("--rescore: not supported with --alignments or --alternatives")
        special = self.input_json or format.alignment or format.alternatives > 0
        if special or self.constraints != Constraints():
            if "constraints" not in abilities:
                kind = f"found {task.kind} with output {predictor.config.model.gives}"
                raise UserError(
                    "--prefix, --require, --ban, --input-json, --alternatives, --alignments: only "
                    "supported for task transduce with a decoder that writes token by token, "
                    f"{kind}"
                )
            task.encode_constraints(self.constraints)
        if self.graph.edges and (self.texts or self.input_json):
            raise UserError(
                "--edges: cannot be combined with nodes on the command line or --input-json",
                help="pass a table of nodes with --input FILE",
            )
        if self.texts and self.input_json:
            raise UserError(
                "--input-json: cannot be combined with texts on the command line",
                help="use --input FILE, or pipe JSON lines in",
            )

    def _rescoring(self) -> dict[str, Any]:
        """Return what rescoring adds to the fingerprint."""
        if self.rescore is None:
            return {}
        return {"rescore": [model_digest(Path(self.rescore)), self.rescore_weight]}

    def fingerprint(self, shard: Shard, search: Any) -> dict[str, Any]:
        """Return everything that determines the output: search options, model digests and so on.

        A command can be resumed only if it did not change. Batch sizes are not included.
        """
        format, constraints = self.format, self.constraints
        short = shortlist_path(Path(self.model), self.shortlist) if self.shortlist else None
        return {
            "model": model_digest(Path(self.model)),
            "ensemble": [model_digest(Path(name)) for name in self.ensemble],
            **self._rescoring(),
            "engine": {"name": self.engine, "quantize": self.quantize},
            "shortlist": short and file_digest(short),
            "search": search.model_dump(mode="json"),
            "prefix": constraints.prefix,
            "require": list(constraints.require),
            "ban": list(constraints.ban),
            "nbest": format.nbest,
            "json": {"input": self.input_json, "output": format.json_lines},
            "token_scores": format.token_scores,
            "alignments": format.alignment,
            "alternatives": format.alternatives,
            "columns": list(self.columns),
            "graph": [self.graph.edges, self.graph.id_column, self.graph.graph_column],
            "shard": f"{shard.number}/{shard.count}",
        }


def search_changes(search: dict[str, Any], settings: Sequence[str] | None) -> dict[str, Any]:
    """Return `search` and `settings` as one dict of search options by name.

    search: options by name; None keeps the option of the model. settings: further options as
    "search.key=value". Raise UserError for settings outside of `search`.
    """
    tree: dict[str, Any] = {}
    for setting in settings or ():
        put(tree, setting)
    if set(tree) - {"search"} or not isinstance(tree.get("search", {}), dict):
        key = sorted(set(tree) - {"search"} or tree)[0]
        raise UserError(
            f"--set {key}: only search.* can be changed after training",
            help="for example --set search.beam=1",
        )
    return {**search, **tree.get("search", {})}
