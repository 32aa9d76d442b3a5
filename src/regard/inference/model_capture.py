"""`regard.capture` and `regard.silence`: to look into a model while it runs, and to shut heads."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.suggest import nearest
from regard.nn.ablation import ablating
from regard.nn.capture import Seen
from regard.nn.capture_hooks import recording

Heads = Sequence[int] | Tensor


def capture(model: Any) -> AbstractContextManager[Seen]:
    """Within, all attention, hidden states, gates and inputs of a model are kept.

    model: a module of torch or a fitted estimator. `with regard.capture(model) as seen:`; then
    `seen["decoder.layers.0.cross"]` is the attention (B, H, T, S) of the last call, and so on:
    see `Seen`. Only what this thread computes is seen.
    """
    return recording(module_of(model))


def silence(model: Any, heads: Mapping[str, Heads]) -> AbstractContextManager[None]:
    """Within, these heads of a model find nothing: what they add is zero.

    heads: by the path of their attention a list of their numbers, `{"decoder.layers.0.cross":
    [0, 3]}`, or (B, H) booleans, True where the head is silent in that row.
    """
    module = module_of(model)
    names = dict(module.named_modules())
    known = {name: names[name].heads for name in attentions(module)}
    masks = {}
    for name, chosen in heads.items():
        if name not in known:
            raise UserError(f"silence: {name} is no attention of this model{nearest(name, known)}")
        count = known[name]
        assert isinstance(count, int)
        masks[id(names[name])] = _mask(name, chosen, count)
    return ablating(masks)


def attentions(model: Any) -> list[str]:
    """The paths of all attentions of a model, whose heads can be silenced."""
    return [name for name, part in module_of(model).named_modules() if getattr(part, "heads", None)]


def module_of(model: Any) -> nn.Module:
    """The module that runs a model; engines that are not torch are refused."""
    model = predictor_of(model)
    model = getattr(model, "engine", model)
    inside = getattr(model, "inside", None)
    module = model if inside is None else inside()
    if not hasattr(module, "named_modules"):
        raise UserError(f"capture: a model or a fitted estimator expected, {model!r} found")
    found: nn.Module = module
    return found


def predictor_of(model: Any) -> Any:
    """Return the predictor of an estimator, which must be fitted; of anything else it itself."""
    return model.predictor_ if hasattr(model, "get_params") else model


def _mask(name: str, chosen: Any, count: int) -> Tensor:
    """Silent heads as a mask (1, H) or (B, H)."""
    if isinstance(chosen, Tensor):
        if chosen.dtype != torch.bool or chosen.dim() != 2 or chosen.shape[1] != count:
            raise UserError(
                f"silence: {name}: booleans (rows, {count}) expected, or a list of heads; "
                f"{chosen.dtype} {tuple(chosen.shape)} found"
            )
        return chosen
    mask = torch.zeros(1, count, dtype=torch.bool)
    for head in chosen:
        if isinstance(head, bool) or not isinstance(head, int) or not 0 <= head < count:
            raise UserError(
                f"silence: {name}: it has {count} heads, numbered from 0; head {head!r} is none"
            )
        mask[0, head] = True
    return mask
