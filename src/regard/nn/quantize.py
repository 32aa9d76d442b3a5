"""Weight-only int8 quantization of a trained model."""

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.nn.int8 import Int8, Int8Linear, Int8Matrix, Int8Recurrent, Weights


class ModelWeights(Weights):
    """The weights of a model in memory."""

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
    """Raise UserError unless the device is a CPU."""
    if device.type != "cpu":
        raise UserError(
            f"int8: only supported on CPUs; the model is on {device}",
            help="omit quantize, or hide the GPU with CUDA_VISIBLE_DEVICES=",
        )


def round_to_int8(name: str, weight: Tensor) -> Int8Matrix:
    """Return a weight matrix in int8. Raise UserError if a value is not finite."""
    if not bool(weight.isfinite().all()):
        raise UserError(f"int8: {name} contains non-finite weights", help="train the model again")
    return Int8Matrix.of(weight)


@torch.no_grad()
def quantize(model: nn.Module, weights: Weights | None = None) -> nn.Module:
    """Quantize the matrices of a model to int8 in place, and return the model in eval mode.

    Linear and recurrent layers are replaced by int8 layers. A module with a method `int8` is
    replaced by the result of that method. weights: the source of the weights (default: the model).
    """
    weights = weights or ModelWeights(model)
    model = _replaced(model, weights).eval()
    if not weights.known:
        raise UserError("int8: this model has no weight matrices to quantize")
    return model


def _replaced(module: nn.Module, weights: Weights) -> nn.Module:
    """Return the int8 counterpart of a module, or the module with its children replaced."""
    counterpart = _counterpart(module, weights)
    if counterpart is not None:
        return counterpart
    for name, child in list(module.named_children()):
        setattr(module, name, _replaced(child, weights))
    for name, weight in list(module.named_parameters(recurse=False)):
        setattr(module, name, nn.Parameter(weights.tensor(weight), requires_grad=False))
    for name, table in list(module.named_buffers(recurse=False)):
        setattr(module, name, weights.tensor(table))
    return module


def _counterpart(module: nn.Module, weights: Weights) -> Int8 | None:
    """Return the same layer with int8 weights; None if the layer is not quantized."""
    if isinstance(module, nn.Linear):
        # a single row, as in additive attention, is not worth quantizing
        return _linear(module.weight, module.bias, weights) if module.out_features > 1 else None
    if isinstance(module, nn.RNNBase):
        assert module.mode in ("RNN_TANH", "GRU", "LSTM") and module.num_layers == 1
        assert module.bias and module.batch_first and not module.bidirectional
        enter, stay, enter_bias, stay_bias = module.all_weights[0]
        return Int8Recurrent(_linear(enter, enter_bias, weights), _linear(stay, stay_bias, weights))
    int8 = getattr(module, "int8", None)
    return None if int8 is None else int8(weights)


def _linear(weight: Tensor, bias: Tensor | None, weights: Weights) -> Int8Linear:
    return Int8Linear(weights.matrix(weight), None if bias is None else weights.tensor(bias))


def num_parameters(model: nn.Module) -> int:
    """Return the number of weights, int8 included; for count models, the number of counts."""
    trained = sum(weight.numel() for weight in model.parameters())
    rounded = sum(table.numel() for table in model.buffers() if table.dtype == torch.int8)
    return trained + rounded or sum(table.numel() for table in model.buffers())


def size_of(model: nn.Module) -> int:
    """Return the size of all weights in bytes. Tied weights count once."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
