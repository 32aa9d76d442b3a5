"""The engine ctranslate2: CTranslate2's own beam search where it gives what ours would.

CTranslate2 strikes tokens out before it normalizes, ours after. So that probabilities stay what
they are, nothing is struck out here: a token that is no output ends a hypothesis, which leaves
its place in the beam to the next best. A sentence whose hypotheses then all end with EOS, before
its limit, was searched as ours would have done. The few others, and all that CTranslate2 cannot
do as we do it, are searched by ours, with the same weights.
"""

import math
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regard.core.errors import UserError
from regard.core.files import read_facts
from regard.core.threads import threads_there
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import EOS
from regard.inference.engine import Engine
from regard.inference.packages import need
from regard.nn.fast import fast
from regard.search.callbacks import remap_rows
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.search import Search, SearchRequest, SearchResult

Row = list[str]  # tokens by their numbers
ENDS = [EOS, *NON_OUTPUT_IDS]
NO_ALPHA = 1e-9  # 0 would make CTranslate2 stop earlier


class CTranslate2Engine(Engine):
    """Decodes with CTranslate2."""

    name = "ctranslate2"

    def __init__(self, folder: Path) -> None:
        """folder: the files of CTranslate2 within an exported folder."""
        package = need("ctranslate2")
        self.folder = folder
        facts = read_facts(folder / "config.json", "source_length", "length")
        self.source_places, self.target_places = facts
        self.threads = threads_there()
        try:
            self.translator = package.Translator(
                str(folder), inter_threads=self.threads, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{folder}: damaged, export the model anew ({error})") from error
        self._stepper: Any = None
        self._lock = threading.Lock()

    def check(self, length: int) -> None:
        """The places of an export come to an end."""
        if self.source_places is not None and length > self.source_places:
            raise UserError(
                f"a source of {length - 1:,} tokens: this export has places for "
                f"{self.source_places - 1:,}; use the run folder that it was made from"
            )

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        request, plain = self.own(request), search.plain_beam()
        if request.constraints is not None or plain is None:
            return search.run(self.stepper(), request)
        (source, limits), nbest = request.sequences(), request.nbest
        beam = max(plain.beam, nbest)
        found = self._search(source, limits.clamp(min=1).tolist(), beam, plain.length_penalty)
        again = [b for b, hypotheses in enumerate(found) if hypotheses is None]
        if again:
            some = Padded(source.data[again], source.mask[again])
            rest = replace(request, source=some, limits=limits[again])
            rest = replace(rest, on_step=remap_rows(request.on_step, again))
            for b, hypotheses in zip(again, search.run(self.stepper(), rest), strict=True):
                found[b] = hypotheses
        return [hypotheses[:nbest] for hypotheses in found if hypotheses is not None]

    def stepper(self) -> Any:
        """The model as torch runs it, with the weights of the export."""
        with self._lock:
            if self._stepper is None:
                from regard.exchange.export.ctranslate2_read import read_model

                self._stepper = fast(read_model(self.folder))
        return self._stepper

    def _search(
        self, source: Padded, limits: list[int], beam: int, alpha: float
    ) -> list[list[Hypothesis] | None]:
        """CTranslate2's search; None for the sentences where ours would have gone another way."""
        rows = _rows(source)
        results = self.translator.translate_batch(
            rows,
            max_batch_size=self._share(len(rows)),
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=alpha or NO_ALPHA,
            end_token=ENDS,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits),
        )
        return [_taken(one, limit) for one, limit in zip(results, limits, strict=True)]

    def _share(self, rows: int) -> int:
        """Rows that CTranslate2 takes together, so that each thread that is free has a share."""
        return math.ceil(rows / min(self.threads, torch.get_num_threads()))


def _taken(result: Any, limit: int) -> list[Hypothesis] | None:
    """The hypotheses of a sentence; None where one did not end with EOS before the limit.

    CTranslate2 has no log probabilities of single tokens to give.
    """
    if any(h[-1:] != [str(EOS)] or len(h) >= limit for h in result.hypotheses):  # [] for no source
        return None
    pairs = zip(result.hypotheses, result.scores, strict=True)
    return [Hypothesis(tuple(map(int, h[:-1])), score, ()) for h, score in pairs]


def _rows(source: Padded) -> list[Row]:
    """The tokens of each row, without padding."""
    pairs = zip(source.data.tolist(), source.mask.sum(1).tolist(), strict=True)
    return [list(map(str, row[:length])) for row, length in pairs]
