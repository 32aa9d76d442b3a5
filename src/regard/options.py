"""Options: the frozen, typed settings of a part; unknown keys are refused."""

from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    """Settings of one part, checked when made, never changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
