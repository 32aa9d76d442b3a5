"""The onnx engine: runs the encoder graph and the step graph of a model in onnxruntime.

Shapes: B sources, k beams per source, H heads, S source length, T input tokens, V vocabulary size.
"""

import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.inference.engine import Engine
from regard.inference.packages import import_package
from regard.nn.capture_hooks import active_recorder, record_attention
from regard.nn.positions.learned import too_long
from regard.search.search import Search, SearchRequest, SearchResult


class OnnxEngine(Engine):
    """Engine that runs onnxruntime. It is also the stepper, so every search works."""

    name = "onnx"
    fork_safe = True  # workers use the one-thread sessions, which are opened before the fork

    def __init__(self, folder: Path) -> None:
        """Open the graphs encoder.onnx and step.onnx in a folder."""
        self.folder = folder
        self._sessions: dict[tuple[str, int], Any] = {}
        self._lock = threading.Lock()
        graphs = {name: self._session(name, 1) for name in ("encoder", "step")}
        self._outputs = {
            name: [value.name for value in graph.get_outputs()] for name, graph in graphs.items()
        }
        self.max_source_length, self.max_target_length = map(_max_length, graphs.values())
        inputs = graphs["step"].get_inputs()
        self._empty = {  # shapes of the empty state before the first step, without batch axis
            value.name: [size if isinstance(size, int) else 0 for size in value.shape[1:]]
            for value in inputs
            if value.name.startswith("past/") and value.name not in self._outputs["encoder"]
        }
        self._counts = any(value.name == "at" for value in inputs)

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return search.run(self, self.fit_request(request))

    def stepper(self) -> "OnnxEngine":
        return self

    def start(self, source: Padded) -> State:
        """Run the encoder; return the decoder state before the first token."""
        self.check(source.data.shape[1])
        outputs = self._run("encoder", {"tokens": source.data, "mask": source.mask})
        memory = {name: value for name, value in outputs.items() if name.startswith("memory/")}
        past = {name: value for name, value in outputs.items() if name.startswith("past/")}
        for name, shape in self._empty.items():
            past[name] = torch.zeros(len(source.data), *shape)
        return State(memory, {"at": 0, "tensors": past})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits (k*B, T, V) after each token (k*B, T), and the next state."""
        at, past = state.past["at"], state.past["tensors"]
        if self.max_target_length is not None and at + tokens.shape[1] > self.max_target_length:
            raise too_long(at + tokens.shape[1], self.max_target_length, "model.decoder.positions")
        past = {name: _rows(value, len(tokens)) for name, value in past.items()}
        logits, weights = [], []
        for token in tokens.split(1, 1):
            position = {"at": torch.tensor([at])} if self._counts else {}
            outputs = self._run("step", {"tokens": token, **position, **state.memory, **past})
            logits.append(outputs["logits"].unsqueeze(1))
            weights += [outputs["attention"]] if "attention" in outputs else []
            past = {name: outputs[f"next/{name.removeprefix('past/')}"] for name in past}
            at += 1
        if weights:
            record_attention(
                None, lambda: torch.stack([_unfold(one) for one in weights], 2), at="source"
            )
        joined = logits[0] if len(logits) == 1 else torch.cat(logits, 1)
        return joined, State(state.memory, {"at": at, "tensors": past})

    def _run(self, graph: str, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Run a graph; return its outputs by name, without copying arrays."""
        session = self._session(graph, torch.get_num_threads())
        arrays = {name: value.contiguous().numpy() for name, value in inputs.items()}
        names = self._outputs[graph]
        if active_recorder() is None:
            names = [name for name in names if name != "attention"]
        found = session.run(names, arrays)
        return {name: torch.from_numpy(value) for name, value in zip(names, found, strict=True)}

    def _session(self, graph: str, threads: int) -> Any:
        """Return the onnxruntime session of a graph for this number of threads, opened once."""
        key = graph, threads
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = open_session(self.folder / f"{graph}.onnx", threads)
        return self._sessions[key]


def open_session(path: Path, threads: int) -> Any:
    """Open an onnxruntime session for a graph file. Raise UserError if this fails."""
    onnxruntime = import_package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle threads sleep instead of spinning: between steps, torch needs the cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3  # log errors only, which are also raised as exceptions
    if not path.exists():
        raise UserError(f"{path}: no such file", help="the export is incomplete; export again")
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has many exception classes
        raise UserError(f"{path}: corrupted ({error})", help="export again") from error


def _max_length(session: Any) -> int | None:
    """Return the maximum input length of a graph in tokens; None: unlimited."""
    found = session.get_modelmeta().custom_metadata_map.get("max_length")
    return None if found is None else int(found)


def _rows(value: Tensor, rows: int) -> Tensor:
    """Return the state with this many rows. At the first step, repeat it for each beam."""
    return value if len(value) == rows else value.repeat_interleave(rows // len(value), 0)


def _unfold(weights: Tensor) -> Tensor:
    """Return attention weights (B, H, k, S), or (B, k, S), as (k*B, H, S)."""
    weights = weights if weights.dim() == 4 else weights.unsqueeze(1)
    return weights.transpose(1, 2).flatten(0, 1)
