"""What `regard shortlist` does, without the parsing of its words."""

from collections.abc import Sequence
from pathlib import Path

from regard.cli.commands.evaluate import trained_columns
from regard.core.errors import UserError, say
from regard.data.reading.read import Pair
from regard.data.sources.open import Place
from regard.data.tensors.special import EOS
from regard.estimators import load
from regard.search.shortlist import FILE, Shortlist
from regard.storage.run_files import trained_on
from regard.tasks.transduce import Transduce


def shortlist_command(model: str, place: Place, best: int, frequent: int, out: Path | None) -> None:
    """Learns a shortlist from pairs, writes it, and says how good it is on those held back."""
    estimator = load(model)
    task, options = estimator.task_, estimator.config_.task
    if not isinstance(task, Transduce):
        raise UserError(f"{model}: a {estimator.task} model; only transducers have shortlists")
    data = options.open(trained_columns(place, trained_on(estimator.folder_)), Place())
    kept, left_out = options.usable(data.train)
    for note in [*data.notes, *left_out]:
        say(note.removesuffix("; --dev names your own"))
    sizes = (len(task.source_vocabulary()), len(task.target))
    found = Shortlist.learn(*_rows(task, kept), *sizes, best, frequent)
    path = out or estimator.folder_ / FILE
    found.save(path, task.source_vocabulary(), task.target)
    mean, share = found.coverage(*_rows(task, data.dev))
    print(f"symbols of a sentence, mean{mean:>12,.1f} of {sizes[1]:,}")
    print(f"true symbols among them{share:>16.2%} of the {len(data.dev):,} pairs held back")
    say(f"written: {path}")


def _rows(task: Transduce, pairs: Sequence[Pair]) -> tuple[list[list[int]], list[list[int]]]:
    """The symbols of both sides; the sources as the model reads them, closed with EOS."""
    sources = task.source_vocabulary().encode_all([pair.source for pair in pairs])
    targets = task.target.encode_all([pair.target for pair in pairs])
    return [[*row, EOS] for row in sources], targets
