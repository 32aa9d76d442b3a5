"""Base classes of encoder and decoder options, and the check that a frontend fits an encoder.

A frontend turns inputs into vectors. A side of a model is its encoder or its decoder.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.data.corpus.corpora import Corpus
from regard.inputs import check_frontend, default_frontend
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import InputShape


class NetworkOptions(Options):
    """Base class of encoder and decoder options.

    default_layers: number of layers for small data.
    default_warmup: warmup, as a fraction of the run or a number of updates.
    default_lr, default_epochs, default_optimizer: learning rate, epochs, and optimizer with its
    settings, if the network has defaults of its own.
    accepts_any_width: whether the width of the inputs may differ from `width`.
    linear, recurrent, gated: whether the network is linear or recurrent, or has gated cells.
    gives: kind of output of a model with this decoder. aligns: whether training can read its
    attention to the source.
    model_class: class of a model with this decoder; None: EncoderDecoder.
    """

    kind: str
    default_layers: ClassVar[int] = 1
    default_warmup: ClassVar[float] = 0.05
    default_lr: ClassVar[float | None] = None
    default_epochs: ClassVar[float | None] = None
    default_optimizer: ClassVar[dict[str, Any] | None] = None
    accepts_any_width: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False
    gated: ClassVar[bool] = False
    gives: ClassVar[str] = "steps"
    aligns: ClassVar[bool] = False
    model_class: ClassVar[Any] = None

    @classmethod
    def ways(cls, given: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield settings that complete the given ones, and the output of a model with them."""
        yield {}, cls.gives

    def unfit(
        self, corpus: Corpus, positions: np.ndarray, source: str
    ) -> tuple[np.ndarray, str] | None:
        """Return which examples (N,) the network cannot learn, and why; None: it can learn all.

        positions: (N,), vectors that the encoder reads for each source. source: kind of input.
        """
        return None

    @property
    def features(self) -> dict[str, Any]:
        """Return the features to describe besides kind and sizes."""
        return {}

    def describe(self, name: str) -> dict[str, Any]:
        """Return kind, features and sizes of the network. name: `encoder` or `decoder`."""
        known = type(self).model_fields
        names = [str(size) for size in ("layers", "heads", "width") if size in known]
        sizes = {name: getattr(self, name) for name in names}
        found: dict[str, Any] = {"part": name, "kind": self.kind, **self.features, **sizes}
        return {key: value for key, value in found.items() if value}

    @property
    def weights(self) -> int:
        """Return the approximate number of weights that a token passes. Sizes must be set."""
        width: int = getattr(self, "width", None) or 1
        return (getattr(self, "layers", None) or 1) * width**2

    def own_width(self, stats: DataStats) -> int | None:
        """Return the default width if it does not depend on the other side, otherwise None."""
        return None

    def weights_for(self, stats: DataStats) -> int:
        """Return about how many multiply-adds a source token, or an image, needs."""
        return self.weights

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Return the default sizes by option name, for this data and width."""
        return {"width": width, "layers": self.default_layers}

    def default_dropout(self, stats: DataStats, config: Any) -> float:
        """Return the default dropout for the data, the model and the length of the run."""
        return config.model.default_dropout(
            stats, config.training.expected_epochs(stats, config.model)
        )

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield sizes once all kinds are set, and dropout once the number of epochs is known."""
        model, training = config.model, config.training
        if not any(part.is_auto for part in model.sides.values()):
            width = self.own_width(stats) or model.shared_width(self, stats)
            sizes = self.default_sizes(stats, width)
            yield from self.auto_settings(stats.reason, **sizes)
        if model.is_sized and not any(training.basics(stats, config)):
            stepwise = training.optimizer.stepwise
            rate = self.default_dropout(stats, config) if stepwise else 0.0
            yield from self.auto_settings(stats.reason, dropout=rate)


class EncoderOptions(NetworkOptions):
    """Base class of encoder options.

    direct: whether vectors of any width are read without a projection.
    default_pooling: the pooling that suits the encoder best.
    """

    exports: ClassVar[frozenset[str]] = frozenset()
    direct: ClassVar[bool] = False
    default_pooling: ClassVar[str] = "mean"
    kind: str
    width: int | None
    dropout: float | None

    @property
    def scale(self) -> float:
        """Return the factor that embeddings are multiplied by."""
        raise NotImplementedError

    @property
    def uses(self) -> frozenset[str]:
        """Return which of `bias`, `edges` and `grid` of a `Padded` input the encoder uses."""
        return frozenset()

    @property
    def needs(self) -> frozenset[str]:
        """Return which of them the encoder requires, so that a frontend must pass them on."""
        return frozenset()

    @property
    def default_adversarial(self) -> float:
        """Return the default norm of adversarial perturbations of classifiers of few texts."""
        return 0.0

    @property
    def positions_without_context(self) -> frozenset[str]:
        """Return which of the `first` and `last` outputs do not depend on other positions."""
        return frozenset()

    def output(self, inputs: int) -> int:
        """Return the output width for inputs of this width."""
        assert self.width
        return self.width

    def output_for(self, frontend: Frontend) -> int:
        """Return the output width for a frontend."""
        return self.output(frontend.width)

    def build(self, inputs: int | None = None) -> Any:
        """Return the encoder for inputs of this width. Sizes must be set."""
        raise NotImplementedError

    def build_for(self, frontend: Frontend) -> Any:
        """Return the encoder for the outputs of a frontend. Sizes must be set."""
        return self.build(frontend.width)


def incompatibility(frontend: FrontendOptions, encoder: EncoderOptions) -> str | None:
    """Return the reason why an encoder does not support a frontend, or None."""
    lost = frontend.carries - encoder.uses
    missing = encoder.needs - frontend.carries
    if missing:
        return (
            f"model.encoder.kind={encoder.kind} reads {' and '.join(sorted(missing))}, but "
            f"model.frontend.kind={frontend.kind} returns vectors; use another encoder or frontend"
        )
    if not lost:
        return None
    return (
        f"model.encoder.kind={encoder.kind} does not support the {' and '.join(sorted(lost))} of "
        f"model.frontend.kind={frontend.kind}; use another encoder, or another kind of attention"
    )


def build_frontend(
    frontend: FrontendOptions | None,
    encoder: EncoderOptions,
    shape: InputShape,
    width: int | None = None,
    scale: float | None = None,
) -> Frontend:
    """Return the frontend of an encoder. Raise UserError if the encoder does not support it.

    frontend: options, by default those for this kind of input.
    width, scale: width of the vectors and factor of embeddings, by default those of the encoder.
    """
    frontend = frontend or default_frontend(shape.kind, encoder)
    check_frontend(frontend, shape.kind, encoder)
    if problem := incompatibility(frontend, encoder):
        raise UserError(problem)
    assert encoder.width and encoder.dropout is not None
    size = encoder.width if width is None else width
    factor = encoder.scale if scale is None else scale
    return frontend.build(shape, size, factor, encoder.dropout, encoder.direct)
