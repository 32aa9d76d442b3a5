"""The Predictor: a trained model that predicts, scores and evaluates."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from regard.config.configs import Config
from regard.config.load import flatten
from regard.config.search_changes import changed_search
from regard.core import parallel
from regard.core.errors import UserError
from regard.core.memory import tune_malloc
from regard.data.reading.read import Example, Pair
from regard.inference.alignments import with_alignment
from regard.inference.engine import Engine
from regard.inference.open_engine import is_exported, open_engine
from regard.inference.torch_engine import TorchEngine
from regard.search.callbacks import SearchCancelled, StepCallback, remap_rows
from regard.search.constrained import ConstraintsNotMet
from regard.search.search import Search, SearchResult
from regard.storage.int8_weights import load_int8, weights_file
from regard.storage.model_folder import not_a_model_message
from regard.storage.run_files import read_config
from regard.storage.weights import build_for, load_weights
from regard.tasks.batches import DEFAULT_WORK, ROWS, PredictWork, check_lengths
from regard.tasks.rows import SourceRows
from regard.tasks.task import Prediction, Task
from regard.tasks.values import Constraints, Evaluation


@dataclass
class Predictor:
    """A trained model: its task, its configuration, and the engine that runs it."""

    task: Task
    config: Config
    engine: Engine
    folder: Path

    @classmethod
    def of(cls, task: Task, config: Config, model: nn.Module, folder: Path) -> "Predictor":
        """Return the predictor of a torch module."""
        return cls(task, config, TorchEngine(model, task.uses_threads), folder)

    @classmethod
    def load(
        cls, folder: Path, engine: str | None = None, quantize: str | None = None
    ) -> "Predictor":
        """Load the predictor of a run folder or of an exported folder.

        A run folder uses the torch engine, an exported folder the engine it was exported for.
        """
        if not folder.is_dir():
            raise UserError(not_a_model_message(folder))
        config = read_config(folder)
        settings = flatten(config.model.model_dump())
        if unset := [key for key, value in settings.items() if value in (None, "auto")]:
            raise UserError(
                f"{folder}/config.yaml: corrupted or truncated: model.{unset[0]} is not set"
            )
        tune_malloc()
        task = config.task.load(folder)
        if is_exported(folder, engine, quantize):
            return cls(task, config, open_engine(folder), folder)
        rounded = quantize if engine in (None, "torch") else None
        model = _model(folder, lambda: task.build(config.model), rounded)
        found = cls.of(task, config, model.eval(), folder)
        found.engine.stepper()  # prepare the model now, so that the first prediction is not slow
        return found

    @property
    def module(self) -> nn.Module | None:
        """The torch module; None if the engine is not torch, or has a shortlist."""
        return self.engine.module if self.engine.plain else None

    @property
    def abilities(self) -> frozenset[str]:
        """The abilities of the task (`Task.abilities`) that this model supports."""
        steps = self.config.model.gives == "steps"
        return self.task.abilities - (frozenset() if steps else self.task.step_abilities)

    def search_options(self, **changes: Any) -> Any:
        """Return the search options of this model with changes by name; None keeps an option."""
        if all(value is None for value in changes.values()):
            return self.config.search
        return changed_search(self.config, changes)

    def predict(
        self,
        sources: Sequence[Any],
        search: Search | None = None,
        nbest: int = 1,
        constraints: Sequence[Constraints] | None = None,
        return_alignment: bool = False,
        rows: int | None = ROWS,
        work: PredictWork = DEFAULT_WORK,
    ) -> list[Prediction]:
        """Return the prediction for each source, in the order of the sources.

        constraints: one per source. return_alignment: add the attention to the source tokens.
        rows: sources per batch (None: automatic). work: batch limits, indices and callbacks.
        """
        task, search = self.task, search or self.config.search
        if constraints is not None and len(constraints) != len(sources):
            raise UserError(
                f"constraints: expected one per source ({len(sources)}), found {len(constraints)}"
            )
        tokens = None
        if constraints is not None:
            tokens = [task.encode_constraints(one) for one in constraints]
        encoded = task.rows(sources)
        check_lengths(encoded.lengths)
        indices = work.indices or range(work.first_index, work.first_index + len(sources))

        def to_predictions(found: Mapping[int, SearchResult]) -> list[Prediction]:
            make = task.make_prediction
            return [make(sources[i], encoded.row(i), found[i], search, nbest) for i in found]

        def predict_batch(engine: Engine, part: list[int]) -> list[Prediction]:
            known, run = dict[int, SearchResult](), engine.run
            if engine.takes_rows and tokens is None and not return_alignment:
                known, run = self._run_rows(engine, encoded, part, search, nbest), engine.run_rest
            rest = [i for i in part if i not in known]
            if not rest:
                work.on_predictions(part, predictions := to_predictions(known))
                return predictions
            request = replace(
                task.search_request(encoded, rest, search),
                nbest=nbest,
                constraints=None if tokens is None else [tokens[i] for i in rest],
                indices=[indices[i] for i in rest],
                on_step=remap_rows(work.step_callback, rest),
            )
            try:
                found = encoded.results(rest, run(search, request))
            except ConstraintsNotMet as error:
                raise ConstraintsNotMet(rest[error.row]) from error
            except SearchCancelled as error:
                finished = known | {
                    rest[row]: one for row, one in error.finished.items() if not return_alignment
                }
                work.on_predictions([*finished], to_predictions(finished))
                raise
            known |= zip(rest, found, strict=True)
            predictions = to_predictions({i: known[i] for i in part})
            if return_alignment:
                predictions = with_alignment(engine, request, found, predictions)
            work.on_predictions(part, predictions)
            return predictions

        batch_size = None if rows is None else max(1, rows // nbest if encoded.uniform else rows)
        return self._map_batches(encoded, predict_batch, batch_size, work)

    def _run_rows(
        self, engine: Engine, encoded: Any, part: list[int], search: Search, nbest: int
    ) -> dict[int, SearchResult]:
        """Return the results that an engine finds from token ids alone, by source index."""
        task, rows = cast(Any, self.task), [encoded.row(i).tolist() for i in part]
        limits = [task.max_output_length(len(row), search) for row in rows]
        found = engine.run_rows(search, rows, limits, nbest)
        return {i: one for i, one in zip(part, found, strict=True) if one is not None}

    def find(self, sources: Sequence[Any]) -> list[SearchResult]:
        """Return the raw search result for each source, such as logits."""
        encoded, search = self.task.rows(sources), self.config.search
        check_lengths(encoded.lengths)

        def run(engine: Engine, part: list[int]) -> list[SearchResult]:
            found = engine.run(search, self.task.search_request(encoded, part, search))
            return encoded.results(part, found)

        return self._map_batches(encoded, run, ROWS, DEFAULT_WORK)

    def _map_batches(
        self,
        encoded: SourceRows,
        batch: Callable[[Engine, list[int]], list[Any]],
        rows: int | None,
        work: PredictWork,
    ) -> list[Any]:
        """Apply `batch` to each batch of sources; return the results in the order of the sources.

        rows: sources per batch (None: automatic).
        """
        lengths, engine, empty = encoded.lengths, self.engine, self.task.empty_prediction
        parts = encoded.batches(rows, work.max_tokens, engine.workers(len(lengths)))
        if empty is not None:
            parts = [kept for part in parts if (kept := [i for i in part if lengths[i]])]
            work.on_progress(sum(not length for length in lengths))
        results: dict[int, Any] = {}
        for part, found in zip(parts, engine.map_batches(batch, parts), strict=True):
            results.update(zip(part, found, strict=True))
            work.on_progress(len(part))
        return [results.get(i, empty) for i in range(len(lengths))]

    def stream(self, source: str, search: Any = None, index: int = 0) -> Iterator[str]:
        """Yield a continuation of a text, piece by piece. index: number of the random sample."""
        task: Any = self.task
        if "stream" not in self.abilities:
            task.rows([source])  # raises the error
        return task.stream(self.engine.stepper(), source, search or self.config.search, index)

    def score(
        self, pairs: Sequence[Pair], rows: int = ROWS
    ) -> list[tuple[dict[str, Any], Prediction]]:
        """Return the scores of each target (forced decoding), and the target as a prediction.

        rows: pairs per batch.
        """
        return self.task.score_pairs(self.engine, pairs, rows)

    def alternatives(
        self,
        source: str,
        constraints: Constraints,
        count: int,
        search: Any = None,
        on_step: StepCallback | None = None,
    ) -> list[tuple[str, float, Prediction]]:
        """Return the most probable next tokens after a prefix, each with a complete output.

        Each element is (token, probability, best prediction that continues with this token).
        """
        task: Any = self.task
        search = search or self.config.search
        found: list[tuple[str, float, Prediction]] = task.alternatives(
            self.engine, source, constraints, count, search, on_step
        )
        return found

    def evaluate(
        self, examples: Sequence[Example], search: Any = None, rows: int = ROWS
    ) -> Evaluation:
        """Return the metrics on examples. Loss and perplexity require the torch engine."""
        objective, search = self.config.objective, search or self.config.search
        return self.task.evaluate(self, examples, objective, search, rows)


def _model(folder: Path, build: Callable[[], nn.Module], quantize: str | None) -> nn.Module:
    """Return the model with the weights of a run folder or of an int8 export."""
    if quantize not in (None, "int8"):
        raise UserError(f"quantize: expected int8 or None, found {quantize!r}")
    path = weights_file(folder)
    if quantize or path.parent != folder:
        return load_int8(build, path)
    model = build_for(build, path).to(parallel.device())
    load_weights(model, path)
    return model
