"""The half of the decoding bench on CMUdict: an LSTM and a Transformer compared with yoyodyne's.

Equal sizes: the LSTM reads with 512 units from each end and writes with 512, embeddings 256, one
layer (7.1 million parameters, yoyodyne 7.7); the Transformer has 4 + 4 layers, width 256, inner
1024, 4 heads. yoyodyne's Transformer gets our weights. Its LSTM attends in another way and has
random weights; its outputs are made to end at the length of ours: see decoding_yoyodyne.py.
"""

import os
import random
import sys
from pathlib import Path

from decoding_prepare import read, train, transformer, write
from interleaved import KEEP, Setting, System
from surroundings import BENCH, REPOSITORY

SETTINGS = [Setting(1, 32, 2000), Setting(5, 32, 640)]
LONGEST = 32  # tokens of an output
TOKENS = ["task.source.tokenizer=char", "task.target.tokenizer=whitespace"]
LSTM = [
    *("model.encoder.kind=recurrent", "model.encoder.cell=lstm", "model.encoder.layers=1"),
    *("model.encoder.width=1024", "model.decoder.kind=recurrent", "model.decoder.cell=lstm"),
    *("model.decoder.layers=1", "model.decoder.width=512", "model.embedding_width=256"),
]
KINDS = {"lstm": LSTM, "transformer": transformer(4, 256, 1024, 4)}


def train_ours(models: Path, data: Path) -> bool:
    """Trains our models where they are missing; False after a message if that failed."""
    place = data / "cmudict_g2p"
    files = [str(place / "train.tsv.gz"), "--dev", str(place / "dev.tsv.gz")]
    return all(
        train(models / f"g2p_{kind}", files, "5m", [*TOKENS, *settings])
        for kind, settings in KINDS.items()
    )


def systems(models: Path, work: Path, data: Path) -> list[System] | None:
    """Ours and yoyodyne's, of both kinds; None after a message if a model cannot be trained."""
    if not train_ours(models, data):
        return None
    words = sorted({line.split("\t")[0] for line in read(data / "cmudict_g2p" / "dev.tsv.gz")})
    random.Random(1).shuffle(words)
    write(work / "words.txt", words)
    source = {"PYTHONPATH": str(REPOSITORY / "src")}
    found = [
        _system(f"ours-{kind}", "ours", sys.executable, models / f"g2p_{kind}", work, source)
        for kind in KINDS
    ]
    python = Path(os.environ.get("VENV_YOYO", ""), "bin", "python")
    if "VENV_YOYO" not in os.environ:
        print("yoyodyne is skipped: set VENV_YOYO, see bench/README.md", file=sys.stderr)
        return found
    peer = work / "yoyodyne"
    _write_transformer(models / "g2p_transformer", peer)
    names = [f"yoyodyne-{kind}" for kind in KINDS]
    return [*found, *(_system(name, name, str(python), peer, work, KEEP) for name in names)]


def _system(
    name: str, kind: str, python: str, model: Path, work: Path, variables: dict[str, str]
) -> System:
    """A worker of decoding_worker.py that answers words."""
    words = str(work / "words.txt")
    script = [python, str(BENCH / "decoding_worker.py"), kind]
    return System(name, [*script, str(model), words, words, str(LONGEST)], variables)


def _write_transformer(model: Path, place: Path) -> None:
    """Our Transformer for yoyodyne."""
    from peer_yoyodyne import write_yoyodyne

    import regard

    estimator = regard.load(model)
    write_yoyodyne(estimator.task_, estimator.model_, place)
