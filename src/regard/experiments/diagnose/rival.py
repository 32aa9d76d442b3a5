"""The settings of a rival: what `regard` would choose, or another kind of network.

If important settings of the run differ from the automatic ones, the rival has the automatic
ones. Otherwise it has the other kind of network.
"""

from typing import Any, NamedTuple

from regard.config.configs import Config
from regard.config.defaults import fill_defaults
from regard.config.load import check_config
from regard.core.data_stats import DataStats
from regard.core.options import flatten
from regard.models.ngram import NGramOptions

MIN_FACTOR = 4.0  # by which the automatic size of a network is larger
MIN_RATE_FACTOR = 4.0  # between two learning rates, or two batch sizes
MIN_DROPOUT = 0.3  # difference of two dropout rates
RATES = ("training.lr", "training.batch_tokens")
COMPARED = ("model.", *RATES, "training.optimizer.kind", "training.freeze")
IGNORED = ("model.tie_embeddings", "model.output_bias", "model.embedding_width")
MAX_CHANGES = 6  # that are reported


class Rival(NamedTuple):
    """Settings to try. changes: key, value of the run and value of the rival.

    kind: `architecture` if the network has other parts, otherwise `settings`.
    """

    kind: str
    config: Config
    changes: list[tuple[str, Any, Any]]


def choose_rival(config: Config, stats: DataStats) -> Rival | None:
    """Return the rival of a run.

    Return None if there is none: a closed-form solution, or vectors with automatic settings.
    """
    rival = _filled(config, stats, {})
    if not rival.training.optimizer.stepwise:
        return None
    changes = _changes(config, rival)
    if not changes:
        if stats.vectors:
            return None
        kinds = {
            side: _other_kind(part.kind, stats.edges > 0)
            for side, part in config.model.sides.items()
        }
        rival = _filled(config, stats, {side: {"kind": kind} for side, kind in kinds.items()})
        changes = [change for change in _changes(config, rival) if change[0].endswith(".kind")]
    parts = [change for change in changes if not _is_number(change[1])]
    return Rival("architecture" if parts else "settings", rival, changes[:MAX_CHANGES])


def ngram_options(config: Config) -> NGramOptions | None:
    """Return the options of an n-gram model, the rival of other models of the next token."""
    is_rival = config.task.kind == "language-model" and config.model.kind == "causal"
    return NGramOptions() if is_rival else None


def _filled(config: Config, stats: DataStats, model: dict[str, Any]) -> Config:
    """Return a configuration of the same task, with automatic settings but for those of `model`."""
    own = config.model_dump(mode="json")
    kind = {"kind": own["model"]["kind"]} if "kind" in own["model"] else {}
    tree = {
        "task": own["task"],
        "objective": own["objective"],
        "model": kind | model,
        "training": {"budget": stats.budget, "seed": config.training.seed},
    }
    return fill_defaults(check_config(tree, "a rival"), stats)[0]


def _changes(config: Config, rival: Config) -> list[tuple[str, Any, Any]]:
    """Return the settings with important differences: parts of the network before numbers."""
    own, other = (flatten(one.model_dump(mode="json")) for one in (config, rival))
    kinds = [key for key in own if key.endswith(".kind") and own[key] != other.get(key)]
    found = []
    for key, value in own.items():
        if key in IGNORED or key not in other or not key.startswith(COMPARED):
            continue
        if any(key != kind and key.startswith(kind.removesuffix("kind")) for kind in kinds):
            continue  # a setting of a part that has another kind
        if _is_important(key, value, other[key]):
            found.append((key, value, other[key]))
    return sorted(found, key=lambda change: _is_number(change[1]))


def _is_important(key: str, own: Any, other: Any) -> bool:
    """Return whether a setting of the run differs much from that of the rival."""
    if not _is_number(own) or not _is_number(other):
        return bool(own != other)
    if key.endswith("dropout"):
        return bool(own - other >= MIN_DROPOUT)
    if key in RATES:
        return not 1 / MIN_RATE_FACTOR < own / other < MIN_RATE_FACTOR
    return bool(own < other and own * MIN_FACTOR <= other)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _other_kind(kind: str, graphs: bool) -> str:
    """Return another kind of network. graphs: whether it must read nodes and edges."""
    if graphs:
        return "gat" if kind == "gcn" else "gcn"
    return "transformer" if kind == "recurrent" else "recurrent"
