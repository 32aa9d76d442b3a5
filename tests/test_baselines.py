"""Baselines on hand-made data: each prediction and each score is worked out by hand."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.baselines import (
    AffixRules,
    CopySource,
    MeanTarget,
    MostFrequentLabel,
    MostFrequentTag,
    MostFrequentTarget,
    NearestNeighbor,
    TooSlow,
    Unigram,
    WordTags,
    nearest_neighbor,
    trigrams,
    words,
)
from regard.baselines.affix_rules import Rule, find_rule, split_source
from regard.config.load import load_config
from regard.core.errors import UserError
from regard.data.reading.read import Example, Pair
from regard.data.sources.sample import bounded_sample
from regard.tasks.baselines import BaselineScores, best_first, fit_baselines, score_baselines
from regard.tasks.scoring import MAX_BASELINE_CHARACTERS, MAX_BASELINE_EXAMPLES


def fitted_task(kind: str, pairs: list[Pair], *settings: str) -> tuple[Any, Any]:
    config = load_config(None, [f"task.kind={kind}", *settings])
    return config, config.task.fit(pairs, config.model)[0]


def scores(
    kind: str, train: list[tuple[Any, Any]], dev: list[tuple[Any, Any]], *settings: str
) -> dict[str, dict[str, float]]:
    """The scores of all baselines of a task by name, the best one first."""
    pairs = [Pair(*pair, 0) for pair in train]
    config, task = fitted_task(kind, pairs, *settings)
    notes: list[str] = []
    fitted = fit_baselines(task, task.baseline_fits(), pairs, notes)
    examples = task.examples([Pair(*pair, 0) for pair in dev])
    results = score_baselines(task, fitted, examples, config.objective)
    assert notes == results.notes == []
    return {one.name: one.scores for one in results.scores}


# Constant predictions


def test_most_frequent_label() -> None:
    """Of equally frequent labels, the first in alphabetical order; of several, each counts."""
    found = MostFrequentLabel.fit(["", "", ""], [("b",), ("a", "c"), ("b", "a")])
    assert found and found.label == "a" and found.predict(["x", "y"]) == [("a",), ("a",)]
    assert MostFrequentLabel.fit([], []) is None


def test_most_frequent_tag_and_tag_per_word() -> None:
    sources = [("the", "run"), ("I", "run"), ("they", "run", "home")]
    targets = [("D", "N"), ("P", "V"), ("P", "V", "N")]
    constant, per_word = MostFrequentTag.fit(sources, targets), WordTags.fit(sources, targets)
    assert constant and constant.tag == "N"  # N, V and P twice each
    assert per_word and per_word.words == {"run": "V", "the": "D", "I": "P", "they": "P"}
    assert constant.predict([("they", "new")]) == [("N", "N")]
    assert per_word.predict([("they", "new", "run")]) == [("P", "N", "V")]


def test_mean_of_the_targets() -> None:
    found = MeanTarget.fit(["a", "b"], [(1.0, 10.0), (2.0, 20.0)])
    assert found and found.predict(["x"]) == [(1.5, 15.0)]


def test_copy_and_most_frequent_target() -> None:
    assert CopySource.fit([], []).predict(["a b"]) == ["a b"]
    found = MostFrequentTarget.fit(["x", "y", "z"], ["b", "a", "b"])
    assert found and found.predict(["x", "q"]) == ["b", "b"]


# Affix rules


@pytest.mark.parametrize(
    ("word", "target", "rule"),
    [
        ("walk", "walked", Rule("", "", "", "ed")),
        ("make", "making", Rule("", "", "e", "ing")),
        ("machen", "gemacht", Rule("", "ge", "en", "t")),
        ("unhappy", "happy", Rule("un", "", "", "")),
        ("abc", "xyz", None),
        ("", "x", None),
    ],
)
def test_the_rule_of_a_pair(word: str, target: str, rule: Rule | None) -> None:
    assert find_rule(word, target) == rule
    assert rule is None or rule.apply(word) == target


def test_the_longest_ending_decides() -> None:
    pairs = [("walk", "walked"), ("jump", "jumped"), ("talk", "talked")]
    pairs += [("bake", "baked"), ("cry", "cried"), ("try", "tried"), ("play", "played")]
    found = AffixRules.fit(*zip(*pairs, strict=True))
    assert found and found.word_field == "all"
    predicted = found.predict(["bark", "fry", "stay", "rake"])
    assert predicted == ["barked", "fried", "stayed", "raked"]


def test_rules_depend_on_the_other_fields() -> None:
    """The lemma is one field; the tags before or after it choose the rules."""
    stems = [a + b + c for a in "bdfg" for b in "aou" for c in "lmnr"]
    for order in ("{word} {tag}", "{tag} {word}"):
        pairs = [(order.format(word=w, tag="PL"), w + "s") for w in stems]
        pairs += [(order.format(word=w, tag="PST"), w + "ed") for w in stems]
        found = AffixRules.fit(*zip(*pairs, strict=True))
        assert found is not None
        sources = [order.format(word="zorp", tag=tag) for tag in ("PL", "PST")]
        assert found.predict(sources) == ["zorps", "zorped"]


def test_fields_of_a_source() -> None:
    assert split_source("pick up V;PST", "all") == ("pick up V;PST", "")
    assert split_source("pick up V;PST", "first") == ("pick", "up V;PST")
    assert split_source("pick up V;PST", "last") == ("V;PST", "pick up")
    assert split_source("pick up V;PST", "before_last") == ("pick up", "V;PST")
    assert split_source("pick", "last") == ("pick", "")


def test_without_common_parts_there_are_no_rules() -> None:
    assert AffixRules.fit(["abc", "abd"], ["xyz", "xy"]) is None


def test_redundant_endings_are_not_stored() -> None:
    found = AffixRules.fit(["walk", "talk", "bake"], ["walks", "talks", "bakes"])
    assert found and found.endings == {"": {"": 0}} and found.rules == (Rule("", "", "", "s"),)


# Nearest neighbor


def test_nearest_neighbor_by_words() -> None:
    sources = ["who wrote it", "who sang it", "how far is it"]
    found = NearestNeighbor.fit(words, sources, ["HUM", "HUM", "NUM"])
    assert found is not None
    assert found.predict(["How far ?", "I wrote", "???"]) == ["NUM", "HUM", "HUM"]


def test_rare_words_weigh_more() -> None:
    """`b` is in one source, `a` in three: the source with `b` is nearer."""
    found = NearestNeighbor.fit(words, ["a x", "a y", "a z", "b w"], ["1", "2", "3", "4"])
    assert found and found.predict(["a b"]) == ["4"]
    assert found.predict(["a"]) == ["1"]  # ties: the first


def test_the_cosine_is_that_of_tf_idf() -> None:
    """Two sources, hand-computed: idf of `a` is 1, of `b` and `c` log(3/2) + 1."""
    found = NearestNeighbor.fit(words, ["a b", "a c"], ["1", "2"])
    assert found is not None
    idf = math.log(3 / 2) + 1
    expected = np.array([1, idf]) / math.hypot(1, idf)
    entries = slice(*found.starts[found.ids["a"] :][:2])
    assert found.weights[entries] == pytest.approx([expected[0], expected[0]])
    entries = slice(*found.starts[found.ids["b"] :][:2])
    assert found.weights[entries] == pytest.approx([expected[1]])


def test_nearest_neighbor_by_trigrams() -> None:
    assert trigrams("cat") == [" ca", "cat", "at "] and trigrams("") == ["  "]
    found = NearestNeighbor.fit(trigrams, ["nation", "cat"], ["N EY SH", "K AE T"])
    assert found and found.predict(["station", "cats"]) == ["N EY SH", "K AE T"]


def test_a_slow_neighbor_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_neighbor, "SECONDS", -1.0)
    monkeypatch.setattr(nearest_neighbor, "SECONDS_PER_SOURCE", -1.0)
    found = NearestNeighbor.fit(words, ["a"], ["1"])
    with pytest.raises(TooSlow, match="for 1 examples"):
        found.predict(["a"])  # type: ignore[union-attr]


def test_the_number_of_features_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_neighbor, "MAX_FEATURES", 3)
    found = NearestNeighbor.fit(words, ["a b", "c", "d e"], ["1", "2", "3"])
    assert found and found.targets == ["1", "2"]


# Scores, by the metrics of each task


def test_scores_of_labels() -> None:
    train = [("good book", ("pos",)), ("bad book", ("neg",)), ("good film", ("pos",))]
    dev = [("good play", ("pos",)), ("bad play", ("neg",)), ("bad bad", ("neg",))]
    found = scores("classify", train, dev)
    assert list(found) == ["nearest neighbor", "most frequent label"]
    assert found["nearest neighbor"]["accuracy"] == 100
    assert found["most frequent label"]["accuracy"] == pytest.approx(100 / 3)
    assert found["most frequent label"]["macro_f1"] == pytest.approx(25)  # 50 and 0
    assert "ece" not in found["most frequent label"]  # a baseline has no confidence


def test_scores_of_tags() -> None:
    train = [(("a", "b"), ("X", "Y")), (("a", "c"), ("X", "Y")), (("a",), ("X",))]
    dev = [(("b", "a", "d"), ("Y", "X", "Y"))]
    found = scores("tag", train, dev)
    assert list(found) == ["most frequent tag per word", "most frequent tag"]
    assert found["most frequent tag"]["accuracy"] == pytest.approx(100 / 3)
    assert found["most frequent tag per word"]["accuracy"] == pytest.approx(200 / 3)
    assert found["most frequent tag per word"]["oov_accuracy"] == 0


def test_scores_of_numbers() -> None:
    """The mean is 2: on targets 0 and 2, R2 = 1 - 4 / 2, and the errors are 2 and 0."""
    train = [((0.0, 1.0), (1.0,)), ((1.0, 0.0), (3.0,))]
    dev = [((0.0, 0.0), (0.0,)), ((1.0, 1.0), (2.0,))]
    found = scores("regress", train, dev)["mean of the training targets"]
    assert found == pytest.approx({"r2": -1, "rmse": math.sqrt(2), "mae": 1})


def test_scores_of_strings() -> None:
    train = [("walk", "walked"), ("jump", "jumped"), ("look", "looked"), ("bark", "barked")]
    dev = [("park", "parked"), ("red", "red")]
    found = scores("transduce", train, dev)
    assert set(found) == {"copying the source", "affix rules", "nearest neighbor"}
    assert found["affix rules"]["exact_match"] == found["copying the source"]["exact_match"] == 50
    assert found["affix rules"]["cer"] == pytest.approx(100 * 2 / 9)  # "reded"
    assert "perplexity" not in found["affix rules"]


def test_scores_of_sentences() -> None:
    train = [("the old cat sleeps", "die alte Katze schläft"), ("the dog barks", "der Hund bellt")]
    dev = [("an old cat sleeps", "die alte Katze schläft")]
    word = [f"task.{side}.tokenizer=word" for side in ("source", "target")]
    found = scores("transduce", train, dev, *word)
    assert list(found) == ["nearest neighbor", "copying the source"]
    assert found["nearest neighbor"]["exact_match"] == 100


@pytest.mark.parametrize("documents", [1, 2])
def test_scores_of_a_language_model(documents: int) -> None:
    """Counts a=3, b=1, and EOS if there are several documents; add-one over all V ids."""
    texts = ["aab", "a"] if documents == 2 else ["aaab"]
    found = scores("language-model", [("", t) for t in texts], [("", "ab")])["unigram"]
    ids = 7  # PAD, UNK, BOS, EOS, MASK, a, b
    total = 4 + ids + (2 if documents == 2 else 0)
    nats = -math.log(4 / total) - math.log(2 / total)
    nats -= math.log(3 / total) if documents == 2 else 0
    loss = nats / (3 if documents == 2 else 2)
    bits = nats / math.log(2) / 2
    expected = {"loss": loss, "perplexity": math.exp(loss), "bits_per_character": bits}
    assert found == pytest.approx(expected)


def test_scores_of_a_masked_language_model() -> None:
    """Each row masks one of four equal tokens; UNK does not count: -log((4 + 1) / (5 + 7))."""
    settings = ("model.kind=masked", "objective.kind=masked")
    found = scores("language-model", [("", "aaaab")], [("", "aaaa"), ("", "aa?a")], *settings)
    assert found["unigram"]["loss"] == pytest.approx(-math.log(5 / 12))
    assert found["unigram"]["perplexity"] == pytest.approx(12 / 5)


def test_counts_must_match_the_vocabulary() -> None:
    pairs = [Pair("", "aab", 0)]
    config, task = fitted_task("language-model", pairs)
    with pytest.raises(UserError, match="expected the counts of 7 tokens, found 2"):
        task.score_baseline(Unigram(counts=(1, 2)), [Example("", ("ab",))], config.objective)


# Failures, order and samples


def test_a_failing_baseline_becomes_a_note() -> None:
    pairs = [Pair("a b", ("x",), 0), Pair("c", ("y",), 0)]
    config, task = fitted_task("classify", pairs)

    def fail(sources: Any, targets: Any) -> None:
        raise RuntimeError("no memory\nat all")

    fits = [one._replace(fit=fail) for one in task.baseline_fits()][:1]
    notes: list[str] = []
    assert fit_baselines(task, fits, pairs, notes) == []
    assert notes == ["baseline most frequent label: not computed: no memory"]
    bad = MeanTarget(values=(1.0,))  # numbers instead of labels
    results = score_baselines(task, [bad], task.examples(pairs), config.objective)
    assert results.scores == [] and "mean of the training targets: not computed" in results.notes[0]


def test_the_best_baseline_is_first() -> None:
    a, b = BaselineScores("a", {"ser": 30.0}), BaselineScores("b", {"ser": 20.0})
    assert best_first([a, b], "ser") == [b, a]
    assert best_first([a, b], "perplexity") == [b, a]  # by the first metric that they have
    a, b = BaselineScores("a", {"bleu": 30.0}), BaselineScores("b", {"bleu": 20.0})
    assert best_first([b, a], "bleu") == [a, b] and best_first([], "bleu") == []


def test_samples_are_bounded_and_repeat() -> None:
    pairs = [Pair(f"source {n}", "t", n) for n in range(100)]
    some = bounded_sample(pairs, 10, 10_000)
    assert len(set(some)) == 10 and some == bounded_sample(pairs, 10, 10_000)
    assert set(bounded_sample(pairs, 200, 10_000)) == set(pairs)
    assert sum(len(p.source) + 1 for p in bounded_sample(pairs, 200, 50)) <= 50
    assert len(bounded_sample(pairs, 200, 1)) == 1  # at least one


def test_the_sample_of_a_task_is_described() -> None:
    pairs = [Pair(f"a {n % 9}", ("x" if n % 2 else "y",), n) for n in range(20_001)]
    _, task = fitted_task("classify", pairs)
    sample, note = task.baseline_sample(pairs)
    assert len(sample) == MAX_BASELINE_EXAMPLES
    assert note == "fitted on 20,000 of 20,001 training examples"
    assert task.baseline_sample(pairs[:9])[1] == ""
    long = [Pair("", "ab" * MAX_BASELINE_CHARACTERS, 0)]
    _, task = fitted_task("language-model", long)
    sample, note = task.baseline_sample(long)
    assert [len(pair.target) for pair in sample] == [MAX_BASELINE_CHARACTERS]
    assert note == "fitted on 4,000,000 of 8,000,000 characters of the training set"


def test_large_files_are_sampled_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_MEMORY", "1KB")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "large.tsv"
    path.write_text("".join(f"w{n}\tv{n}\n" for n in range(2_000)))
    from regard.data.sources.open import DataSpec

    found = DataSpec(str(path)).read_large()
    assert found is not None
    sample = bounded_sample(found.pairs, 400, 10_000)
    assert len(sample) == len({pair.source for pair in sample}) == 400
    assert all(pair.source[1:] == pair.target[1:] for pair in sample)
