"""The folder in which the throughput run works: data in the form each peer reads, and settings.

The peers' own script `make_work.sh` writes vocabularies and TSV files. It wants Multi30k as text
and as sentencepiece pieces, which are made here. Its test part of G2P is not public; training
does not read it, so the dev part stands in.
"""

import gzip
import subprocess
from pathlib import Path

import sentencepiece

PARTS = ("train", "val", "test_2016_flickr")
LANGUAGES = ("en", "de")
VOCABULARY = 8000


def prepare(work: Path, data: Path, peers: Path) -> None:
    """Fill the work folder; overwrite what an earlier run left."""
    work.mkdir(parents=True, exist_ok=True)
    pieces = work / "m30k"
    _write_pieces(data / "multi30k", pieces)
    g2p = data / "cmudict_g2p"
    script = ["bash", str(peers / "make_work.sh"), str(work), str(pieces), str(g2p)]
    with open(work / "make_work.log", "w") as log:
        subprocess.run(
            [*script, str(g2p / "dev.tsv.gz")], check=True, stdout=log, stderr=subprocess.STDOUT
        )
    write_variants(work)


def write_variants(work: Path) -> None:
    """Copies of the peers' settings, each with a folder of its own for what it saves.

    malloc: unchanged, run with the allocator setting. lean: also without dropout on attention
    weights, which is Eole's default (0.1) but which regard does not have; yoyodyne cannot turn
    it off alone.
    """
    eole, yoyodyne = ((work / f"{name}.yaml").read_text() for name in ("eole_tiny", "yoyo_tf"))
    lean = eole.replace("attention_dropout: [0.1]", "attention_dropout: [0.0]")
    assert lean != eole
    variants = {
        "eole_malloc": eole.replace("out/eole", "out/eole_malloc"),
        "eole_lean": lean.replace("out/eole", "out/eole_lean"),
        "yoyodyne_malloc": yoyodyne.replace("out/yoyo_tf", "out/yoyodyne_malloc"),
    }
    for name, text in variants.items():
        (work / f"{name}.yaml").write_text(text)


def _write_pieces(data: Path, folder: Path) -> None:
    """Text, joint BPE model and pieces of Multi30k, in the names that `make_work.sh` expects.

    BPE of 8,000 without normalization: regard is told to use the same, so both sides of the
    comparison count like tokens.
    """
    folder.mkdir(exist_ok=True)
    lines = {
        (part, language): _lines(data, part, language) for part in PARTS for language in LANGUAGES
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines["train", "en"] + lines["train", "de"]),
        model_prefix=str(folder / "spm"),
        model_type="bpe",
        vocab_size=VOCABULARY,
        character_coverage=1.0,
        normalization_rule_name="identity",
        num_threads=1,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
    for (part, language), texts in lines.items():
        pieces = [" ".join(row) for row in processor.encode(texts, out_type=str)]
        (folder / f"{part}.{language}").write_text("\n".join([*texts, ""]), encoding="utf-8")
        (folder / f"{part}.spm.{language}").write_text("\n".join([*pieces, ""]), encoding="utf-8")


def _lines(data: Path, part: str, language: str) -> list[str]:
    path = data / f"{part}.{language}.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")
