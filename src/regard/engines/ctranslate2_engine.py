"""The engine ctranslate2: CTranslate2's own beam search where it gives what ours would.

B sentences, W beams of each, k beams a sentence in a step, T symbols fed, V vocabulary.

CTranslate2 strikes symbols out before it normalises, ours after. So that probabilities stay what
they are, nothing is struck out here: a symbol that is no output ends a hypothesis, which leaves
its place in the beam to the next best. A sentence whose hypotheses then all end with EOS, before
its limit, was searched as ours would have done. The few others are searched again, by ours.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batch import Padded
from regard.data.vocabulary import BOS, EOS
from regard.engines.packages import need
from regard.errors import UserError, say
from regard.files import read_facts
from regard.nn.state import State
from regard.search import Beam, Hypothesis, Sample, Wish
from regard.search.hypothesis import NEVER

Row = list[str]  # symbols by their numbers
ENDS = [EOS, *NEVER]
FEW = 4  # sentences searched step by step together: their logits take much memory
NO_ALPHA = 1e-9  # 0 would make CTranslate2 stop earlier


class CTranslate2Engine:
    """Decodes with CTranslate2."""

    name = "ctranslate2"

    def __init__(self, folder: Path) -> None:
        """folder: of an exported model."""
        package = need("ctranslate2")
        facts = read_facts(folder / "export.json", "source_length", "length")
        self.source_length, self.length = facts
        self.threads = torch.get_num_threads()
        try:
            self.translator = package.Translator(
                str(folder / self.name), inter_threads=self.threads, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{folder}: damaged, export the model anew ({error})") from error
        self._told: set[str] = set()

    def search(
        self,
        options: Beam | Sample,
        source: Padded,
        limits: Tensor,
        nbest: int = 1,
        wishes: Sequence[Wish] | None = None,
    ) -> list[list[Hypothesis]]:
        """The best outputs of each row of source, at most `limits` (B,) symbols long."""
        rows, most = _rows(source), limits.clamp(min=1).tolist()
        self._check_lengths(rows, most)
        if reason := special(options, wishes):
            self._tell(reason)
            return options.run(self, source, limits, nbest, wishes)
        assert isinstance(options, Beam)
        beam = max(options.beam, nbest)
        found = self._search(rows, most, beam, options)
        again = [b for b, hypotheses in enumerate(found) if hypotheses is None]
        if again and beam == 1:
            redone = self._greedy([rows[b] for b in again], [most[b] for b in again], options)
        else:
            redone = self._slowly(options, source, limits, beam, again)
        for b, hypotheses in zip(again, redone, strict=True):
            found[b] = hypotheses
        return [one[:nbest] for one in found if one is not None]

    def _search(
        self, rows: list[Row], limits: list[int], beam: int, options: Beam
    ) -> list[list[Hypothesis] | None]:
        """CTranslate2's search; None for the sentences where ours would have gone another way."""
        results = self.translator.translate_batch(
            rows,
            max_batch_size=self._share(len(rows)),
            beam_size=beam,
            num_hypotheses=beam,
            length_penalty=_alpha(options) or NO_ALPHA,
            end_token=ENDS,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits),
        )
        return [_taken(one, limit) for one, limit in zip(results, limits, strict=True)]

    def _greedy(
        self, rows: list[Row], limits: list[int], options: Beam
    ) -> list[list[Hypothesis]]:
        """Greedy search with specials struck out and each sentence ended at its limit.

        What is struck out changes no other symbol's rank; probabilities are asked for afterwards.
        """
        results = self.translator.translate_batch(
            rows,
            beam_size=1,
            suppress_sequences=[[str(id)] for id in NEVER],
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits),
        )
        pairs = zip(results, limits, strict=True)
        outputs = [one.hypotheses[0][: limit - 1] for one, limit in pairs]
        scored = self.translator.score_batch(rows, outputs, max_input_length=0)
        found = []
        for output, one, limit in zip(outputs, scored, limits, strict=True):
            total, length = sum(one.log_probs), len(output) + 1
            score = total / length ** _alpha(options)
            symbols, cut = tuple(map(int, output)), length >= limit
            found.append([Hypothesis(symbols, score, tuple(one.log_probs), cut)])
        return found

    def _slowly(
        self, options: Beam, source: Padded, limits: Tensor, beam: int, again: list[int]
    ) -> list[list[Hypothesis]]:
        """Our own search for these sentences."""
        found: list[list[Hypothesis]] = []
        for i in range(0, len(again), FEW):
            part = torch.tensor(again[i : i + FEW])
            some = Padded(source.data[part], source.mask[part])
            found += options.run(self, some, limits[part], beam)
        return found

    def start(self, source: Padded) -> State:
        """The state before the first symbol: CTranslate2 gives none out, so symbols stand for it."""
        return State(source, {"symbols": source.data.new_empty(len(source.data), 0)})

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Symbols (k*B, T) to the logits (k*B, T, V) of what follows each, and the new state.

        The whole prefix is read anew each time.
        """
        seen = state.past["symbols"]
        seen = seen.repeat_interleave(len(symbols) // len(seen), 0)
        seen = torch.cat([seen, symbols], 1)  # (k*B, t)
        rows = _rows(state.memory)
        times = len(seen) // len(rows)
        results = self.translator.translate_batch(
            [row for row in rows for _ in range(times)],
            [list(map(str, row)) for row in seen[:, 1:].tolist()],
            max_batch_size=self._share(len(seen)),
            beam_size=1,
            return_logits_vocab=True,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=seen.shape[1],
        )
        logits = [[np.array(one) for one in r.logits[0][-symbols.shape[1] :]] for r in results]
        return torch.from_numpy(np.array(logits)), State(state.memory, {"symbols": seen})

    def _share(self, rows: int) -> int:
        """Rows that CTranslate2 takes together, so that each thread that is free has a share."""
        return math.ceil(rows / min(self.threads, torch.get_num_threads()))

    def _check_lengths(self, rows: list[Row], limits: list[int]) -> None:
        """Positions of an export come to an end."""
        longest = max(rows, key=len)
        if len(longest) > self.source_length or max(limits) > self.length:
            raise UserError(
                f"a source of {len(longest) - 1:,} symbols, whose answer may have "
                f"{max(limits):,}: this export has places for {self.source_length - 1:,} and "
                f"{self.length:,}; use the model that it was made from, or --max-length"
            )

    def _tell(self, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
            say(f"ctranslate2: {reason} goes step by step here, which is slow; torch is faster")


def special(options: Beam | Sample, wishes: Sequence[Wish] | None) -> str:
    """What CTranslate2's own search cannot do as ours does; nothing where it can all."""
    if isinstance(options, Sample):
        return "sampling"
    if options.coverage:
        raise UserError("the engine ctranslate2 gives no attention: coverage needs --engine torch")
    kinds = {
        "normalise gnmt": options.normalise == "gnmt",
        f"stop {options.stop}": options.stop != "full",
        "groups": options.groups > 1,
        "min_length": bool(options.min_length),
        "no_repeat": bool(options.no_repeat),
        "a prefix or words that must or must not appear": bool(wishes),
    }
    return ", ".join(name for name, there in kinds.items() if there)


def _taken(result: Any, limit: int) -> list[Hypothesis] | None:
    """The hypotheses of a sentence; None where one did not end with EOS before the limit."""
    if any(h[-1] != str(EOS) or len(h) >= limit for h in result.hypotheses):
        return None
    pairs = zip(result.hypotheses, result.scores, strict=True)
    return [Hypothesis(tuple(map(int, h[:-1])), score, ()) for h, score in pairs]


def _alpha(options: Beam) -> float:
    return 0.0 if options.normalise == "none" else options.alpha


def _rows(source: Padded) -> list[Row]:
    """The symbols of each row as texts, without padding."""
    lengths = source.mask.sum(1).tolist()
    pairs = zip(source.data.tolist(), lengths, strict=True)
    return [list(map(str, row[:length])) for row, length in pairs]
