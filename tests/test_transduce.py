"""The transduction task: its vocabularies, their sizes, and references as the model writes them."""

import random

import pytest

from regard.core.errors import UserError
from regard.data.reading.read import Example, Pair
from regard.data.tokenizers.tokenizer import WhitespaceTokenizer
from regard.inputs.text import Text
from regard.inputs.tokenizers import SideOptions
from regard.tasks.task import Prediction
from regard.tasks.transduce_options import TransduceOptions

WORDS = ("der", "die", "das", "ein", "Hund", "Katze", "Haus", "Baum", "geht", "sieht", "rot", "gut")


def sentences(seed: int) -> list[Pair]:
    generator = random.Random(seed)
    texts = [" ".join(generator.choices(WORDS, k=8)) for _ in range(400)]
    return [Pair(text, text[::-1], line) for line, text in enumerate(texts, 1)]


def test_one_vocab_size_is_used_for_both_sides_of_a_shared_vocabulary() -> None:
    options = TransduceOptions(source=Text(tokenizer="bpe", vocab_size=60))
    task, filled, _ = options.model_copy(update={"target": SideOptions(tokenizer="bpe")}).fit(
        sentences(0)
    )
    assert filled.shared_vocab
    assert filled.source.vocab_size == filled.target.vocab_size == 60
    assert task.source_tokenizer() is task.target


def test_two_vocab_sizes_mean_two_vocabularies() -> None:
    sides = (Text(tokenizer="bpe", vocab_size=60), SideOptions(tokenizer="bpe", vocab_size=80))
    task, filled, _ = TransduceOptions(source=sides[0], target=sides[1]).fit(sentences(0))
    assert not filled.shared_vocab
    assert task.source_tokenizer() is not task.target


def test_shared_vocab_needs_equal_sides() -> None:
    sides = (Text(tokenizer="bpe", vocab_size=60), SideOptions(tokenizer="bpe", vocab_size=80))
    options = TransduceOptions(source=sides[0], target=sides[1], shared_vocab=True)
    with pytest.raises(UserError, match=r"task\.shared_vocab: both sides need the same"):
        options.fit(sentences(0))


def test_scripts_without_spaces_get_a_vocabulary_that_holds_their_characters() -> None:
    generator = random.Random(1)
    characters = [chr(0x4E00 + i) for i in range(1500)]
    texts = ["".join(generator.choices(characters, k=20)) for _ in range(600)]
    pairs = [Pair(text, text, line) for line, text in enumerate(texts, 1)]
    _, filled, auto_settings = TransduceOptions().fit(pairs)
    assert filled.source.tokenizer == "unigram"
    assert filled.source.vocab_size is not None and filled.source.vocab_size > 1500
    assert any(choice.key == "task.source.vocab_size" for choice in auto_settings)


def test_a_reference_with_unusual_whitespace_can_be_matched() -> None:
    pairs = [Pair("ab", "A  B ", 1), Pair("ba", "B A", 2)]
    options = TransduceOptions(target=SideOptions(tokenizer="whitespace"), metric="exact_match")
    task, _, _ = options.fit(pairs)
    given = [Prediction("A B", 0.0), Prediction("B A", 0.0)]
    scores = task.score(given, [Example("ab", ("A  B ",)), Example("ba", ("B A",))])
    assert scores["exact_match"] == 100
    assert scores["cer"] == 0


def test_the_training_pairs_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first step of a run, also if some pairs are skipped."""
    seen: list[int] = []
    encode = WhitespaceTokenizer.encode_flat
    monkeypatch.setattr(
        WhitespaceTokenizer,
        "encode_flat",
        lambda self, texts, end: seen.append(len(texts)) or encode(self, texts, end),
    )
    side = SideOptions(tokenizer="whitespace")
    options = TransduceOptions(source=Text(tokenizer="whitespace"), target=side, max_length=8)
    train = [*sentences(0), Pair("", "no source", 401), Pair("long " * 9, "short", 402)]
    task, filled, _ = options.fit(options.trainable(train)[0])
    kept, notes = filled.trainable(train, task)
    corpus = task.corpus(kept)
    task.check(train, sentences(1))
    assert len(corpus) == len(kept) == 400 and len(notes) == 2
    assert seen == [402, 402]  # both sides
    assert corpus.digest() == task.corpus(sentences(0)).digest()
