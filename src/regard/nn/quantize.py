"""A trained model with its weights in int8."""

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.nn.int8 import Int8, Int8Linear, Int8Matrix, Int8Recurrent, Weights


class ModelWeights(Weights):
    """The numbers that a model has itself."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.names = {id(weight): name for name, weight in model.named_parameters()}
        for weight in model.parameters():
            check_cpu(weight.device)

    def read_matrix(self, weight: Tensor) -> Int8Matrix:
        return round_to_int8(self.names[id(weight)], weight)

    def tensor(self, weight: Tensor) -> Tensor:
        return weight.detach()


def check_cpu(device: torch.device) -> None:
    """No int8 but on a CPU."""
    if device.type != "cpu":
        raise UserError(
            f"int8: weights in int8 are for CPUs, and the model is on {device}; leave quantize "
            "out, or hide the GPU: CUDA_VISIBLE_DEVICES= before the command"
        )


def round_to_int8(name: str, weight: Tensor) -> Int8Matrix:
    """A weight in int8; refused where no number stands for it."""
    if not bool(weight.isfinite().all()):
        raise UserError(f"int8: {name} holds numbers that are not finite; train the model anew")
    return Int8Matrix.of(weight)


@torch.no_grad()
def quantize(model: nn.Module, weights: Weights | None = None) -> nn.Module:
    """The model with its matrices in int8, changed in place; in eval mode for good.

    Linear and recurrent layers are replaced by twins, and so is every module with a method `int8`,
    which gives its own twin. weights: where the numbers are, if not in the model.
    """
    weights = weights or ModelWeights(model)
    model = _replaced(model, weights).eval()
    if not weights.known:
        raise UserError("int8: this model has no weight matrices, so nothing would be gained")
    return model


def _replaced(module: nn.Module, weights: Weights) -> nn.Module:
    """The twin of a module with int8 weights, or the module with its children replaced."""
    twin = _twin(module, weights)
    if twin is not None:
        return twin
    for name, child in list(module.named_children()):
        setattr(module, name, _replaced(child, weights))
    for name, weight in list(module.named_parameters(recurse=False)):
        setattr(module, name, nn.Parameter(weights.tensor(weight), requires_grad=False))
    for name, table in list(module.named_buffers(recurse=False)):
        setattr(module, name, weights.tensor(table))
    return module


def _twin(module: nn.Module, weights: Weights) -> Int8 | None:
    """The same layer with int8 weights; None where it has no matrix."""
    if isinstance(module, nn.Linear):
        # one row is a vector, as the one that weighs in additive attention: nothing to gain
        return _linear(module.weight, module.bias, weights) if module.out_features > 1 else None
    if isinstance(module, nn.RNNBase):
        assert module.mode in ("RNN_TANH", "GRU", "LSTM") and module.num_layers == 1
        assert module.bias and module.batch_first and not module.bidirectional
        enter, stay, enter_bias, stay_bias = module.all_weights[0]
        return Int8Recurrent(_linear(enter, enter_bias, weights), _linear(stay, stay_bias, weights))
    own = getattr(module, "int8", None)
    return None if own is None else own(weights)


def _linear(weight: Tensor, bias: Tensor | None, weights: Weights) -> Int8Linear:
    return Int8Linear(weights.matrix(weight), None if bias is None else weights.tensor(bias))


def num_parameters(model: nn.Module) -> int:
    """Return the numbers that a model has learned: weights, also those in int8, or else counts."""
    trained = sum(weight.numel() for weight in model.parameters())
    rounded = sum(table.numel() for table in model.buffers() if table.dtype == torch.int8)
    return trained + rounded or sum(table.numel() for table in model.buffers())


def size_of(model: nn.Module) -> int:
    """The bytes of all weights, tied ones once."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
