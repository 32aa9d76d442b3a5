"""Files of int8 weights, read one matrix at a time.

Such a file stores each int8 matrix under the name of the weight, and the scales of the matrix under
the same name plus `.scale`.
"""

from collections.abc import Callable
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from regard.core import parallel
from regard.core.files import write_bytes
from regard.core.memory import trim_malloc
from regard.nn.int8 import Int8Matrix, Weights
from regard.nn.quantize import check_cpu, quantize, round_to_int8
from regard.storage.weights import (
    SCALE,
    build_for,
    check_shapes,
    readable_errors,
    unique_tensors,
)

FILE = "model.safetensors"


def weights_file(folder: Path) -> Path:
    """Return the path of the weights file in a run folder or an int8 export."""
    exported = folder / "regard" / FILE
    return exported if exported.is_file() else folder / FILE


class FileWeights(Weights):
    """The weights of a model in an fp32 or int8 file, read one tensor at a time."""

    def __init__(self, model: nn.Module, path: Path) -> None:
        super().__init__()
        self.path = path
        self.matrices: dict[str, Int8Matrix] = {}  # matrices read so far, by name
        self.others: dict[str, Tensor] = {}
        self._names = {id(tensor): name for name, tensor in unique_tensors(model).items()}
        with readable_errors(path), safe_open(path, framework="pt") as file:
            shapes = {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118
        self._scaled = {name for name in shapes if name + SCALE in shapes}
        scales = {name + SCALE for name in self._scaled}
        check_shapes(model, {n: shape for n, shape in shapes.items() if n not in scales}, path)

    def read_matrix(self, weight: Tensor) -> Int8Matrix:
        """Return a weight matrix in int8; quantize it if the file stores fp32."""
        name = self._names[id(weight)]
        if name in self._scaled:
            found = Int8Matrix(self._read(name).clone(), self._read(name + SCALE).clone())
        else:
            found = round_to_int8(name, self._read(name))
        self.matrices[name] = found
        return found

    def tensor(self, weight: Tensor) -> Tensor:
        """Return a weight or buffer that is not quantized."""
        name = self._names[id(weight)]
        self.others[name] = self._read(name).clone()
        return self.others[name]

    def _read(self, name: str) -> Tensor:
        """Return a tensor that is memory-mapped from the file.

        The file is reopened each time. Otherwise all pages read so far would count as used memory.
        """
        with readable_errors(self.path), safe_open(self.path, framework="pt") as file:
            found: Tensor = file.get_tensor(name)
            return found


def load_int8(build: Callable[[], nn.Module], path: Path) -> nn.Module:
    """Return the model that `build` creates, with int8 weights from a file."""
    check_cpu(parallel.device())
    model, _ = _read(build, path)
    trim_malloc()
    return model


def save_int8(build: Callable[[], nn.Module], path: Path, out: Path) -> None:
    """Convert the weights in the file `path` to int8. build: creates the model of these weights."""
    _, stored = _read(build, path)
    tensors = dict(stored.others)
    for name, matrix in stored.matrices.items():
        tensors |= {name: matrix.values, name + SCALE: matrix.scale}
    write_bytes(out, save(tensors))


def _read(build: Callable[[], nn.Module], path: Path) -> tuple[nn.Module, FileWeights]:
    """Return the int8 model and the weights that were read from the file."""
    model = build_for(build, path)  # its random weights are replaced and freed one by one
    stored = FileWeights(model, path)
    return quantize(model, stored), stored
