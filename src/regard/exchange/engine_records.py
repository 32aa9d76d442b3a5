"""Which engine was the fastest for a model on this machine, kept in the cache."""

import platform
from pathlib import Path
from typing import Any

from regard.core.cache import load_metadata, save_metadata
from regard.core.threads import num_threads
from regard.storage.fingerprint import model_digest

CPU_INFO = Path("/proc/cpuinfo")
CPU_FIELDS = ("model name", "flags", "Features", "CPU part")  # Features, CPU part: on ARM


def cpu() -> list[str]:
    """Return the name and the instruction sets of the first processor."""
    if not CPU_INFO.exists():
        return [platform.machine(), platform.processor()]
    lines = CPU_INFO.read_text(encoding="utf-8", errors="replace").split("\n\n")[0].split("\n")
    return [line for line in lines if line.startswith(CPU_FIELDS)]


def load_record(folder: Path) -> dict[str, Any]:
    """Return what `save_record` stored for this model on this machine, or {}."""
    return load_metadata(_name(folder))


def save_record(folder: Path, record: dict[str, Any]) -> None:
    """Store the selected engine of a model for this machine."""
    save_metadata(_name(folder), record)


def _name(folder: Path) -> str:
    return "\n".join(["engine", model_digest(folder), str(num_threads()), *cpu()])
