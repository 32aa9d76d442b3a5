"""The interface of an engine, which runs a trained model: torch, CTranslate2 or ONNX.

A stepper decodes token by token: `start(source)` returns the decoder state before the first token,
and `step(tokens, state)` returns logits and the next state.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from regard.core.errors import UserError
from regard.core.threads import single_threaded_torch, thread_map
from regard.core.workers import fork_map, num_workers
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.nn.positions.learned import too_long
from regard.search.search import Search, SearchRequest, SearchResult
from regard.tasks.batches import MIN_ROWS_PER_THREAD

MIN_SOURCES_TO_FORK = 32  # with fewer sources, starting worker processes takes longer

Result = TypeVar("Result")
BatchWork = Callable[["Engine", list[int]], Result]  # processes a batch of source indices


class Engine(ABC):
    """Base class of engines, which run a trained model.

    fork_safe: whether forked worker processes can run the model. uses_threads: whether batches are
    divided among threads or processes. max_source_length, max_target_length: in tokens, EOS
    included; None: unlimited. module: the torch module, if any. plain: whether the engine runs
    `module` itself, without a shortlist. takes_rows: whether `run_rows` can find anything.
    """

    name: str
    device = torch.device("cpu")
    fork_safe = False
    uses_threads = True
    plain = takes_rows = False
    max_source_length: int | None = None
    source_section = "model.encoder.positions"  # the settings that limit the source length
    max_target_length: int | None = None
    module: nn.Module | None = None

    def check(self, length: int) -> None:
        """Raise UserError if a source of this length (tokens, EOS included) is too long."""
        if self.max_source_length is not None and length > self.max_source_length:
            raise too_long(length, self.max_source_length, self.source_section)

    @abstractmethod
    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        """Run a search; return the result for each source of the request."""

    def run_rows(
        self, search: Search, rows: list[list[int]], limits: list[int], nbest: int
    ) -> list[SearchResult | None]:
        """Return the results for sources as token ids; None where `run_rest` has to search.

        limits: maximum tokens per output, EOS included.
        """
        return [None] * len(rows)

    def run_rest(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        """Run a search for sources for which `run_rows` found nothing."""
        return self.run(search, request)

    def unsupported(self, search: Search, request: SearchRequest) -> str | None:
        """Return what this engine leaves to the search of regard in torch, or None."""
        return None

    def stepper(self) -> Any:
        """Return the stepper of the model, for search, forced decoding and alignments."""
        raise UserError(f"engine {self.name}: supports search only", help="use --engine torch")

    def torch_module(self) -> nn.Module:
        """Return the torch module. Raise UserError if the engine is not torch."""
        if self.module is None:
            raise UserError(
                f"engine {self.name}: the model cannot be inspected",
                help="load it with engine torch",
            )
        return self.module

    def why_not_inspectable(self, folder: Path) -> str | None:
        """Return why the model in a folder cannot be inspected, or None if it can."""
        return (
            f"{folder}: engine {self.name} does not support inspection; inspect the run folder "
            "that it was exported from"
        )

    def for_alignment(self, request: SearchRequest) -> Any:
        """Return the stepper that computes the alignments of this request."""
        return self.stepper()

    def fit_request(self, request: SearchRequest) -> SearchRequest:
        """Return the request on the device of this engine, with limits clamped to its maximum.

        Raise UserError if a source is too long.
        """
        if request.source is not None:
            self.check(request.source.data.shape[1])
        if self.max_target_length is not None and request.limits is not None:
            # an output that reaches the limit is marked as truncated
            request = replace(request, limits=request.limits.clamp(max=self.max_target_length))
        if request.source is not None and request.source.data.device == self.device:
            return request
        return request.to(self.device)

    def save_choice(self) -> list[str | None] | None:
        """Return name and quantization of the engine that a benchmark selected, or None.

        `restore_choice` takes the result, so that a resumed command uses the same engine.
        """
        return None

    def restore_choice(self, record: list[str | None] | None) -> None:
        """Select the engine that `save_choice` returned, without a benchmark."""
        assert record is None  # this engine has no alternatives

    def workers(self, count: int) -> int:
        """Return the number of worker processes for this many sources."""
        observed = is_recording() or is_ablating()
        pays_off = self.fork_safe and count >= MIN_SOURCES_TO_FORK
        return num_workers() if pays_off and not observed else 1

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Return the result of `work` for each batch, in order, computed on all cores.

        parts: the batches, as lists of source indices. During `regard.capture` or `regard.ablate`,
        which apply to the current thread only, the current thread runs all batches.
        """
        run_batch = partial(work, self)
        if not self.uses_threads or is_recording() or is_ablating():
            return map(run_batch, parts)
        count = sum(map(len, parts))
        workers = self.workers(count)
        if workers > 1 and len(parts) > 1:
            return fork_map(run_batch, parts, workers)
        if self.device.type != "cpu":
            return map(run_batch, parts)
        if count < MIN_ROWS_PER_THREAD * len(parts):  # too little work for threads
            with single_threaded_torch():
                return [run_batch(part) for part in parts]
        return thread_map(run_batch, parts, torch.get_num_threads() if len(parts) > 1 else 1)
