"""The command `regard recipes`."""

from regard.cli.command_options import Debug


def recipes(debug: Debug = False) -> None:
    """List the built-in recipes."""
    from regard.config.recipe_files import RECIPES, recipe_names

    width = 2 + max(len(name) for name in recipe_names())
    for name in recipe_names():
        first = (RECIPES / f"{name}.yaml").read_text("utf-8").splitlines()[0]
        print(f"{name:<{width}}{first.removeprefix('#').strip()}")
