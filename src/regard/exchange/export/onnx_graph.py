"""ONNX graphs, written node by node, with their weights in them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.files import write_bytes
from regard.inference.packages import need

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # what belongs to that opset
LARGEST = 1_900_000_000  # bytes of a file; a protocol buffer ends at 2 GiB

Value = str  # the name of a tensor in a graph
Size = int | str  # of an axis: a number, or a name where it changes from call to call


class Graph:
    """A graph that grows: call it with an operator and its inputs, get the name of its output.

    shared: a weight that is used twice is held once; else each use has its own.
    """

    def __init__(self, name: str, shared: bool = True) -> None:
        self.name = name
        self.shared = shared
        self.facts: dict[str, int] = {}  # what an engine must know
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._weights: dict[Value, np.ndarray] = {}
        self._known: dict[Any, Value] = {}
        self._names: dict[Value, str] = {}
        self._count = 0

    def __call__(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """The one output of an operator."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, count: int, *inputs: Value, **attributes: Any) -> list[Value]:
        """The first `count` outputs of an operator."""
        outputs = [self._name(operator) for _ in range(count)]
        node = helper().make_node(operator, list(inputs), outputs, outputs[0], **attributes)
        self.nodes.append(node)
        return outputs

    def input(self, name: str, dtype: type, *shape: Size) -> Value:
        """What comes in."""
        self.inputs.append(self._declared(name, dtype, shape))
        return name

    def output(self, name: str, value: Value, *shape: Size) -> None:
        """What goes out, as float32: the value takes this name when the graph is saved."""
        assert value not in self._names, f"{value} goes out twice"
        self._names[value] = name
        self.outputs.append(self._declared(name, np.float32, shape))

    def weight(self, tensor: Tensor) -> Value:
        """A weight of the model."""
        key = ("weight", tensor.data_ptr(), tensor.shape) if self.shared else None
        return self._held(key, tensor)

    def changed(self, tensor: Tensor) -> Value:
        """A weight that was made for this graph alone."""
        return self._held(None, tensor)

    def numbers(self, *numbers: int) -> Value:
        """Whole numbers, as a vector: axes, sizes, places."""
        return self._held(("numbers", numbers), torch.tensor(numbers, dtype=torch.int64))

    def scalar(self, number: float) -> Value:
        """One float."""
        return self._held(("scalar", number), torch.tensor(number, dtype=torch.float32))

    def whole(self, number: int) -> Value:
        """One whole number."""
        return self._held(("whole", number), torch.tensor(number))

    def cast(self, x: Value, dtype: type) -> Value:
        """x as numbers of another type."""
        return self("Cast", x, to=helper().np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, x: Value, *sizes: int) -> Value:
        """x in another shape; one size may be -1."""
        return self("Reshape", x, self.numbers(*sizes))

    def folded(self, x: Value, memory: Value, *sizes: int) -> Value:
        """x (k*B, any) as (B, k, sizes): the beams of each row of memory (B, ...) together."""
        rows = self("Shape", memory, start=0, end=1)
        return self("Reshape", x, self("Concat", rows, self.numbers(-1, *sizes), axis=0))

    def save(self, path: Path) -> None:
        """Writes the graph; weights that are too large for one file lie beside it."""
        onnx = need("onnx")
        for node in self.nodes:
            for values in (node.input, node.output):
                values[:] = [self._names.get(one, one) for one in values]
        initializers = [
            onnx.numpy_helper.from_array(array, name) for name, array in self._weights.items()
        ]
        graph = helper().make_graph(self.nodes, self.name, self.inputs, self.outputs, initializers)
        opsets = [helper().make_opsetid("", OPSET)]
        model = helper().make_model(
            graph, producer_name="regard", ir_version=IR_VERSION, opset_imports=opsets
        )
        helper().set_model_props(model, {name: str(fact) for name, fact in self.facts.items()})
        if sum(array.nbytes for array in self._weights.values()) > LARGEST:
            beside = path.with_suffix(".data").name
            onnx.save_model(model, path, save_as_external_data=True, location=beside)
        else:
            write_bytes(path, model.SerializeToString())

    def _held(self, key: Any, tensor: Tensor) -> Value:
        if key is not None and key in self._known:
            return self._known[key]
        name = self._name("weight")
        self._weights[name] = tensor.detach().cpu().contiguous().numpy()
        if key is not None:
            self._known[key] = name
        return name

    def _name(self, of: str) -> Value:
        self._count += 1
        return f"{of}_{self._count}"

    def _declared(self, name: str, dtype: type, shape: tuple[Size, ...]) -> Any:
        kind = helper().np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper().make_tensor_value_info(name, kind, list(shape))


def helper() -> Any:
    """The package's tools to write graphs."""
    return need("onnx").helper
