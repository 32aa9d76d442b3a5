"""Several models that answer together."""

from torch import nn

from regard.core.errors import UserError
from regard.estimators import Estimator, Transducer
from regard.models.ensemble import Ensemble
from regard.tasks.transduce import Transduce


def joined(estimator: Estimator, others: dict[str, Estimator]) -> Estimator:
    """The first model, which now answers by the mean of the probabilities of all."""
    if not others:
        return estimator
    for name, other in {"the first model": estimator, **others}.items():
        if not isinstance(other, Transducer) or not isinstance(other.model_, nn.Module):
            raise UserError(f"--with: {name}: only transducers, run by torch, answer together")
        if not _alike(estimator.task_, other.task_):
            raise UserError(
                f"--with {name}: other symbols than the first model's; only models with the same "
                "vocabularies answer together, such as those of other seeds"
            )
    models = [estimator.model_, *(other.model_ for other in others.values())]
    estimator.model_ = Ensemble(models).eval()
    return estimator


def _alike(one: object, other: object) -> bool:
    assert isinstance(one, Transduce) and isinstance(other, Transduce)
    targets = one.target.content() == other.target.content()
    return targets and one.source.content() == other.source.content()
