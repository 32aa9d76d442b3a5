"""The inputs that suit the data: how texts are cut, or how vectors are scaled."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.vectors import number
from regard.data.sources.open import Place
from regard.data.tensors.special import SPECIALS
from regard.data.vocabulary.build import WORD_LIMIT, build_vocabulary
from regard.data.vocabulary.vocabulary import Vocabulary, WordVocabulary
from regard.inputs.inputs import Inputs, Texts, Vectors
from regard.inputs.tokenizers import choose_side, choose_size
from regard.tasks.task import Choice, Task

ENOUGH = 0.8  # share of a text that words seen again must make up


def fit_inputs(
    tree: dict[str, Any], sources: Sequence[Any], chosen: list[Choice], like: Task | None
) -> Inputs:
    """The inputs for these sources, or those of another task.

    What the options leave open is filled in `tree`.
    """
    if not isinstance(sources[0], str):
        return Vectors.of(sources) if like is None else _same_vectors(like, len(sources[0]))
    side = tree["source"]
    if like is not None:
        vocabulary, tree["lower"] = read_like(like, side["symbols"])
        side["symbols"], side["size"] = vocabulary.kind, None
        return Texts(vocabulary, tree["lower"])
    found: list[Choice] = []
    choose_side(side, "task.source", sources, found)
    if found and side["symbols"] == "bpe":  # whole words say more about a text than pieces
        side["symbols"] = "word"
        found = [Choice("task.source.symbols", "word", found[0].why)]
    chosen += found
    choose_size(side, "task.source", sources, chosen)
    if tree["lower"] is None:
        tree["lower"] = side["symbols"] == "word"
    texts = [text.lower() for text in sources] if tree["lower"] else list(sources)
    if side["symbols"] == "word" and side["size"] is None:
        _choose_words(side, texts, chosen)
    return Texts(build_vocabulary(side["symbols"], texts, side["size"]), tree["lower"])


def _choose_words(side: dict[str, Any], texts: Sequence[str], chosen: list[Choice]) -> None:
    """Leaves out words that occur once, which are learnt by heart, where others say enough."""
    counts = Counter(word for text in texts for word in WordVocabulary([]).symbols(text))
    again = [count for count in counts.values() if count > 1]
    if len(again) > len(SPECIALS) and sum(again) >= ENOUGH * counts.total():
        side["size"] = min(len(again), WORD_LIMIT)
        chosen.append(Choice("task.source.size", side["size"], "words that occur again"))


def read_like(like: Task, wanted: str) -> tuple[Vocabulary, bool]:
    """The vocabulary of the texts that another task reads, and whether it reads without case."""
    inputs = getattr(like, "inputs", None)
    vocabulary = getattr(like, "vocabulary", None) or getattr(like, "source", None)
    if isinstance(inputs, Texts):
        vocabulary = inputs.vocabulary
    if not isinstance(vocabulary, Vocabulary) or getattr(like, "letters", None) is not None:
        raise UserError("--from: that model does not read texts as this task does")
    if wanted not in ("auto", vocabulary.kind):
        raise UserError(
            f"--from: that model reads {vocabulary.kind} symbols, {wanted} were asked for"
        )
    return vocabulary, isinstance(inputs, Texts) and inputs.lower


def _same_vectors(like: Task, numbers: int) -> Vectors:
    """The vectors of another task, scaled as its weights expect them."""
    inputs = getattr(like, "inputs", None)
    if not isinstance(inputs, Vectors) or len(inputs.mean) != numbers:
        raise UserError(f"--from: that model does not read vectors of {numbers} numbers")
    return inputs


def refuse_streamed_vectors(place: Place, read: Pairs) -> Pairs:
    """What was read as texts, unless it came from a pipe and is numbers."""
    first = read.pairs[:20]
    if place.file() == "-" and all(number(pair.source) is not None for pair in first):
        raise UserError("standard input: these are numbers; vectors are read from files only")
    return read


def balance(pairs: Sequence[Pair], labels: list[str]) -> dict[str, float]:
    """The weight of each label: all labels together count the same, the mean weight is 1."""
    counts = Counter(label for pair in pairs for label in pair.target)
    return {label: counts.total() / (len(labels) * counts[label]) for label in labels}
