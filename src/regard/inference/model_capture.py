"""The functions `regard.capture`, which records model internals, and `regard.ablate`."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.suggest import suggest_names
from regard.nn.ablation import ablating
from regard.nn.capture import Capture
from regard.nn.capture_hooks import recording

Heads = Sequence[int] | Tensor


def capture(model: Any) -> AbstractContextManager[Capture]:
    """Record attention, hidden states, gates and inputs of a model inside the block.

    model: a torch module or a fitted estimator. After `with regard.capture(model) as captured:`,
    `captured["decoder.layers.0.cross"]` is the attention (B, H, T, S) of the last call, and
    `captured.calls[...]` of all calls. `captured.hidden`, `captured.gates` and `captured.inputs`
    have the other values by name. After `predict`, each row is a beam of the search, and the last
    call is its last token. `log_likelihoods` computes all tokens of an output in one call. See
    `Capture`. Only computations of the current thread are recorded.
    """
    return recording(module_of(model))


def ablate(model: Any, heads: Mapping[str, Heads]) -> AbstractContextManager[None]:
    """Zero the output of these attention heads inside the block (head ablation, knock-out).

    model: a torch module or a fitted estimator. heads: maps the name of an attention module to a
    list of head indices, such as `{"decoder.layers.0.cross": [0, 3]}`, or to a boolean mask
    (B, H), True to ablate.
    """
    module = module_of(model)
    modules = dict(module.named_modules())
    num_heads = {name: modules[name].heads for name in attention_modules(module)}
    masks = {}
    for name, selected in heads.items():
        if name not in num_heads:
            raise UserError(
                f"ablate: {name} is not an attention module of this model"
                f"{suggest_names(name, num_heads)}"
            )
        count = num_heads[name]
        assert isinstance(count, int)
        masks[id(modules[name])] = _mask(name, selected, count)
    return ablating(masks)


def attention_modules(model: Any) -> list[str]:
    """Return the names of all attention modules, whose heads `ablate` can zero.

    model: a torch module or a fitted estimator.
    """
    modules = module_of(model).named_modules()
    return [name for name, module in modules if getattr(module, "heads", None)]


def module_of(model: Any) -> nn.Module:
    """Return the torch module of a module, predictor or fitted estimator.

    Raise UserError if the engine is not torch.
    """
    model = predictor_of(model)
    model = getattr(model, "engine", model)
    get_module = getattr(model, "torch_module", None)
    module: Any = model if get_module is None else get_module()
    if not hasattr(module, "named_modules"):
        raise UserError(f"capture: expected a torch module or a fitted estimator, found {model!r}")
    return cast(nn.Module, module)


def predictor_of(model: Any) -> Any:
    """Return the predictor of a fitted estimator, and other objects unchanged."""
    return model.predictor_ if hasattr(model, "get_params") else model


def _mask(name: str, selected: Any, count: int) -> Tensor:
    """Return the selected heads as a boolean mask (1, H) or (B, H). count: number of heads."""
    if isinstance(selected, Tensor):
        if selected.dtype != torch.bool or selected.dim() != 2 or selected.shape[1] != count:
            raise UserError(
                f"ablate: {name}: expected head indices, or booleans of shape (rows, {count}), "
                f"found {selected.dtype} {tuple(selected.shape)}"
            )
        return selected
    mask = torch.zeros(1, count, dtype=torch.bool)
    for head in selected:
        if isinstance(head, bool) or not isinstance(head, int) or not 0 <= head < count:
            raise UserError(f"ablate: {name}: expected heads from 0 to {count - 1}, found {head!r}")
        mask[0, head] = True
    return mask
