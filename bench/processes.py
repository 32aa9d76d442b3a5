"""The losses of 50 updates by one process with four batches each, and by two with two each.

usage: python bench/processes.py
Trains a small Transformer with dropout on `reverse`: alone, with DDP and with FSDP2 (two gloo
processes on this machine). Ends with 1 where a loss differs by more than 1e-5.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from regard.config.load import load_config
from regard.core import parallel
from regard.data.sources.builtin import builtin
from regard.training.loop import train
from regard.training.start import start_run

STEPS, LIMIT = 50, 1e-5
SETTINGS = [
    *("model.encoder.kind=transformer", "model.encoder.width=64", "model.encoder.layers=2"),
    *("model.encoder.dropout=0.1", "model.decoder.dropout=0.1", "training.batch_tokens=400"),
    f"training.steps={STEPS}",
]


def losses(kind: str, out: Path) -> None:
    """Writes the loss of each update; what torchrun starts."""
    with parallel.process_group():
        each = [
            f"training.parallel={kind}",
            f"training.accumulation_steps={4 // parallel.world_size()}",
        ]
        data = builtin("reverse")
        config = load_config(settings=[*SETTINGS, *each])
        run = start_run(Path(), config, data.train, data.dev)
        found = [record.loss for record in train(run)]
        if parallel.is_main_process():
            out.write_text(json.dumps(found))


def trained(kind: str, processes: int) -> list[float]:
    """Return the losses of a run with this many processes."""
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "losses.json"
        places = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run([*start, __file__, kind, str(out)], env=places, check=True)
        found: list[float] = json.loads(out.read_text())
    return found


def main() -> int:
    """Compares; 1 where they differ."""
    alone = trained("ddp", 1)
    worst = {}
    for kind in ("ddp", "fsdp"):
        both = trained(kind, 2)
        assert len(both) == len(alone) == STEPS
        worst[kind] = max(abs(one - other) for one, other in zip(alone, both, strict=True))
        print(f"1 x 4 and 2 x 2, {kind}: {STEPS} losses differ by at most {worst[kind]:.1e}")
    print(f"the loss went from {alone[0]:.3f} to {alone[-1]:.3f}")
    return int(max(worst.values()) > LIMIT)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        losses(sys.argv[1], Path(sys.argv[2]))
    else:
        sys.exit(main())
