"""What the decoding bench needs: trained models, and their weights in the formats of the peers."""

import gzip
import subprocess
from pathlib import Path

from surroundings import regard_command

TRANSLATION = [
    *("task.shared=true", "task.source.symbols=bpe", "task.target.symbols=bpe"),
    *("task.source.size=8000", "task.target.size=8000"),
]


def transformer(layers: int, width: int, inner: int, heads: int) -> list[str]:
    """The settings of a Transformer encoder and decoder of the same shape."""
    sizes = {
        "kind": "transformer",
        "layers": layers,
        "width": width,
        "heads": heads,
        "feedforward": inner,
        "dropout": 0.1,
    }
    sides = ("model.encoder", "model.decoder")
    return [f"{side}.{key}={value}" for side in sides for key, value in sizes.items()]


def train(folder: Path, data: list[str], budget: str, settings: list[str]) -> bool:
    """Trains a model where the folder is missing; False after a message if that failed."""
    if (folder / "model.safetensors").exists():
        return True
    regard = regard_command()
    if regard is None:
        return False
    print(f"no model in {folder}: training one for {budget}", flush=True)
    chosen = [word for setting in settings for word in ("--set", setting)]
    words = [*regard, "train", *data, "--budget", budget, "--out", str(folder), "--force", *chosen]
    return subprocess.run(words).returncode == 0


def translation_model(folder: Path, data: Path) -> bool:
    """The model that all systems translate with: 2.35 million parameters, 4 + 4 layers."""
    files = {"--source": "train.en", "--target": "train.de"}
    files |= {"--dev-source": "val.en", "--dev-target": "val.de"}
    words = [word for key, name in files.items() for word in (key, f"{data / name}.gz")]
    return train(folder, words, "9m", [*TRANSLATION, *transformer(4, 128, 256, 4)])


def write_weights(model: Path, work: Path, data: Path) -> None:
    """Texts, pieces, references, and the weights of the model for each peer, below `work`."""
    import peer_transformers
    from peer_ctranslate2 import write_ctranslate2
    from peer_eole import write_eole
    from peer_joey import write_joey
    from peer_weights import Parts

    import regard

    estimator = regard.load(model)
    task = estimator.task_
    texts, references = (read(data / f"test_2016_flickr.{side}.gz") for side in ("en", "de"))
    pieces = [" ".join(task.source.symbols(text)) for text in texts]
    write(work / "source.txt", texts)
    write(work / "references.txt", references)
    for name in ("pieces.en", "pieces.de"):  # JoeyNMT reads both sides of its test part
        write(work / name, pieces)
    parts = Parts(task, estimator.model_)
    write_ctranslate2(parts, work / "ctranslate2", None)
    write_ctranslate2(parts, work / "ctranslate2-int8", "int8")
    peer_transformers.write_transformers(parts, work / "transformers")
    far = peer_transformers.difference(estimator.model_, work / "transformers")
    assert far < 1e-4, f"transformers has other logits than ours: they differ by {far}"
    write_eole(parts, work / "eole")
    write_joey(parts, work / "joey", work / "pieces")


def read(path: Path) -> list[str]:
    """The lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def write(path: Path, lines: list[str]) -> None:
    """The lines as a file."""
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
