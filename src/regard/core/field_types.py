"""Types of the fields in the JSON files of a model folder, for `read_fields`."""

from typing import Annotated

from pydantic import AfterValidator, Field


def _check_distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("expected distinct names")
    return names


Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Size = Annotated[int, Field(gt=0)]
Names = Annotated[list[str], Field(min_length=1), AfterValidator(_check_distinct)]
Numbers = Annotated[list[Finite], Field(min_length=1)]
Deviations = Annotated[list[Positive], Field(min_length=1)]
