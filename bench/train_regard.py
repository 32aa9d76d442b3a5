"""regard's own training loop with the step log of the peers; throughput.py starts it.

usage: PYTHONPATH=$REGARD_PEERS python train_regard.py g2p|multi30k DATA STEPLOG
Reads the raw text and trains a model of the peers' shape until SIGTERM. Nothing is validated or
saved, as with the peers.
"""

import sys
from pathlib import Path

from probe import StepLog, threads

from regard.config.load import load_config
from regard.core.memory import tune_malloc
from regard.data.sources.open import DataSpec
from regard.training.loop import train
from regard.training.start import start_run


def shape(layers: int, width: int, feedforward_width: int, heads: int, dropout: float) -> list[str]:
    """The settings of a Transformer encoder and decoder of the same shape."""
    sizes = {
        "kind": "transformer",
        "layers": layers,
        "width": width,
        "feedforward_width": feedforward_width,
        "heads": heads,
        "dropout": dropout,
    }
    sides = ("model.encoder", "model.decoder")
    return [f"{side}.{key}={value}" for side in sides for key, value in sizes.items()]


# `tokens` counts padded tokens of the longer side. 2190 gives batches of 256 examples in the mean,
# which is yoyodyne's batch; 4275 gives 4012 target tokens in the mean, as Eole has.
SETTINGS = {
    "g2p": [
        *shape(layers=4, width=256, feedforward_width=1024, heads=4, dropout=0.1),
        "task.source.tokenizer=char",
        "task.target.tokenizer=whitespace",
        "training.batch_tokens=2190",
    ],
    "multi30k": [
        *shape(layers=4, width=128, feedforward_width=256, heads=4, dropout=0.3),
        "task.source.tokenizer=bpe",
        "task.target.tokenizer=bpe",
        "task.source.vocab_size=8000",
        "task.target.vocab_size=8000",
        "task.shared_vocab=true",
        "training.batch_tokens=4275",
    ],
}
ALWAYS = [
    "objective.label_smoothing=0.1",
    "training.optimizer.kind=adam",
    "training.lr=5e-4",
    "training.schedule.kind=constant",
    "training.schedule.warmup=100",
    "training.steps=1000000",
]


def main() -> None:
    """Trains and logs each update until told to stop."""
    name, data, log_path = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    threads()
    config = load_config(settings=[*SETTINGS[name], *ALWAYS])
    found = config.task.open(*places(name, data))
    run = start_run(Path("out") / f"regard_{name}", config, found.train, found.dev)
    print(f"{run.parameters:,} parameters\n{run.config.dump()}", flush=True)

    tune_malloc()  # as `regard train` does
    log = StepLog(log_path)
    for record in train(run):
        log.add(tokens=record.tokens, examples=record.examples)
        if log.stop:
            print(f"stopped at step {record.step}: loss {record.loss:.3f}", flush=True)
            break


def places(name: str, data: Path) -> tuple[DataSpec, DataSpec]:
    """Training and dev data."""
    if name == "g2p":
        folder = data / "cmudict_g2p"
        return DataSpec(str(folder / "train.tsv.gz")), DataSpec(str(folder / "dev.tsv.gz"))
    folder = data / "multi30k"
    train_part, dev_part = (
        DataSpec(source=str(folder / f"{part}.en.gz"), target=str(folder / f"{part}.de.gz"))
        for part in ("train", "val")
    )
    return train_part, dev_part


if __name__ == "__main__":
    main()
