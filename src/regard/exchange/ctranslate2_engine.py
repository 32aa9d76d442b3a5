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
from itertools import accumulate, chain
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

GROUP_ROWS = 64  # sources that Python prepares at once


class CTranslate2Engine(Engine):
    """An engine that decodes with CTranslate2: one translator per core, each with one thread."""

    name = "ctranslate2"
    takes_rows = True

    def __init__(self, folder: Path) -> None:
        """Load the CTranslate2 files in `folder`, which is part of an exported folder."""
        self.folder = folder
        self.translators = num_threads()
        self.beam_search = CTranslate2Search(folder, self.translators)
        self.max_source_length = self.beam_search.max_source_length
        self.max_target_length = self.beam_search.max_target_length
        self._pool: ThreadPoolExecutor | None = None
        self._stepper: Any = None
        self._lock, self._local = threading.Lock(), threading.local()

    def check(self, length: int) -> None:
        """Raise UserError if a source has more tokens than the export has positions."""
        self.beam_search.check(length)

    def unsupported(self, search: Search, request: SearchRequest) -> str | None:
        if request.constraints is not None:
            return "constraints"
        return None if search.plain_beam() else f"this {search.kind} search"

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        if request.constraints is not None:
            return self.run_rest(search, request)
        (source, limits), nbest = request.sequences(), request.nbest
        found = self.run_rows(search, _rows(source), limits.tolist(), nbest)
        fallback = [b for b, hypotheses in enumerate(found) if hypotheses is None]
        if fallback:
            some = Padded(source.data[fallback], source.mask[fallback])
            rest = replace(request, source=some, limits=limits[fallback])
            rest = replace(rest, on_step=remap_rows(request.on_step, fallback))
            for b, hypotheses in zip(fallback, self.run_rest(search, rest), strict=True):
                found[b] = hypotheses
        return found

    def run_rest(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return search.run(self.stepper(), self.fit_request(request))

    def run_rows(
        self, search: Search, rows: list[list[int]], limits: list[int], nbest: int
    ) -> list[SearchResult | None]:
        self.check(max(map(len, rows)))
        plain, most = search.plain_beam(), self.beam_search.max_target_length
        if plain is None:
            return [None] * len(rows)
        plain = PlainBeam(max(plain.beam, nbest), plain.length_penalty)
        max_lengths = [max(1, min(limit, most)) for limit in limits]
        found = self.beam_search.search(rows, max_lengths, plain, self._batch_size(len(rows)))
        return [None if hypotheses is None else hypotheses[:nbest] for hypotheses in found]

    def map_batches(self, work: BatchWork[Result], parts: list[list[int]]) -> Iterable[Result]:
        """Return the result of `work`, a list with an element per source, for each batch, in order.

        Small batches are handed to CTranslate2 in groups, which it divides again. There is one
        thread more than translators: it waits with the next group while the other threads wait for
        CTranslate2, or build predictions.
        """
        if len(parts) < 2 or is_recording() or is_ablating():
            return map(partial(work, self), parts)
        groups = _groups(parts)
        if len(groups) == 1:
            return self._run_group(work, groups[0])
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(
                    self.translators + 1,
                    thread_name_prefix="ctranslate2",
                    initializer=torch.set_num_threads,
                    initargs=(1,),
                )
        return chain.from_iterable(self._pool.map(partial(self._run_group, work), groups))

    def _run_group(self, work: BatchWork[Any], group: list[list[int]]) -> list[Any]:
        """Return the result of each batch of a group."""
        self._local.batch_size = len(group[0])
        try:
            found = work(self, [row for part in group for row in part])
        finally:
            self._local.batch_size = None
        ends = [*accumulate(map(len, group))]
        return [found[end - len(part) : end] for part, end in zip(group, ends, strict=True)]

    def stepper(self) -> Any:
        """Return the torch model with the exported weights."""
        with self._lock:
            if self._stepper is None:
                from regard.exchange.export.ctranslate2_read import read_model

                self._stepper = fast(read_model(self.folder))
        return self._stepper

    def _batch_size(self, rows: int) -> int:
        """Return the sources per batch: as in the groups, or so that all translators are busy."""
        planned: int | None = getattr(self._local, "batch_size", None)
        return planned or math.ceil(rows / min(self.translators, torch.get_num_threads()))


def _groups(parts: list[list[int]]) -> list[list[list[int]]]:
    """Return the batches in groups of at most GROUP_ROWS sources, or of one batch.

    The first batch of a group is its largest: CTranslate2 divides the group into batches of its
    size, which need no more memory than planned.
    """
    groups: list[list[list[int]]] = []
    for part in parts:
        fits = groups and len(part) <= len(groups[-1][0])
        if not fits or sum(map(len, groups[-1])) + len(part) > GROUP_ROWS:
            groups.append([])
        groups[-1].append(part)
    return groups


def _rows(source: Padded) -> list[list[int]]:
    """Return the token ids of each sentence, without padding."""
    pairs = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    return [row[:length] for row, length in pairs]
