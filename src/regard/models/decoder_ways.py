"""What the models with a decoder can give: it depends on the kind of decoder."""

from collections.abc import Iterator
from typing import Any

from regard.core.options import Options, allows, kinds_of


def decoder_ways(
    model: type[Options], given: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield settings that complete the given ones of a model, and its output with them.

    model: class of its options, with the field `decoder`.
    """
    own = given.get("decoder") or {}
    if isinstance(own, Options):
        yield {}, own.gives  # type: ignore[attr-defined]
        return
    own = {"kind": own} if isinstance(own, str) else own
    if not isinstance(own, dict):
        return
    kinds: dict[str, Any] = kinds_of(model.model_fields["decoder"].annotation)
    for kind, part in kinds.items():
        fits = set(own) <= set(part.model_fields) and ("kind" in own or allows(part, own))
        if fits and own.get("kind", kind) == kind:
            for settings, gives in part.ways(own):
                chosen = {} if part.is_auto else {"kind": kind}
                yield {f"decoder.{key}": v for key, v in (chosen | settings).items()}, gives
