"""Several models that answer together."""

from typing import Any

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.models.ensemble import Ensemble


def joined(predictor: Predictor, others: dict[str, Predictor]) -> Predictor:
    """The first model, which now answers by the mean of the probabilities of all."""
    models = []
    for name, other in {"the first model": predictor, **others}.items():
        if not other.task.exportable or other.module is None:
            raise UserError(f"--with: {name}: only transducers, run by torch, answer together")
        if not _alike(predictor.task, other.task):
            raise UserError(
                f"--with {name}: other tokens than the first model's; only models with the same "
                "vocabularies answer together, such as those of other seeds"
            )
        models.append(other.module)
    model = Ensemble(models).eval()
    return Predictor.of(predictor.task, predictor.config, model, predictor.folder)


def _alike(one: Any, other: Any) -> bool:
    targets: bool = one.target.content() == other.target.content()
    return targets and one.source.content() == other.source.content()
