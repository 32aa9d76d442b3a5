"""The main loop of `regard predict`: predict the items of the input window by window.

An item is a source with its input text. A window is a list of items that are predicted together.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from regard.core import parallel
from regard.core.errors import UserError, warn
from regard.data.reading.lines import show_path
from regard.inference.prediction.input_items import (
    count_lines,
    file_items,
    graph_items,
    is_regular_file,
    json_items,
    named_items,
    read_named,
    text_items,
)
from regard.inference.prediction.partial_file import PartialOutput
from regard.inference.prediction.predict_options import PredictOptions, search_changes
from regard.inference.prediction.prediction_progress import PredictionProgress
from regard.inference.prediction.prediction_warnings import PredictionWarnings
from regard.inference.prediction.shards import Shard
from regard.inference.prediction.sink import StreamOutput, open_output
from regard.inference.prediction.windows import fixed_windows, live_windows
from regard.inference.predictor import Predictor
from regard.inputs.input import NamedSources
from regard.search.constrained import ConstraintsNotMet
from regard.tasks.batches import PredictWork
from regard.tasks.values import Constraints, InputItem

MAX_COUNTED = 1 << 30  # maximum bytes of a file whose lines are counted for the progress bar


def predict_job(predictor: Predictor, options: PredictOptions, shard: Shard) -> None:
    """Predict a shard of the input and write the predictions to the output."""
    changes = search_changes(options.search, options.settings)
    job = PredictJob(predictor, options, predictor.search_options(**changes))
    options.check_model(predictor)
    streamed = not options.format.json_lines and not options.output and shard.count == 1
    if "continue" in predictor.abilities and options.texts and streamed:
        job.stream_texts()
        job.warnings.print()
        return
    fingerprint = lambda: options.fingerprint(shard, job.search)  # noqa: E731 -- slow, often unused
    run_job(job, shard, fingerprint)


def run_job(job: "PredictJob", shard: Shard, fingerprint: Callable[[], dict[str, Any]]) -> None:
    """Predict a shard of the items of a job, and write the predictions to its output.

    fingerprint: returns everything that determines the output.
    """
    options = job.options
    first, end = job.bounds(shard) if shard.count > 1 else (0, None)
    items = islice(job.items(), first, end)
    with open_output(
        options.output, fingerprint, job.warnings, options.force, job.predictor.engine
    ) as sink:
        if isinstance(sink, PartialOutput):
            sink.skip(items, show_path(options.input))
        job.run(items, sink, first, end)
    job.warnings.across_processes().print()


@dataclass(frozen=True)
class PredictJob:
    """The state of one `regard predict`. search: search options. warnings: counted so far."""

    predictor: Predictor
    options: PredictOptions
    search: Any
    warnings: PredictionWarnings = field(default_factory=PredictionWarnings)

    @cached_property
    def named(self) -> NamedSources | None:
        """The sources of an input that has no lines of text, such as a folder of images."""
        options = self.options
        if options.texts or options.input_json or not self.predictor.task.by_line:
            return None
        return read_named(self.predictor, options.input, options.columns)

    def items(self, quiet: bool = False) -> Iterator[InputItem]:
        """Return the items of the entire input, not only of one shard."""
        options, task = self.options, self.predictor.task
        if options.texts:
            return text_items(task, options.texts)
        if options.graph.edges or options.graph.other_columns:
            return graph_items(self.predictor, options.graph, quiet)
        if options.input_json:
            return json_items(task, options.input, options.constraints)
        if self.named is not None:
            return named_items(self.named, quiet)
        return file_items(self.predictor, options.input, options.columns, quiet)

    def bounds(self, shard: Shard) -> tuple[int, int]:
        """Return the half-open range of source indices of a shard."""
        options = self.options
        if not (options.texts or self.named) and not is_regular_file(options.input):
            where = "--shard" if options.shard else "several processes"
            raise UserError(
                f"{where}: cannot shard a pipe of unknown length ({show_path(options.input)})",
                help="use --input FILE",
            )
        if self.named is not None:
            return shard.bounds(len(self.named.names))
        if options.texts or not self.predictor.task.by_line:
            return shard.bounds(sum(1 for _ in self.items(quiet=True)))
        return shard.bounds(count_lines(options.input))

    def count(self) -> int | None:
        """Return the number of sources; None if counting is impossible or slow."""
        path = self.options.input
        if self.options.texts:
            return len(self.options.texts)
        if self.named is not None:
            return len(self.named.names)
        short = is_regular_file(path) and os.path.getsize(path) <= MAX_COUNTED
        return count_lines(path) if short and self.predictor.task.by_line else None

    def run(
        self,
        items: Iterator[InputItem],
        sink: StreamOutput | PartialOutput,
        first: int,
        end: int | None,
    ) -> None:
        """Predict the items window by window, and write the predictions to the sink.

        first, end: half-open range of source indices of this shard (end None: all).
        """
        options, streamed = self.options, isinstance(sink, StreamOutput)
        fixed = not streamed or options.texts or self.named or is_regular_file(options.input)
        windows = fixed_windows(items, sink.done) if fixed else live_windows(items)
        index = first + sink.done
        unit = "lines" if self.predictor.task.by_line else "sentences"
        count = self.count if end is None else lambda: end - first
        quiet = parallel.rank() > 0
        bar = PredictionProgress(count, unit, sink.done, quiet, streamed)
        with closing(bar) as progress:
            for window in windows:
                sink.write(window, self.lines(window, index, progress.advance))
                index += len(window)
        if not index and options.input != "-" and end is None:  # an empty pipe is normal
            warn(f"{options.input}: the input is empty")

    def lines(
        self, window: list[InputItem], first: int, on_progress: Callable[[int], None]
    ) -> list[str]:
        """Predict the items of a window; return the formatted predictions, line ends included.

        first: index of the first source. on_progress: called with the number of new predictions.
        """
        options, format = self.options, self.options.format
        try:
            if format.alternatives:
                return [self._alternatives(item, n, on_progress) for n, item in enumerate(window)]
            constraints = None
            if options.input_json or options.constraints != Constraints():
                constraints = [item.constraints or options.constraints for item in window]
            found = self.predictor.predict(
                [item.source for item in window],
                self.search,
                format.nbest,
                constraints,
                format.alignment,
                options.batch_size,
                PredictWork(options.batch_tokens, first, on_progress),
            )
        except ConstraintsNotMet as error:
            text = repr(window[error.row].text)
            line = f"{show_path(options.input)} line {first + error.row + 1}"
            raise ConstraintsNotMet(error.row, text if options.texts else line) from error
        for item, prediction in zip(window, found, strict=True):
            self.warnings.add_source(item.source)
            self.warnings.add(prediction)
        tokens = self.predictor.task.source.names
        return [format.line(item, one, tokens) for item, one in zip(window, found, strict=True)]

    def _alternatives(self, item: InputItem, row: int, on_progress: Callable[[int], None]) -> str:
        """Return the formatted next tokens after the prefix of one item. row: its index."""
        constraints, format = item.constraints or self.options.constraints, self.options.format
        try:
            found = self.predictor.alternatives(
                item.source, constraints, format.alternatives, self.search
            )
        except ConstraintsNotMet as error:  # `error.row` is the index of an alternative
            raise ConstraintsNotMet(row) from error
        for _, _, prediction in found[:1]:
            self.warnings.add(prediction)
        on_progress(1)
        return format.format_alternatives(item.name or item.source, constraints.prefix, found)

    def stream_texts(self) -> None:
        """Print each text of the command line with its continuation, piece by piece."""
        task, nbest = self.predictor.task, self.options.format.nbest
        for index, item in enumerate(text_items(task, self.options.texts)):
            self.warnings.add_unknown(task.source.unknown(item.text))
            for sample in range(index * nbest, (index + 1) * nbest):
                pieces = self.predictor.stream(item.text, self.search, sample)
                sys.stdout.write(item.text)
                for piece in pieces:
                    sys.stdout.write(piece)
                    sys.stdout.flush()
                sys.stdout.write("\n")
