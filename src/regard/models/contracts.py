"""What encoders and decoders promise, and how they get the frontend that feeds them."""

from collections.abc import Iterator
from typing import Any, ClassVar

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import AutoSetting, Options
from regard.inputs import check_frontend, usual_frontend
from regard.inputs.frontend import Frontend, FrontendOptions
from regard.inputs.input import InputShape


class NetworkOptions(Options):
    """What the options of all encoders and decoders can do. usual_layers: how many it has if the
    data is small; any_inputs: whether it reads vectors of another width than its own; linear,
    recurrent, gated: whether it, or each of its cells, is; of decoders gives: what their model
    gives; joins: the class of that model, if it is not a EncoderDecoder."""

    kind: str
    usual_layers: ClassVar[int] = 1
    any_inputs: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    recurrent: ClassVar[bool] = False
    gated: ClassVar[bool] = False
    gives: ClassVar[str] = "steps"
    joins: ClassVar[Any] = None

    @property
    def features(self) -> dict[str, Any]:
        """What it is besides its kind and sizes."""
        return {}

    def describe(self, name: str) -> dict[str, Any]:
        """Return its kind, features and sizes, as far as it has them. name: of the part."""
        sizes = {size: getattr(self, size, None) for size in ("layers", "heads", "width")}
        found = {"part": name, "kind": self.kind, **self.features, **sizes}
        return {key: value for key, value in found.items() if value}

    def usual_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Sizes by their names that suit the data, and vectors of this width."""
        return {"width": width, "layers": self.usual_layers}

    def usual_dropout(self, stats: DataStats, config: Any) -> float:
        """The dropout that suits the data, the model and the length of the run."""
        return config.model.usual_dropout(stats, config.training.passes(stats, config.model))

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Sizes once all kinds are known, dropout once the length of the run is."""
        model, training = config.model, config.training
        if not any(part.is_auto for part in model.sides.values()):
            sizes = self.usual_sizes(stats, model.width_of(self, stats))
            yield from self.auto_settings(stats.reason, **sizes)
        if model.is_sized and not any(training.basics(stats, config)):
            stepwise = training.optimizer.stepwise
            rate = self.usual_dropout(stats, config) if stepwise else 0.0
            yield from self.auto_settings(stats.reason, dropout=rate)


class EncoderOptions(NetworkOptions):
    """What the options of all encoders can do. direct: whether it takes vectors of any width as
    they are; usual_pool: how its vectors best become one."""

    exports: ClassVar[frozenset[str]] = frozenset()
    direct: ClassVar[bool] = False
    usual_pool: ClassVar[str] = "mean"
    kind: str
    width: int | None
    dropout: float | None

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by."""
        raise NotImplementedError

    @property
    def uses(self) -> frozenset[str]:
        """What it makes use of beside vectors: of `bias` and `edges`."""
        return frozenset()

    @property
    def blind(self) -> frozenset[str]:
        """Which of the `first` and the `last` position know nothing of the others."""
        return frozenset()

    def output(self, inputs: int) -> int:
        """The width of what it gives for vectors of this width."""
        assert self.width
        return self.width


def what_is_lost(frontend: FrontendOptions, encoder: EncoderOptions) -> str | None:
    """Why an encoder cannot be used with a frontend: what that gives, and it cannot use."""
    lost = frontend.carries - encoder.uses
    if not lost:
        return None
    return (
        f"model.encoder.kind={encoder.kind} cannot use the {' and '.join(sorted(lost))} that "
        f"model.frontend.kind={frontend.kind} gives; another encoder, or another kind of "
        "attention in it, is needed"
    )


def build_frontend(
    frontend: FrontendOptions | None,
    encoder: EncoderOptions,
    shape: InputShape,
    width: int | None = None,
    scale: float | None = None,
) -> Frontend:
    """The frontend of an encoder, None: the usual one for these sources; pairs that would lose
    something are refused by name.

    width, scale: of its vectors, where they are not those of the encoder.
    """
    frontend = frontend or usual_frontend(shape.kind)
    check_frontend(frontend, shape.kind)
    if refusal := what_is_lost(frontend, encoder):
        raise UserError(refusal)
    assert encoder.width and encoder.dropout is not None
    size = encoder.width if width is None else width
    factor = encoder.scale if scale is None else scale
    return frontend.build(shape, size, factor, encoder.dropout, encoder.direct)
