"""Search settings tuned on the dev set after training, unless the user set them.

Tuning searches once and reranks the n-best lists, so it takes about as long as a validation.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.config.defaults import with_settings
from regard.config.load import changed
from regard.core import parallel
from regard.core.files import read_json, write_json, write_text
from regard.core.options import AutoSetting
from regard.data.reading.read import Example
from regard.inference.predictor import Predictor
from regard.metrics.metric_names import HIGHER_IS_BETTER, METRICS, standard_error
from regard.search.search import Search
from regard.tasks.values import Prediction
from regard.training.run import Run
from regard.views.report.score_table import format_score

MIN_EXAMPLES, MAX_EXAMPLES = 50, 500
MIN_SECONDS, BUDGET_FRACTION = 2.0, 0.03  # tuning may take the larger of the two
RELATIVE_COST = 2.5  # time per example, relative to a validation
# Minimum gain in standard errors. Greedy search finds less probable outputs: more evidence.
MIN_GAIN_RERANKED, MIN_GAIN_SEARCHED = 0.5, 1.0
MIN_GAIN_EXAMPLES = 1.5  # near 0 and 100 the standard error is small: one example is not enough


@dataclass(frozen=True)
class TunedSetting(AutoSetting):
    """A setting that was tuned on the dev set. default: its value before tuning."""

    default: Any


@dataclass(frozen=True)
class ScoredSearch:
    """A search and its score on the dev set."""

    search: Search
    score: float


def tune_search(run: Run, examples: Sequence[Example]) -> list[TunedSetting]:
    """Tune the search of `run.config` on dev examples; return the changed settings.

    The model has the final weights. Write no files. All processes return the same.
    """
    prefix, metric = "search.", run.task.metric
    if run.user_settings is None or not METRICS[metric].is_bounded:
        return []
    names = [key.removeprefix(prefix) for key in run.user_settings if key.startswith(prefix)]
    search = run.config.search
    variants = search.variants(names)
    sample = tuning_sample(run, examples)
    if not (variants.reranked or variants.searched) or not sample:
        return []
    with parallel.unsharded(run.model):
        predictor = Predictor.of(run.task, run.config, run.model.eval(), run.folder)
        found = _predict(predictor, sample, search, variants.nbest)
        searched = [_predict(predictor, sample, one) for one in variants.searched]
    nbest = [prediction.nbest for prediction in found]
    reranked = [search.rerank(nbest, one) for one in variants.reranked]
    results = run.task.score_variants([found, *reranked, *searched], sample)
    default, *others = (
        ScoredSearch(one, scores[metric])
        for one, scores in zip(
            (search, *variants.reranked, *variants.searched), results, strict=True
        )
    )
    num_reranked = len(reranked)
    best = select(default, others[:num_reranked], MIN_GAIN_RERANKED, metric, len(sample))
    best = select(best, others[num_reranked:], MIN_GAIN_SEARCHED, metric, len(sample))
    tuned = describe_change(default, best, metric, len(sample))
    if tuned:
        run.config = with_settings(run.config, [*tuned])
    return tuned


def tuning_sample(run: Run, examples: Sequence[Example]) -> list[Example]:
    """Return the examples to tune on: a fixed random sample, empty if there are too few.

    With a budget, the duration of the last validation limits its size. Other runs give the same
    result on every machine. examples: those of the last validation.
    """
    count, budget = min(len(examples), MAX_EXAMPLES), run.config.training.budget
    if budget:
        allowed = max(MIN_SECONDS, BUDGET_FRACTION * budget)
        expected = RELATIVE_COST * run.state.validation_seconds
        if expected > allowed:
            count = min(count, int(len(examples) * allowed / expected))
    if count < MIN_EXAMPLES:
        return []
    indices = random.Random(0).sample(range(len(examples)), k=count)
    return [examples[i] for i in sorted(indices)]


def _predict(
    predictor: Predictor, examples: Sequence[Example], search: Search, nbest: int = 1
) -> list[Prediction]:
    """Return the prediction for each example, with the examples divided among processes."""
    mine = parallel.shard_items([example.source for example in examples])
    return parallel.all_gather(predictor.predict(mine, search, nbest) if mine else [])


def select(
    current: ScoredSearch,
    others: Sequence[ScoredSearch],
    min_gain: float,
    metric: str,
    examples: int,
) -> ScoredSearch:
    """Return the best of the other searches if it is clearly better, otherwise the current one.

    min_gain: in standard errors of the metric. examples: number of scored examples.
    """
    sign = 1 if HIGHER_IS_BETTER[metric] else -1
    best = max(others, key=lambda one: sign * one.score, default=current)
    required = max(
        min_gain * standard_error(metric, current.score, examples),
        MIN_GAIN_EXAMPLES * 100 / examples,
    )
    return best if sign * (best.score - current.score) > required else current


def describe_change(
    default: ScoredSearch, best: ScoredSearch, metric: str, examples: int
) -> list[TunedSetting]:
    """Return the settings in which two searches differ, with their scores as the reason."""
    before, after = (one.search.model_dump(mode="json") for one in (default, best))
    scores = [format_score(metric, one.score) for one in (best, default)]
    return [
        TunedSetting(
            f"search.{name}",
            after[name],
            f"dev {metric} {scores[0]}, {scores[1]} with the default {before[name]}; "
            f"{examples} examples",
            before[name],
        )
        for name in after
        if after[name] != before[name]
    ]


def save_tuning(run: Run, tuned: Sequence[TunedSetting]) -> None:
    """Write the tuned configuration. settings.json is first: a resumed run reads the defaults."""
    path = run.folder / "settings.json"
    settings = read_json(path)
    settings["changed"] = changed(run.config)
    settings["auto"] = [*settings["auto"], *map(asdict, tuned)]
    write_json(path, settings)
    write_text(run.folder / "config.yaml", run.config.dump())


def restore_settings(run: Run) -> None:
    """Restore what is known about the settings of a resumed run, and undo unfinished tuning."""
    path = run.folder / "settings.json"
    settings = parallel.broadcast(read_json(path) if path.exists() else {})
    if "user" in settings:
        run.user_settings = frozenset(settings["user"])
    tuned = [one for one in settings.get("auto", []) if "default" in one]
    if not tuned:
        return
    defaults = [AutoSetting(one["key"], one["default"], one["reason"]) for one in tuned]
    run.config = with_settings(run.config, defaults)
    if parallel.is_main_process():
        write_text(run.folder / "config.yaml", run.config.dump())
        settings["changed"] = changed(run.config)
        settings["auto"] = [one for one in settings["auto"] if "default" not in one]
        write_json(path, settings)
