"""Automatic settings: each options class proposes values for what the user left unset."""

from dataclasses import replace
from functools import reduce
from operator import getitem

from regard.config.implied import implied_lines
from regard.config.load import Config, check_config
from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, parts


def fill_defaults(config: Config, stats: DataStats) -> tuple[Config, list[AutoSetting]]:
    """Return the configuration with every unset setting filled, and the settings to print."""
    filled = implied_lines(config)
    config = with_settings(config, filled) if filled else config
    stats = replace(stats, budget=config.training.budget or 0.0)
    while proposals := propose_settings(config, stats):
        config = with_settings(config, proposals)
        filled += proposals
    return config, [setting for setting in filled if setting.is_printed]


def propose_settings(config: Config, stats: DataStats) -> list[AutoSetting]:
    """Return the proposals of all options in one round.

    Settings that depend on these proposals follow in the next round.
    """
    return [
        replace(setting, key=f"{path}.{setting.key}")
        for path, options in parts(config)
        for setting in options.propose(stats, config)
    ]


def with_settings(config: Config, settings: list[AutoSetting]) -> Config:
    """Return the configuration with these settings, validated again."""
    tree = config.model_dump(mode="json")
    for setting in settings:
        *path, last = setting.key.split(".")
        section = reduce(getitem, path, tree)
        section[last] = setting.value
        if last == "kind":  # the placeholder has settings that this kind may lack
            for name in [name for name, value in section.items() if value is None]:
                del section[name]
    return check_config(tree, "settings")
