"""ONNX graphs, written node by node, with embedded weights."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.core.files import write_bytes
from regard.inference.packages import import_package

OPSET = 20  # the first with Gelu
IR_VERSION = 9  # the IR version of this opset
MAX_FILE_BYTES = 1_900_000_000  # protocol buffers are limited to 2 GiB

Value = str  # the name of a tensor in a graph
Size = int | str  # the size of an axis: a number, or a name if it is dynamic


class Graph:
    """An ONNX graph under construction. Calling it adds an operator and returns the output name.

    shared: store a weight that is used twice only once.
    """

    def __init__(self, name: str, shared: bool = True) -> None:
        self.name = name
        self.shared = shared
        self.metadata: dict[str, int] = {}  # read by the engine
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self._weights: dict[Value, np.ndarray] = {}
        self._known: dict[Any, Value] = {}
        self._names: dict[Value, str] = {}
        self._count = 0

    def __call__(self, operator: str, *inputs: Value, **attributes: Any) -> Value:
        """Add an operator; return the name of its output."""
        return self.several(operator, 1, *inputs, **attributes)[0]

    def several(self, operator: str, count: int, *inputs: Value, **attributes: Any) -> list[Value]:
        """Add an operator; return the names of its first `count` outputs."""
        outputs = [self._name(operator) for _ in range(count)]
        node = helper().make_node(operator, list(inputs), outputs, outputs[0], **attributes)
        self.nodes.append(node)
        return outputs

    def input(self, name: str, dtype: type, *shape: Size) -> Value:
        """Declare an input of the graph; return its name."""
        self.inputs.append(self._declared(name, dtype, shape))
        return name

    def output(self, name: str, value: Value, *shape: Size) -> None:
        """Declare a float32 output of the graph. `save` renames the value to `name`."""
        assert value not in self._names, f"{value} is an output twice"
        self._names[value] = name
        self.outputs.append(self._declared(name, np.float32, shape))

    def weight(self, tensor: Tensor) -> Value:
        """Add a weight of the model; return its name."""
        key = ("weight", tensor.data_ptr(), tensor.shape) if self.shared else None
        return self._store(key, tensor)

    def constant(self, tensor: Tensor) -> Value:
        """Add a tensor that is computed for this graph; return its name."""
        return self._store(None, tensor)

    def numbers(self, *numbers: int) -> Value:
        """Add an integer vector, such as axes, sizes or indices; return its name."""
        return self._store(("numbers", numbers), torch.tensor(numbers, dtype=torch.int64))

    def scalar(self, number: float) -> Value:
        """Add a float scalar; return its name."""
        return self._store(("scalar", number), torch.tensor(number, dtype=torch.float32))

    def integer(self, number: int) -> Value:
        """Add an integer scalar; return its name."""
        return self._store(("integer", number), torch.tensor(number))

    def cast(self, x: Value, dtype: type) -> Value:
        """Cast x to another type."""
        return self("Cast", x, to=helper().np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def reshape(self, x: Value, *sizes: int) -> Value:
        """Reshape x; one size may be -1."""
        return self("Reshape", x, self.numbers(*sizes))

    def folded(self, x: Value, memory: Value, *sizes: int) -> Value:
        """Reshape x (k*B, any) to (B, k, *sizes). memory: any value (B, ...), to get B."""
        rows = self("Shape", memory, start=0, end=1)
        return self("Reshape", x, self("Concat", rows, self.numbers(-1, *sizes), axis=0))

    def save(self, path: Path) -> None:
        """Write the graph. Weights that are too large for one file become external data."""
        onnx = import_package("onnx")
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
        helper().set_model_props(model, {name: str(value) for name, value in self.metadata.items()})
        if sum(array.nbytes for array in self._weights.values()) > MAX_FILE_BYTES:
            location = path.with_suffix(".data").name
            onnx.save_model(model, path, save_as_external_data=True, location=location)
        else:
            write_bytes(path, model.SerializeToString())

    def _store(self, key: Any, tensor: Tensor) -> Value:
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
    """Return onnx.helper."""
    return import_package("onnx").helper
