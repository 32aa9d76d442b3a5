"""Tokenize `LargePairs` once with several processes, into files that are memory-mapped later.

A block is about 128 kB of text; a chunk is 32 blocks. Each of n worker processes encodes every
n-th chunk and writes the ids to stdout. The caller reads the chunks round-robin, so they stay in
order, and a full pipe makes fast workers wait. `python -m regard.data.corpus.encode` runs a worker,
which imports neither torch nor the caller's script.
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

from regard.core.cache import Metadata, cached, make_key
from regard.core.errors import UserError
from regard.core.progress import ProgressBar
from regard.data.sources.large import LargePairs
from regard.data.tensors.special import EOS
from regard.data.tokenizers.build import load_tokenizer
from regard.data.tokenizers.tokenizer import Tokenizer

CHUNK_BLOCKS = 32  # about 4 MB of text
MAX_WORKERS = 8
SIDES = ("source", "target")


def encode_pairs(pairs: LargePairs, source: Tokenizer, target: Tokenizer) -> tuple[Path, Metadata]:
    """Return the cache folder with the token ids of all pairs, and its metadata.

    The files are `source.flat` (ids), `source.lengths`, `target.flat` and `target.lengths`.
    """
    key = make_key(pairs.key, source.content(), target.content())
    return cached("tokens", key, _Job(pairs, source, target).run)


def num_workers(chunks: int) -> int:
    """Return the number of worker processes: one per core, at most MAX_WORKERS or `chunks`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(MAX_WORKERS, cores or 1, chunks))


class _Job:
    """The encoding of large pairs into a folder."""

    def __init__(self, pairs: LargePairs, source: Tokenizer, target: Tokenizer) -> None:
        self.pairs, self.tokenizers = pairs, (source, target)
        self.num_chunks = -(-len(pairs.block_index) // CHUNK_BLOCKS)
        self.types = [np.dtype(_narrow_dtype(len(tokenizer))) for tokenizer in self.tokenizers]

    def run(self, folder: Path) -> Metadata:
        """Write the ids and lengths of sources and targets; return the metadata."""
        for tokenizer, side in zip(self.tokenizers, SIDES, strict=True):
            tokenizer.save(folder, side)
        count = num_workers(self.num_chunks)
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
        """Read the chunks of all processes in the order of the pairs; write ids, append lengths."""
        title = f"tokenizing with {len(processes)} processes"
        with contextlib.ExitStack() as stack:
            flat = [stack.enter_context(open(folder / f"{side}.flat", "wb")) for side in SIDES]
            with ProgressBar(title, len(self.pairs)) as bar:
                for chunk in range(self.num_chunks):
                    process = processes[chunk % len(processes)]
                    assert process.stdout is not None
                    for side, kind in enumerate(self.types):
                        rows, tokens = np.frombuffer(_read_exactly(process.stdout, 16), np.int64)
                        found = _read_exactly(process.stdout, 4 * int(rows))
                        lengths[side].append(_to_narrow_dtype(np.frombuffer(found, np.uint32)))
                        flat[side].write(_read_exactly(process.stdout, int(tokens) * kind.itemsize))
                    bar.advance(int(rows))

    def _write_lengths(self, folder: Path, side: str, parts: list[np.ndarray]) -> str:
        """Write the lengths of source or target with the smallest dtype that fits; return it."""
        widest = max(parts, key=lambda part: part.dtype.itemsize).dtype
        np.concatenate([part.astype(widest) for part in parts]).tofile(folder / f"{side}.lengths")
        return widest.str


def _narrow_dtype(count: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest dtype for integers from 0 to count - 1: uint16 or uint32."""
    return np.uint16 if count <= 1 << 16 else np.uint32


def _to_narrow_dtype(lengths: np.ndarray) -> np.ndarray:
    return lengths.astype(_narrow_dtype(int(lengths.max(initial=0)) + 1))


def _start(order: dict[str, Any]) -> "subprocess.Popen[bytes]":
    """Start a worker process. order: its input paths, dtypes and worker number, as JSON."""
    package = str(Path(__file__).parents[3])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "regard.data.corpus.encode", json.dumps(order)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches only the caller, which kills the workers
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
    )


def _read_exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise UserError(
            "a tokenizer process died (see above)",
            help="if memory ran out, use one process: taskset -c 0 regard ...",
        )
    return data


def _encode_chunks(order: dict[str, Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (ids, lengths) of each chunk of a worker, alternating source and target."""
    folder = Path(order["folder"])
    metadata = json.loads((folder / "header.json").read_bytes())["metadata"]
    pairs = LargePairs(folder, metadata, order["paths"])
    tokenizer_folder = Path(order["tokenizers"])
    tokenizers = [load_tokenizer(tokenizer_folder, side) for side in SIDES]
    step = CHUNK_BLOCKS * order["workers"]
    for first in range(CHUNK_BLOCKS * order["worker"], len(pairs.block_index), step):
        blocks = list(pairs.blocks(first, first + CHUNK_BLOCKS))
        for name, tokenizer in zip(("sources", "targets"), tokenizers, strict=True):
            texts = [text for block in blocks for text in getattr(block, name)]
            yield tokenizer.encode_flat(texts, EOS)


def main() -> None:
    """Run a worker process: encode its chunks and write them to stdout."""
    order = json.loads(sys.argv[1])
    types = [np.dtype(kind) for kind in order["types"]]
    out = sys.stdout.buffer
    try:
        for at, (flat, lengths) in enumerate(_encode_chunks(order)):
            out.write(np.array([len(lengths), len(flat)], np.int64).tobytes())
            out.write(lengths.astype(np.uint32).tobytes())
            out.write(flat.astype(types[at % 2]).tobytes())
        out.flush()
    except BrokenPipeError:  # the caller was killed
        os._exit(1)


if __name__ == "__main__":
    main()
