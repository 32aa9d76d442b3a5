"""Ensembles: the average of the probabilities of several models."""

from typing import Any

from regard.core.errors import UserError
from regard.inference.predictor import Predictor
from regard.models.ensemble import Ensemble


def build_ensemble(predictor: Predictor, others: dict[str, Predictor]) -> Predictor:
    """Return a predictor that averages the probabilities of all models.

    others: further models by the name that error messages show.
    """
    models = []
    for name, other in {str(predictor.folder): predictor, **others}.items():
        if not other.task.exportable or other.module is None:
            raise UserError(
                f"--ensemble {name}: only sequence-to-sequence models with engine torch can be "
                "ensembled"
            )
        if (gives := other.config.model.gives) != "steps":
            raise UserError(
                f"--ensemble {name}: expected a model that decodes token by token, this one "
                f"outputs {gives}",
                help="use --rescore MODEL to combine a parallel decoder with another model",
            )
        if not _same_vocabularies(predictor.task, other.task):
            raise UserError(
                f"--ensemble {name}: its vocabularies differ from those of {predictor.folder}",
                help="use models trained on the same data with other seeds",
            )
        models.append(other.module)
    model = Ensemble(models).eval()
    return Predictor.of(predictor.task, predictor.config, model, predictor.folder)


def _same_vocabularies(first: Any, second: Any) -> bool:
    targets: bool = first.target.content() == second.target.content()
    return targets and first.source.content() == second.source.content()
