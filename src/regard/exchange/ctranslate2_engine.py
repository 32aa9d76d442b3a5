"""The engine `ctranslate2`: CTranslate2's beam search, if the result is the same as that of regard.

Sentences that CTranslate2 may decide differently (see `ctranslate2_search.py`), and everything that
it does not support, fall back to the search of regard with the same weights.
"""

import math
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from regard.core.threads import num_threads
from regard.data.tensors.padded import Padded
from regard.exchange.ctranslate2_search import CTranslate2Search
from regard.inference.engine import BatchWork, Engine, Result
from regard.nn.ablation import is_ablating
from regard.nn.capture_hooks import is_recording
from regard.nn.fast import fast
from regard.search.callbacks import remap_rows
from regard.search.search import PlainBeam, Search, SearchRequest, SearchResult


class CTranslate2Engine(Engine):
    """An engine that decodes with CTranslate2: one translator per core, each with one thread."""

    name = "ctranslate2"

    def __init__(self, folder: Path) -> None:
        """Load the CTranslate2 files in `folder`, which is part of an exported folder."""
        self.folder = folder
        self.translators = num_threads()
        self.beam_search = CTranslate2Search(folder, self.translators)
        self.max_source_length = self.beam_search.max_source_length
        self.max_target_length = self.beam_search.max_target_length
        self._pool: ThreadPoolExecutor | None = None
        self._stepper: Any = None
        self._lock = threading.Lock()

    def check(self, length: int) -> None:
        """Raise UserError if a source has more tokens than the export has positions."""
        self.beam_search.check(length)

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        request, plain = self.fit_request(request), search.plain_beam()
        if request.constraints is not None or plain is None:
            return search.run(self.stepper(), request)
        (source, limits), nbest = request.sequences(), request.nbest
        rows, plain = _rows(source), PlainBeam(max(plain.beam, nbest), plain.length_penalty)
        max_lengths = limits.clamp(min=1).tolist()
        found = self.beam_search.search(rows, max_lengths, plain, self._batch_size(len(rows)))
        fallback = [b for b, hypotheses in enumerate(found) if hypotheses is None]
        if fallback:
            some = Padded(source.data[fallback], source.mask[fallback])
            rest = replace(request, source=some, limits=limits[fallback])
            rest = replace(rest, on_step=remap_rows(request.on_step, fallback))
            for b, hypotheses in zip(fallback, search.run(self.stepper(), rest), strict=True):
                found[b] = hypotheses
        return [hypotheses[:nbest] for hypotheses in found if hypotheses is not None]

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Return the result of `work` for each batch, in order.

        There is one thread more than translators, so that a batch always waits for a translator
        while Python builds the next batch or the predictions of the last.
        """
        run_batch = partial(work, self)
        if len(parts) < 2 or is_recording() or is_ablating():
            return map(run_batch, parts)
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    self.translators + 1,
                    thread_name_prefix="ctranslate2",
                    initializer=torch.set_num_threads,
                    initargs=(1,),
                )
        return self._pool.map(run_batch, parts)

    def stepper(self) -> Any:
        """Return the torch model with the exported weights."""
        with self._lock:
            if self._stepper is None:
                from regard.exchange.export.ctranslate2_read import read_model

                self._stepper = fast(read_model(self.folder))
        return self._stepper

    def _batch_size(self, rows: int) -> int:
        """Return the batch size that keeps all free translators busy.

        In the threads of `map_batches`, torch has one thread: the others have their own batches.
        """
        return math.ceil(rows / min(self.translators, torch.get_num_threads()))


def _rows(source: Padded) -> list[list[int]]:
    """Return the token ids of each sentence, without padding."""
    pairs = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    return [row[:length] for row, length in pairs]
