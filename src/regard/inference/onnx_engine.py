"""The engine onnx: the model's two graphs in onnxruntime, our search around them.

B rows of memory, k beams a row, S source length, T tokens fed, V vocabulary.
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
from regard.inference.packages import need
from regard.nn.capture_hooks import active_recorder, record_attention
from regard.nn.positions import too_long
from regard.search.search import Search, SearchRequest, SearchResult


class OnnxEngine(Engine):
    """Decodes with onnxruntime. It steps as a EncoderDecoder does, so every search works."""

    name = "onnx"
    forks = True  # a copy works with one thread, and that graph is open before

    def __init__(self, folder: Path) -> None:
        """folder: with the graphs."""
        self.folder = folder
        self._sessions: dict[tuple[str, int], Any] = {}
        self._lock = threading.Lock()
        graphs = {name: self._session(name, 1) for name in ("encoder", "step")}
        self._outputs = {
            name: [value.name for value in graph.get_outputs()] for name, graph in graphs.items()
        }
        self.source_places, self.target_places = map(_places, graphs.values())
        inputs = graphs["step"].get_inputs()
        self._empty = {  # what is empty or zero before the first step, without its rows
            value.name: [size if isinstance(size, int) else 0 for size in value.shape[1:]]
            for value in inputs
            if value.name.startswith("past/") and value.name not in self._outputs["encoder"]
        }
        self._counts = any(value.name == "at" for value in inputs)

    def run(self, search: Search, request: SearchRequest) -> list[SearchResult]:
        return search.run(self, self.own(request))

    def stepper(self) -> "OnnxEngine":
        return self

    def start(self, source: Padded) -> State:
        """The state before the first token."""
        self.check(source.data.shape[1])
        given = self._run("encoder", {"tokens": source.data, "mask": source.mask})
        memory = {name: value for name, value in given.items() if name.startswith("memory/")}
        past = {name: value for name, value in given.items() if name.startswith("past/")}
        for name, shape in self._empty.items():
            past[name] = torch.zeros(len(source.data), *shape)
        return State(memory, {"at": 0, "tensors": past})

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Tokens (k*B, T) to the logits (k*B, T, V) of what follows each, and the new state."""
        at, past = state.past["at"], state.past["tensors"]
        if self.target_places is not None and at + tokens.shape[1] > self.target_places:
            raise too_long(at + tokens.shape[1], self.target_places, "model.decoder.positions")
        past = {name: _rows(value, len(tokens)) for name, value in past.items()}
        logits, weights = [], []
        for token in tokens.split(1, 1):
            place = {"at": torch.tensor([at])} if self._counts else {}
            given = self._run("step", {"tokens": token, **place, **state.memory, **past})
            logits.append(given["logits"].unsqueeze(1))
            weights += [given["attention"]] if "attention" in given else []
            past = {name: given[f"next/{name.removeprefix('past/')}"] for name in past}
            at += 1
        if weights:
            record_attention(
                None, lambda: torch.stack([_unfold(one) for one in weights], 2), at="source"
            )
        joined = logits[0] if len(logits) == 1 else torch.cat(logits, 1)
        return joined, State(state.memory, {"at": at, "tensors": past})

    def _run(self, graph: str, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The outputs of a graph by name; the numbers are not copied on the way."""
        session = self._session(graph, torch.get_num_threads())
        given = {name: value.contiguous().numpy() for name, value in inputs.items()}
        names = self._outputs[graph]
        if active_recorder() is None:
            names = [name for name in names if name != "attention"]
        found = session.run(names, given)
        return {name: torch.from_numpy(value) for name, value in zip(names, found, strict=True)}

    def _session(self, graph: str, threads: int) -> Any:
        """The graph with so many threads: as many as torch has, one where others work beside us."""
        key = graph, threads
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = open_session(self.folder / f"{graph}.onnx", threads)
        return self._sessions[key]


def open_session(path: Path, threads: int) -> Any:
    """A graph, ready to run."""
    onnxruntime = need("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that wait sleep: torch, whose turn it is between the steps, needs the processors.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3  # errors, which come as exceptions as well
    if not path.exists():
        raise UserError(f"{path}: no such file; the exported folder is not complete")
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has a class for each way to be broken
        raise UserError(f"{path}: damaged, export the model anew ({error})") from error


def _places(session: Any) -> int | None:
    """The most tokens that a graph can read; None: any number."""
    found = session.get_modelmeta().custom_metadata_map.get("max_length")
    return None if found is None else int(found)


def _rows(value: Tensor, rows: int) -> Tensor:
    """The past for so many rows: at the first step each row of memory may serve several."""
    return value if len(value) == rows else value.repeat_interleave(rows // len(value), 0)


def _unfold(weights: Tensor) -> Tensor:
    """Attention (B, H, k, S), or (B, k, S), as (k*B, H, S)."""
    weights = weights if weights.dim() == 4 else weights.unsqueeze(1)
    return weights.transpose(1, 2).flatten(0, 1)
