"""Options: the frozen, typed settings of a part; unknown keys are refused."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Settings of one part, checked when made, never changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested sections as dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
