"""Engines: what runs a trained transducer."""

from regard.engines.base import Engine
from regard.engines.torch_engine import TorchEngine

__all__ = ["Engine", "TorchEngine"]
