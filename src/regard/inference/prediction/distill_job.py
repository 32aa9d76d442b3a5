"""Sequence-level distillation: the outputs of a model as training data (Kim and Rush 2016, 3.2)."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from regard.core.errors import UserError
from regard.data.reading.lines import show_path
from regard.data.reading.read import Example
from regard.inference.prediction.input_items import is_regular_file
from regard.inference.prediction.predict_job import PredictJob
from regard.inference.prediction.shards import Shard
from regard.tasks.values import InputItem, Prediction

LINE_BREAKS = ("\t", "\n", "\r")  # not possible in a field of a TSV file


@dataclass(frozen=True)
class DistillJob(PredictJob):
    """The state of one `regard distill`.

    examples: distinct sources with their references; None: the input has one source per line.
    keep_reference: also write the references.
    """

    examples: Sequence[Example] | None = None
    keep_reference: bool = False

    @cached_property
    def as_json(self) -> bool:
        """Whether the output is JSON lines instead of TSV."""
        output = self.options.output
        return output is not None and output.suffix == ".jsonl"

    def check(self) -> None:
        """Raise UserError if the model does not write texts."""
        task = self.predictor.task
        if not (task.writes_text and task.reads_source and "nbest" in self.predictor.abilities):
            raise UserError(f"distill: only supported for task transduce, this is {task.kind}")

    def items(self, quiet: bool = False) -> Iterator[InputItem]:
        """Yield the sources; each writes its own lines of training data."""
        if self.examples is None:
            for item in super().items(quiet):
                render = self._render(item.text, (), f"{show_path(self.options.input)}: ")
                yield InputItem(item.source, item.text, render)
            return
        for example in self.examples:
            text = self.predictor.task.source.text(example.source)
            kept = example.references if self.keep_reference else ()
            yield InputItem(example.source, text, self._render(text, kept, ""))

    def bounds(self, shard: Shard) -> tuple[int, int]:
        """Return the half-open range of source indices of a shard."""
        if self.examples is None:
            return super().bounds(shard)
        return shard.bounds(len(self.examples))

    def count(self) -> int | None:
        """Return the number of sources."""
        return super().count() if self.examples is None else len(self.examples)

    def _render(
        self, source: str, references: Sequence[str], where: str
    ) -> Callable[[Prediction], str]:
        return partial(self._lines, source, references, where)

    def _lines(self, source: str, references: Sequence[str], where: str, found: Prediction) -> str:
        """Return the lines of training data of a source: its distinct targets, the best first."""
        outputs = [one.text for one in found.nbest] or [found.text]
        targets = dict.fromkeys([*outputs[: self.options.format.nbest], *references])
        return "".join(self._line(source, target, where) for target in targets)

    def _line(self, source: str, target: str, where: str) -> str:
        """Return one pair as a line. Raise UserError if TSV cannot represent it."""
        if self.as_json:
            pair = {"source": source, "target": target}
            return json.dumps(pair, ensure_ascii=False) + "\n"
        for text in (source, target):
            if any(mark in text for mark in LINE_BREAKS):
                raise UserError(
                    f"{where}{text[:60]!r}: a tab or line break cannot be written as TSV",
                    help="use --out FILE.jsonl",
                )
        return f"{source}\t{target}\n"


def check_input(input: str) -> None:
    """Raise UserError if the input is a pipe, which cannot be resumed."""
    if input == "-" or (Path(input).exists() and not is_regular_file(input)):
        raise UserError("distill: expected a file, found a pipe", help="use a regular file")
