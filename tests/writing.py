"""Short ways to let a model write on after prompts."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from regard.search import Sample, SearchRequest
from regard.search.sample import continue_prompts
from regard.tasks.batches import plan


def bounded(model: Any) -> Any:
    """The model without its word on how far it looks back: a context restarts it."""
    return SimpleNamespace(start=model.start, step=model.step)


def write(
    model: Any, prompts: Sequence[Sequence[int]], search: Sample, context: int | None = None
) -> list[list[int]]:
    """What follows each prompt; those of one length together, as a Predictor asks for them."""
    found: dict[int, list[int]] = {}
    for part in plan([len(prompt) for prompt in prompts], uniform=True):
        some = [prompts[row] for row in part]
        request = SearchRequest(prompts=some, indices=part, context=context)
        for row, (one,) in zip(part, search.run(bounded(model), request), strict=True):
            found[row] = list(one.tokens)
    return [found[row] for row in range(len(prompts))]


def write_alone(
    model: Any, prompt: Sequence[int], search: Sample, row: int = 0, context: int | None = None
) -> list[int]:
    """What follows one prompt, token by token. row: its number among all."""
    steps = continue_prompts(bounded(model), [prompt], [row], search, context)
    return [token for step in steps for token in step.values()]
