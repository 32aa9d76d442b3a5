"""The files of the built-in recipes."""

from pathlib import Path

RECIPES = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """Return the names of the built-in recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))
