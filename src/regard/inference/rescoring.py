"""Rescoring: another model ranks the hypotheses that a search finds.

With a parallel decoder and an autoregressive scorer, this is noisy parallel decoding (Gu et al.
2018, 4). A language model scores targets alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.inference.predictor import Predictor
from regard.search.search import Search
from regard.tasks.batches import DEFAULT_WORK, ROWS, PredictWork
from regard.tasks.task import Prediction
from regard.tasks.values import Constraints

TEXT_WEIGHT = 0.3  # default weight of a language model, which does not know the source
SCORES = frozenset({"score pairs", "score texts"})  # the abilities of which a scorer has one


@dataclass
class RescoringPredictor(Predictor):
    """A predictor whose hypotheses are ranked by the log probability per token of two models.

    scorer: the other model. weight: of its log probability; 1 - weight is that of the model's own.
    """

    scorer: Predictor
    weight: float = 1.0

    def predict(
        self,
        sources: Sequence[Any],
        search: Search | None = None,
        nbest: int = 1,
        constraints: Sequence[Constraints] | None = None,
        return_alignment: bool = False,
        rows: int | None = ROWS,
        work: PredictWork = DEFAULT_WORK,
    ) -> list[Prediction]:
        """Return the prediction for each source: the hypothesis that both models rank first."""
        if return_alignment:
            raise UserError("--rescore: alignments are not supported; predict without it")
        search = search or self.config.search
        count = max(nbest, search.candidates)
        silent = replace(work, on_predictions=DEFAULT_WORK.on_predictions)
        found = super().predict(sources, search, count, constraints, False, rows, silent)
        found = self.rescored(sources, found, nbest, rows or ROWS)
        work.on_predictions(range(len(found)), found)
        return found

    def rescored(
        self, sources: Sequence[Any], found: Sequence[Prediction], nbest: int, rows: int
    ) -> list[Prediction]:
        """Return the predictions with their n-best lists in the new order."""
        pairs = [
            Pair(source, one.text, 0)
            for source, prediction in zip(sources, found, strict=True)
            for one in prediction.nbest
        ]
        scores = iter(_log_probabilities(self.scorer, pairs, rows))
        ranked = []
        for prediction in found:
            new = [replace(one, score=self._score(one, next(scores))) for one in prediction.nbest]
            new.sort(key=lambda one: -(one.score or 0.0))  # of equal scores, the old order
            ranked.append(_with_nbest(prediction, new[:nbest]) if new else prediction)
        return ranked

    def _score(self, one: Prediction, log_probability: float) -> float:
        """Return the mean log probability per token, EOS included, weighted over both models."""
        if not one.token_logprobs and self.weight < 1:
            raise UserError(
                f"--rescore-weight {self.weight:g}: engine {self.engine.name} returns no log "
                "probabilities of tokens",
                help="use --engine torch, or --rescore-weight 1",
            )
        own = sum(one.token_logprobs) if self.weight < 1 else 0.0
        total = (1 - self.weight) * own + self.weight * log_probability
        return total / (len(one.tokens) + 1)


def with_scorer(
    predictor: Predictor, scorer: Predictor, weight: float | None = None
) -> RescoringPredictor:
    """Return the predictor with hypotheses that another model rescores.

    weight: of the other model; None: 1 if it reads the source, otherwise TEXT_WEIGHT.
    Raise UserError if the predictor has no hypotheses, or the other model cannot score them.
    """
    where = f"--rescore {scorer.folder}"
    if "nbest" not in predictor.abilities or not predictor.task.reads_source:
        raise UserError(f"{where}: not supported for task {predictor.task.kind}")
    if not SCORES & scorer.abilities:
        kind = f"{scorer.task.kind} model with output {scorer.config.model.gives}"
        raise UserError(
            f"{where}: expected a model that scores targets token by token, found a {kind}",
            help="use a transducer with an autoregressive decoder, or a causal language model",
        )
    if weight is None:
        weight = 1.0 if scorer.task.reads_source else TEXT_WEIGHT
    if not 0 <= weight <= 1:
        raise UserError(f"--rescore-weight: expected a number from 0 to 1, found {weight:g}")
    return RescoringPredictor(
        predictor.task, predictor.config, predictor.engine, predictor.folder, scorer, weight
    )


def _log_probabilities(scorer: Predictor, pairs: Sequence[Pair], rows: int) -> list[float]:
    """Return the log probability of each target. Equal pairs are scored once."""
    distinct = {(id(pair.source), pair.target): pair for pair in pairs}  # not all are hashable
    found = [row for row, _ in scorer.score(list(distinct.values()), rows)] if pairs else []
    values = [row["log_probability"] if "log_probability" in row else -row["nats"] for row in found]
    known = dict(zip(distinct, values, strict=True))
    return [known[id(pair.source), pair.target] for pair in pairs]


def _with_nbest(prediction: Prediction, nbest: list[Prediction]) -> Prediction:
    """Return the prediction with another n-best list, whose first element is the best."""
    best = nbest[0]
    names = ("text", "score", "token_logprobs", "tokens", "truncated", "value")
    return replace(prediction, nbest=tuple(nbest), **{name: getattr(best, name) for name in names})
