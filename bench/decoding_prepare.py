"""What the decoding bench needs: trained models, and their weights in the formats of the peers."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from surroundings import regard_command

TRANSLATION = [
    *("task.shared_vocab=true", "task.source.tokenizer=bpe", "task.target.tokenizer=bpe"),
    *("task.source.vocab_size=8000", "task.target.vocab_size=8000"),
]


def transformer(layers: int, width: int, inner: int, heads: int) -> list[str]:
    """The settings of a Transformer encoder and decoder of the same shape."""
    sizes = {
        "kind": "transformer",
        "layers": layers,
        "width": width,
        "heads": heads,
        "feedforward_width": inner,
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
    from peer_eole import write_eole
    from peer_joey import write_joey
    from peer_weights import Parts

    import regard

    estimator = regard.load(model)
    task = estimator.task_
    texts, references = (read(data / f"test_2016_flickr.{side}.gz") for side in ("en", "de"))
    pieces = [" ".join(task.source.tokenizer.tokenize(text)) for text in texts]
    write(work / "source.txt", texts)
    write(work / "references.txt", references)
    for name in ("pieces.en", "pieces.de"):  # JoeyNMT reads both sides of its test part
        write(work / name, pieces)
    parts = Parts(task, estimator.model_)
    tokens = json.dumps(parts.tokens)
    write_exports(estimator, work, tokens)
    peer_transformers.write_transformers(parts, work / "transformers")
    (work / "transformers" / "tokens.json").write_text(tokens, encoding="utf-8")
    far = peer_transformers.difference(estimator.model_, work / "transformers")
    assert far < 1e-4, f"transformers has other logits than ours: they differ by {far}"
    write_eole(parts, work / "eole")
    write_joey(parts, work / "joey", work / "pieces")


def write_exports(estimator: Any, work: Path, tokens: str) -> None:
    """The exports of a model to the engines; a message for each that cannot be made."""
    from regard.core.errors import UserError
    from regard.exchange.export import export_model

    for to, quantize in ((to, q) for to in ("ctranslate2", "onnx") for q in (None, "int8")):
        out = work / f"{to}{f'-{quantize}' if quantize else ''}"
        try:
            export_model(estimator.predictor_, to, out, force=True, quantize=quantize)
        except (ImportError, UserError) as error:
            print(f"{out.name} is skipped: {error}", file=sys.stderr)
            continue
        (out / to / "tokens.json").write_text(tokens, encoding="utf-8")


def read(path: Path) -> list[str]:
    """The lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def write(path: Path, lines: list[str]) -> None:
    """The lines as a file."""
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
