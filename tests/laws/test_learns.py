"""It learns: each task solves a toy problem in seconds, and a model that cannot, does not."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import regard

WORDS = ["Ann", "saw", "a", "dog", "17", "runs"]
SIZES = {"width": 32, "dropout": 0.0}
LAYERS = {
    "transformer": {"layers": 1, "heads": 4, "feedforward_width": 64},
    "recurrent": {"layers": 1},
}
Rows = list[tuple[Any, Any]]


def settings(part: str, kind: str, steps: int, lr: float, batch_tokens: int, **more: Any) -> dict:
    """Settings of a small model that is trained for a number of steps and judged at their end."""
    steps = 5 * steps // 2 if kind == "transformer" else steps  # it learns these things later
    sizes = SIZES | LAYERS.get(kind, {}) | {"kind": kind}
    training = {"steps": steps, "lr": lr, "batch_tokens": batch_tokens, "validate_every": steps}
    return (
        {f"model.{part}.{key}": value for key, value in sizes.items()}
        | {f"training.{key}": value for key, value in training.items()}
        | more
    )


def sentences(count: int, seed: int) -> Rows:
    """The tag of a word depends on it and on the word before it, in a way of which neither says
    anything alone."""
    draw = random.Random(seed)
    rows = [draw.choices(WORDS, k=draw.randint(1, 8)) for _ in range(count)]
    places = {word: place for place, word in enumerate(WORDS)}
    tags = [
        [str((places[w] + places[before]) % 2) for before, w in pairwise(["Ann", *row])]
        for row in rows
    ]
    return list(zip(rows, tags, strict=True))


@pytest.mark.parametrize(
    ("kind", "head"),
    [("transformer", "softmax"), ("recurrent", "softmax"), ("recurrent", "crf"), ("window", "crf")],
)
def test_tag(kind: str, head: str) -> None:
    model = regard.Tagger(settings=tagging(kind) | {"model.head": head}).fit(
        sentences(200, 1), dev=sentences(40, 2)
    )
    assert model.score(sentences(40, 3)) > 0.97


def test_a_word_alone_does_not_do() -> None:
    """What sees no neighbors is right half of the time: a problem that the others did solve."""
    model = regard.Tagger(settings=tagging("mlp")).fit(sentences(200, 1), dev=sentences(40, 2))
    assert model.score(sentences(40, 3)) < 0.75


def tagging(kind: str) -> dict:
    words = {
        "model.frontend.width": 16,
        "model.frontend.char_width": 16,
        "model.frontend.word_dropout": 0.0,
    }
    return settings("encoder", kind, steps=120, lr=0.01, batch_tokens=200, **words)


def texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdefgh", k=draw.randint(1, 12))) for _ in range(count)]


@pytest.mark.parametrize(
    ("kind", "pooling"),
    [
        ("transformer", "mean"),
        ("recurrent", "last"),
        ("window", "max"),
        ("mlp", "max"),
        ("linear", "attention"),
    ],
)
def test_classify(kind: str, pooling: str) -> None:
    """Is there a certain letter in the text?"""
    train, dev, test = texts(300, 1), texts(60, 2), texts(100, 3)
    model = regard.Classifier(
        settings=settings("encoder", kind, 120, 0.02, 400, **{"model.pooling": pooling})
    )
    model.fit(train, ["c" in t for t in train], dev=(dev, ["c" in t for t in dev]))
    assert model.score(test, ["c" in t for t in test]) >= 0.97
    assert model.predict(["abcab", "abab"]).tolist() == [True, False]


def test_classify_several() -> None:
    """Which of three letters are there?"""
    train, dev, test = texts(300, 1), texts(60, 2), texts(100, 3)
    found = [[sorted(set(text) & set("abc")) for text in some] for some in (train, dev, test)]
    model = regard.Classifier(settings=settings("encoder", "mlp", 150, 0.02, 400))
    model.fit(train, found[0], dev=(dev, found[1]))
    assert model.score(test, found[2]) >= 0.95


def test_regress_by_a_formula() -> None:
    """A linear function of a vector, exactly."""
    draw = np.random.default_rng(0)
    X, weights = draw.normal(size=(30, 5)), draw.normal(size=(5, 2))
    model = regard.Regressor(settings={"model.encoder.kind": "linear"})
    model.fit(X, X @ weights + 7, dev=(X[:5], X[:5] @ weights + 7))
    assert model.config_.training.optimizer.kind == "closed_form"
    new = draw.normal(size=(20, 5))
    np.testing.assert_allclose(model.predict(new), new @ weights + 7, atol=1e-4)


def test_regress_what_no_line_fits() -> None:
    """x1 x2: a line explains nothing of it, hidden layers do."""
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, 1, size=(400, 2))
    y, train, test = X[:, 0] * X[:, 1], slice(300), slice(300, 400)
    scores = []
    for kind in ("linear", "mlp"):
        more = {"model.encoder.layers": 2} if kind == "mlp" else {}
        model = regard.Regressor(settings=settings("encoder", kind, 250, 0.02, 300) | more)
        model.fit(X[train], y[train], dev=(X[train], y[train]))
        scores.append(model.score(X[test], y[test]))
    assert scores[0] < 0.1 and scores[1] > 0.95


def test_regress_texts() -> None:
    """How many times does a letter come, less those of another?"""
    train, test = texts(300, 1), texts(100, 3)
    numbers = [[text.count("a") - text.count("b") for text in some] for some in (train, test)]
    found = settings("encoder", "window", 200, 0.01, 400, **{"model.pooling": "mean"})
    model = regard.Regressor(settings=found).fit(train, numbers[0], dev=(train, numbers[0]))
    assert model.score(test, numbers[1]) > 0.8


PERIOD = "abacd "  # after an a one must know what came before it


@pytest.mark.parametrize("kind", ["transformer", "recurrent", "window"])
def test_language_model(kind: str) -> None:
    """A periodic text has no surprise left, and is written on."""
    task = {"task.context_length": 24, "task.eval_overlap": 12, "search.max_length": 20}
    found = settings("decoder", kind, 80, 0.01, 400, **task)
    model = regard.LanguageModel(settings=found).fit(PERIOD * 60, dev=[PERIOD * 4])
    nats = model.task_.token_nll(model.model_, [PERIOD * 6], 4)[0]
    assert nats[len(PERIOD) : -1].mean() < 0.05  # all but the beginning and the end
    (text,) = model.predict([PERIOD * 2], temperature=0.0, max_length=20)
    assert text == (PERIOD * 9)[: len(text)] and len(text) == 2 * len(PERIOD) + 20


def test_ngrams() -> None:
    model = regard.LanguageModel(settings={"model.kind": "ngram"}).fit(PERIOD * 60, dev=[PERIOD])
    nats = model.task_.token_nll(model.model_, [PERIOD * 6], 4)[0]
    assert nats[len(PERIOD) : -1].mean() < 0.1
    (text,) = model.predict([PERIOD * 2], temperature=0.0, max_length=20)
    assert text == (PERIOD * 9)[: len(text)] and len(text) == 2 * len(PERIOD) + 20


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("transformer", "char"),
        ("recurrent", "word_char"),
        ("window", "char"),
        ("window", "word_char"),
    ],
)
def test_masked(kind: str, tokens: str) -> None:
    """What stands on either side says what is missing."""
    text = "red green blue " if tokens == "word_char" else "abcde"
    sizes = {"model.frontend.width": 16, "model.frontend.char_width": 16}
    words = sizes if tokens == "word_char" else {}
    task = {"model.kind": "masked", "task.tokenizer": tokens, "task.context_length": 15}
    found = settings("encoder", kind, 200, 0.01, 600, **task, **words)
    model = regard.LanguageModel(settings=found).fit([text * 40], dev=[text * 9])
    assert model.evaluate([text * 12])["loss"] < 0.05


def test_transduce() -> None:
    """Short strings, each letter turned into the next one of the alphabet."""
    pairs = [(text, text.translate(TURN)) for text in texts(2000, 1) if len(text) < 6]
    small = {f"model.{side}.{key}": v for side in ("encoder", "decoder") for key, v in SMALL}
    training = {"training.batch_tokens": 512, "training.lr": 0.01, "training.validate_every": 300}
    model = regard.Transducer(steps=300, settings=small | training).fit(pairs, dev=pairs[:20])
    test = [text for text in texts(80, 3) if len(text) < 6]
    right = [
        one == text.translate(TURN) for one, text in zip(model.predict(test), test, strict=True)
    ]
    assert np.mean(right) > 0.9


TURN = str.maketrans("abcdefgh", "bcdefgha")
SMALL = [("kind", "recurrent"), ("cell", "gru"), ("width", 32), ("layers", 1), ("dropout", 0.0)]
