"""The beam search of CTranslate2 over token ids. This module does not import torch.

CTranslate2 masks tokens before it normalizes probabilities, regard masks them afterwards. To keep
the probabilities, CTranslate2 masks nothing here. Instead, a special token ends a hypothesis and
frees its slot in the beam. If all hypotheses of a sentence end with EOS before the length limit,
the search of regard would find the same hypotheses. For other sentences, the result is None.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.core.errors import UserError
from regard.core.field_types import Size
from regard.core.files import read_fields
from regard.data.tensors.special import EOS
from regard.inference.packages import import_package
from regard.search.hypothesis import NON_OUTPUT_IDS, Hypothesis
from regard.search.search import PlainBeam

ENDS = [EOS, *NON_OUTPUT_IDS]
EOS_NAME = str(EOS)
ZERO_PENALTY = 1e-9  # replaces 0, with which CTranslate2 stops earlier


class CTranslate2Search:
    """CTranslate2 files, loaded. translators: batches that are translated at the same time.

    max_source_length, max_target_length: in tokens, EOS included.
    """

    def __init__(self, folder: Path, translators: int) -> None:
        package = import_package("ctranslate2")
        facts = read_fields(folder / "config.json", source_length=Size, length=Size)
        self.max_source_length, self.max_target_length = facts
        try:
            self.translator = package.Translator(
                str(folder), inter_threads=translators, intra_threads=1
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{folder}: corrupted; export the model again ({error})") from error

    def check(self, length: int) -> None:
        """Raise UserError if a source has more tokens than the export has positions."""
        if length > self.max_source_length:
            raise UserError(
                f"the source has {length - 1:,} tokens, but this export supports at most "
                f"{self.max_source_length - 1:,}",
                help="use the run folder it was exported from",
            )

    def search(
        self, rows: Sequence[Sequence[int]], limits: Sequence[int], plain: PlainBeam, batch: int = 0
    ) -> list[list[Hypothesis] | None]:
        """Return the hypotheses of each source, or None if regard may find other ones.

        rows: token ids with EOS. limits: maximum tokens per output, EOS included. batch: sources
        per batch; 0: all.
        """
        results = self.translator.translate_batch(
            [list(map(str, row)) for row in rows],
            max_batch_size=batch,
            beam_size=plain.beam,
            num_hypotheses=plain.beam,
            length_penalty=plain.length_penalty or ZERO_PENALTY,
            end_token=ENDS,
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits),
        )
        return [_hypotheses(one, limit) for one, limit in zip(results, limits, strict=True)]


def _hypotheses(result: Any, limit: int) -> list[Hypothesis] | None:
    """Return the hypotheses of a sentence; None if one did not end with EOS before the limit.

    CTranslate2 returns no log probabilities of single tokens.
    """
    hypotheses = result.hypotheses  # a copy
    # For an empty source, the hypothesis is [].
    if any(h[-1:] != [EOS_NAME] or len(h) >= limit for h in hypotheses):
        return None
    pairs = zip(hypotheses, result.scores, strict=True)
    return [Hypothesis(tuple(map(int, h[:-1])), score, ()) for h, score in pairs]
