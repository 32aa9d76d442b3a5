"""The decision for labels: no search is needed."""

from typing import Literal

from pydantic import Field

from regard.core.options import Options


class Decide(Options):
    """The most probable label; where a text may have several, all above the threshold."""

    kind: Literal["decide"] = "decide"
    threshold: float = Field(0.5, gt=0, lt=1, description="probability from which a label is given")
