"""Settings for a user who says nothing: each options class proposes its own from the data."""

from dataclasses import replace
from functools import reduce
from operator import getitem

from regard.config.load import Config, check_config
from regard.core.data_stats import DataStats
from regard.core.options import Choice, parts


def fill(config: Config, stats: DataStats) -> tuple[Config, list[Choice]]:
    """The configuration with every open setting filled, and what was chosen and why."""
    chosen: list[Choice] = []
    while proposals := proposed(config, stats):
        config = with_choices(config, proposals)
        chosen += proposals
    return config, [choice for choice in chosen if choice.told]


def proposed(config: Config, stats: DataStats) -> list[Choice]:
    """What all options propose in one round; what waits for that is proposed in the next."""
    return [
        replace(choice, key=f"{path}.{choice.key}")
        for path, options in parts(config)
        for choice in options.propose(stats, config)
    ]


def with_choices(config: Config, choices: list[Choice]) -> Config:
    """The configuration with these settings, checked again."""
    tree = config.model_dump(mode="json")
    for choice in choices:
        *path, last = choice.key.split(".")
        reduce(getitem, path, tree)[last] = choice.value
    return check_config(tree, "settings")
