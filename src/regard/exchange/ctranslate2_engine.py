"""The engine `ctranslate2`: CTranslate2's beam search, if the result is the same as that of regard.

CTranslate2 masks tokens before it normalizes probabilities, regard masks them afterwards. To keep
the probabilities, CTranslate2 masks nothing here. Instead, a special token ends a hypothesis and
frees its slot in the beam. If all hypotheses of a sentence end with EOS before the length limit,
the search of regard would find the same hypotheses. Other sentences, and everything that
CTranslate2 does not support, fall back to the search of regard with the same weights.
"""

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import UserError
from regard.core.field_types import Size
from regard.core.files import read_fields
from regard.core.threads import num_threads
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import EOS
from regard.inference.engine import Engine
from regard.inference.packages import import_package
from regard.nn.fast import fast
from regard.search.callbacks import remap_rows
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.search import Search, SearchRequest, SearchResult

Row = list[str]  # token ids as strings
ENDS = [EOS, *NON_OUTPUT_IDS]
ZERO_PENALTY = 1e-9  # replaces 0, with which CTranslate2 stops earlier


class CTranslate2Engine(Engine):
    """An engine that decodes with CTranslate2."""

    name = "ctranslate2"

    def __init__(self, folder: Path) -> None:
        """Load the CTranslate2 files in `folder`, which is part of an exported folder."""
        package = import_package("ctranslate2")
        self.folder = folder
        facts = read_fields(folder / "config.json", source_length=Size, length=Size)
        self.max_source_length, self.max_target_length = facts
        self.threads = num_threads()
        try:
            self.translator = package.Translator(
                str(folder), inter_threads=self.threads, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{folder}: corrupted; export the model again ({error})") from error
        self._stepper: Any = None
        self._lock = threading.Lock()

    def check(self, length: int) -> None:
        """Raise UserError if a source has more tokens than the export has positions."""
        if self.max_source_length is not None and length > self.max_source_length:
            raise UserError(
                f"the source has {length - 1:,} tokens, but this export supports at most "
                f"{self.max_source_length - 1:,}",
                help="use the run folder it was exported from",
            )

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        request, plain = self.fit_request(request), search.plain_beam()
        if request.constraints is not None or plain is None:
            return search.run(self.stepper(), request)
        (source, limits), nbest = request.sequences(), request.nbest
        beam = max(plain.beam, nbest)
        found = self._search(source, limits.clamp(min=1).tolist(), beam, plain.length_penalty)
        fallback = [b for b, hypotheses in enumerate(found) if hypotheses is None]
        if fallback:
            some = Padded(source.data[fallback], source.mask[fallback])
            rest = replace(request, source=some, limits=limits[fallback])
            rest = replace(rest, on_step=remap_rows(request.on_step, fallback))
            for b, hypotheses in zip(fallback, search.run(self.stepper(), rest), strict=True):
                found[b] = hypotheses
        return [hypotheses[:nbest] for hypotheses in found if hypotheses is not None]

    def stepper(self) -> Any:
        """Return the torch model with the exported weights."""
        with self._lock:
            if self._stepper is None:
                from regard.exchange.export.ctranslate2_read import read_model

                self._stepper = fast(read_model(self.folder))
        return self._stepper

    def _search(
        self, source: Padded, limits: list[int], beam: int, length_penalty: float
    ) -> list[list[Hypothesis] | None]:
        """Return the hypotheses of each sentence, or None if the sentence needs the fallback."""
        rows = _rows(source)
        results = self.translator.translate_batch(
            rows,
            max_batch_size=self._rows_per_thread(len(rows)),
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=length_penalty or ZERO_PENALTY,
            end_token=ENDS,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits),
        )
        return [_hypotheses(one, limit) for one, limit in zip(results, limits, strict=True)]

    def _rows_per_thread(self, rows: int) -> int:
        """Return the batch size that keeps all free threads busy."""
        return math.ceil(rows / min(self.threads, torch.get_num_threads()))


def _hypotheses(result: Any, limit: int) -> list[Hypothesis] | None:
    """Return the hypotheses of a sentence; None if one did not end with EOS before the limit.

    CTranslate2 returns no log probabilities of single tokens.
    """
    # For an empty source, the hypothesis is [].
    if any(h[-1:] != [str(EOS)] or len(h) >= limit for h in result.hypotheses):
        return None
    pairs = zip(result.hypotheses, result.scores, strict=True)
    return [Hypothesis(tuple(map(int, h[:-1])), score, ()) for h, score in pairs]


def _rows(source: Padded) -> list[Row]:
    """Return the token ids of each sentence as strings, without padding."""
    pairs = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    return [list(map(str, row[:length])) for row, length in pairs]
