"""Which engine was the fastest for a model on this machine, kept in the cache.

This module does not import torch.
"""

import os
import platform
from pathlib import Path
from typing import NamedTuple

from regard.core.cache import load_metadata, save_metadata
from regard.storage.fingerprint import model_digest

CPU_INFO = Path("/proc/cpuinfo")
CPU_FIELDS = ("model name", "flags", "Features", "CPU part")  # Features, CPU part: on ARM


def cpu() -> list[str]:
    """Return the name and the instruction sets of the first processor."""
    if not CPU_INFO.exists():
        return [platform.machine(), platform.processor()]
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").split("\n\n")[0].split("\n")
    return [line for line in lines if line.startswith(CPU_FIELDS)]


class EngineChoice(NamedTuple):
    """The name of an engine, and the type of its weights if they are quantized."""

    name: str
    quantize: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.quantize or ''}".strip()


class EngineRecord(NamedTuple):
    """The engine that was selected for a model on this machine. why: the measured speeds."""

    choice: EngineChoice
    why: str

    def __str__(self) -> str:
        return f"engine auto: using {self.choice}, selected earlier on this machine: {self.why}"


def load_record(folder: Path) -> EngineRecord | None:
    """Return what `save_record` stored for this model on this machine, or None."""
    match load_metadata(_name(folder)):
        case {"choice": [str() as name, str() | None as quantize], "why": str() as why}:
            return EngineRecord(EngineChoice(name, quantize), why)
    return None


def save_record(folder: Path, record: EngineRecord) -> None:
    """Store the selected engine of a model for this machine."""
    save_metadata(_name(folder), {"choice": [*record.choice], "why": record.why})


def _name(folder: Path) -> str:
    return "\n".join(["engine", model_digest(folder), str(os.cpu_count()), *cpu()])
