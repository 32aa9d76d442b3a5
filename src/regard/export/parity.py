"""Whether an exported model answers as the model that it was made from."""

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.data.batch import pad
from regard.data.vocabulary import EOS, SPECIALS
from regard.engines import open_engine
from regard.errors import UserError, say
from regard.search import Beam, Hypothesis
from regard.tasks.transduce import Transduce

if TYPE_CHECKING:
    from regard.estimators import Estimator

COUNT = 48
BEAMS = (1, 5)
LEAST = 0.95  # share of equal best answers
LEAST_ROUNDED = 0.5  # where weights were rounded, near ties go the other way


def check_parity(estimator: "Estimator", folder: Path) -> dict[str, Any]:
    """How alike the answers of an exported folder and of its model are, greedy and with a beam.

    Refused where they are not.
    """
    rows = some_rows(estimator)
    facts: dict[str, Any] = {"sources": len(rows)}
    engine = open_engine(folder)
    rounded = getattr(engine, "rounded", False)
    for beam in BEAMS:
        ours = _answers(estimator, estimator.model_, rows, beam)
        theirs = _answers(estimator, engine, rows, beam)
        equal, apart = compare(ours, theirs)
        say(f"parity, beam {beam}: {equal:.1%} of {len(rows)} best answers equal, scores {apart:.1g} apart")
        facts[f"beam_{beam}"] = {"equal": equal, "score_difference": apart}
        if equal < (LEAST_ROUNDED if rounded else LEAST):
            raise UserError(
                f"the exported model answers otherwise than {estimator.folder_}: with beam {beam} "
                f"only {equal:.0%} of {len(rows)} best answers are equal; nothing was written"
            )
    return facts
