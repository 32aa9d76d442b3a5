"""Large pairs as numbers, made once by several processes, and read from a mapped file.

Each process encodes every n-th portion of blocks and writes it to its standard output; the portions
are collected in turn, so they come in order, and a full pipe keeps fast processes waiting.
`python -m regard.data.encode` is such a process: it imports neither torch nor the caller's script.
"""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from regard.core.cache import Facts, cached, make_key
from regard.core.errors import UserError
from regard.core.progress import ProgressBar
from regard.data.sources.large import LargePairs
from regard.data.tensors.special import EOS
from regard.data.tokenizers.build import load_tokenizer
from regard.data.tokenizers.tokenizer import Tokenizer

PORTION = 32  # blocks, some 4 MB of text
MOST_WORKERS = 8
SIDES = ("source", "target")


def tokens(pairs: LargePairs, source: Tokenizer, target: Tokenizer) -> tuple[Path, Facts]:
    """The folder with the tokens of all pairs: `source.flat`, `source.lengths` and so on."""
    key = make_key(pairs.key, source.content(), target.content())
    return cached("tokens", key, _Job(pairs, source, target).run)


def workers(portions: int) -> int:
    """How many processes encode so many portions: one a core that may be used."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(MOST_WORKERS, cores or 1, portions))


class _Job:
    """The encoding of large pairs into a folder."""

    def __init__(self, pairs: LargePairs, source: Tokenizer, target: Tokenizer) -> None:
        self.pairs, self.tokenizers = pairs, (source, target)
        self.portions = -(-len(pairs.block_index) // PORTION)
        self.types = [np.dtype(_narrow(len(tokenizer))) for tokenizer in self.tokenizers]

    def run(self, folder: Path) -> Facts:
        """Writes the tokens and lengths of both sides."""
        for tokenizer, side in zip(self.tokenizers, SIDES, strict=True):
            tokenizer.save(folder, side)
        count = workers(self.portions)
        order = {
            "folder": str(self.pairs.folder.resolve()),
            "paths": [os.path.abspath(path) for path in self.pairs.paths],
            "tokenizers": str(folder.resolve()),
            "types": [kind.str for kind in self.types],
            "workers": count,
        }
        lengths: list[list[np.ndarray]] = [[], []]
        processes = [_start({**order, "worker": at}) for at in range(count)]
        try:
            self._collect(processes, folder, lengths)
        finally:
            for process in processes:
                process.kill()
                process.communicate()
        kinds = [self._write_lengths(folder, *item) for item in zip(SIDES, lengths, strict=True)]
        return {"types": order["types"], "lengths": kinds, "rows": len(self.pairs)}

    def _collect(
        self, processes: list["subprocess.Popen[bytes]"], folder: Path, lengths: Any
    ) -> None:
        """The portions of all processes in turn, in the order of the pairs."""
        title = f"tokenizing with {len(processes)} processes"
        with contextlib.ExitStack() as stack:
            flat = [stack.enter_context(open(folder / f"{side}.flat", "wb")) for side in SIDES]
            with ProgressBar(title, len(self.pairs)) as bar:
                for portion in range(self.portions):
                    process = processes[portion % len(processes)]
                    assert process.stdout is not None
                    for side, kind in enumerate(self.types):
                        rows, tokens = np.frombuffer(_take(process.stdout, 16), np.int64)
                        found = _take(process.stdout, 4 * int(rows))
                        lengths[side].append(_narrowed(np.frombuffer(found, np.uint32)))
                        flat[side].write(_take(process.stdout, int(tokens) * kind.itemsize))
                    bar.advance(int(rows))

    def _write_lengths(self, folder: Path, side: str, parts: list[np.ndarray]) -> str:
        """Writes the lengths of a side with as few bytes as the longest needs; gives the type."""
        widest = max(parts, key=lambda part: part.dtype.itemsize).dtype
        np.concatenate([part.astype(widest) for part in parts]).tofile(folder / f"{side}.lengths")
        return widest.str


def _narrow(count: int) -> type[np.unsignedinteger[Any]]:
    """The type for numbers below a count."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def _narrowed(lengths: np.ndarray) -> np.ndarray:
    return lengths.astype(_narrow(int(lengths.max(initial=0)) + 1))


def _start(order: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """A process that encodes its share."""
    package = str(Path(__file__).parents[3])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "regard.data.corpus.encode", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the caller, who ends them
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
    )


def _take(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise UserError(
            "a process that tokenizes ended early; what it said stands above. If memory ran out, "
            "taskset -c 0 before the command runs one process only"
        )
    return data


def _portions(order: dict[str, Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Tokens and lengths of a worker's portions, source and target in turn."""
    folder = Path(order["folder"])
    facts = json.loads((folder / "header.json").read_bytes())["facts"]
    pairs = LargePairs(folder, facts, order["paths"])
    place = Path(order["tokenizers"])
    tokenizers = [load_tokenizer(place, side) for side in SIDES]
    step = PORTION * order["workers"]
    for first in range(PORTION * order["worker"], len(pairs.block_index), step):
        blocks = list(pairs.blocks(first, first + PORTION))
        for name, tokenizer in zip(("sources", "targets"), tokenizers, strict=True):
            texts = [text for block in blocks for text in getattr(block, name)]
            yield tokenizer.encode_flat(texts, EOS)


def main() -> None:
    """Encodes the share of one process and writes it to standard output."""
    order = json.loads(sys.argv[1])
    types = [np.dtype(kind) for kind in order["types"]]
    out = sys.stdout.buffer
    try:
        for at, (flat, lengths) in enumerate(_portions(order)):
            out.write(np.array([len(lengths), len(flat)], np.int64).tobytes())
            out.write(lengths.astype(np.uint32).tobytes())
            out.write(flat.astype(types[at % 2]).tobytes())
        out.flush()
    except BrokenPipeError:  # the caller was killed
        os._exit(1)


if __name__ == "__main__":
    main()
