"""A trained model as two ONNX graphs: one reads the source, one makes a step."""
import numpy as np
from pathlib import Path
import torch
from torch import nn
from regard.export.onnx_graph import Graph
from regard.export.onnx_encoder import encode
from regard.export.onnx_decoder import nodes_of
from regard.export.onnx_layers import embed, head
from regard.models.generator import Generator

@torch.no_grad()
def write_graphs(model: Generator, folder: Path) -> None:
    """Writes encoder.onnx and step.onnx."""
    nodes = nodes_of(model.decoder)
    encoder = Graph("encoder")
    nodes.memory(encode(encoder, model.frontend, model.encoder))
    encoder.save(folder / "encoder.onnx")
    step = Graph("step")
    symbols = step.input("symbols", np.int64, "kB", 1)
    h = nodes.step(step, embed(step, model.target, symbols))
    step.output("logits", head(step, model.head.weight, h), "kB", model.head.weight.shape[0])
    step.save(folder / "step.onnx")
