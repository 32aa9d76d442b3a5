"""Decoding time against output length: outputs forced to 256 and to 512 tokens, 8 inputs at once.

usage: python bench/growth.py [--repeats 5] [--models DIR]
DIR holds the models of decoding.py: m30k and g2p_lstm, trained there if they are missing. Lengths
take turns, so that drift of the machine hits both alike. The bar: t(512) / t(256) <= 2.3.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import decoding_g2p
from decoding_prepare import translation_model
from surroundings import REPOSITORY, RESULTS, folder, machine

ROWS = 8
LENGTHS = (256, 512)
BAR = 2.3


def main() -> int:
    """Prints the times and their ratios; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--models", type=Path, default=REPOSITORY / "runs" / "bench-decoding")
    args = parser.parse_args()
    data = folder("REGARD_DATA", "../shared/data")
    if data is None or not translation_model(args.models / "m30k", data / "multi30k"):
        return 1
    if not decoding_g2p.train_ours(args.models, data):
        return 1
    found = []
    for name in ("m30k", "g2p_lstm"):
        for beam in (1, 5):
            times = measure(args.models / name, beam, args.repeats)
            middle = [statistics.median(times[length]) for length in LENGTHS]
            ratio = round(middle[1] / middle[0], 2)
            row = {"model": name, "beam": beam, "ratio": ratio, "reached": ratio <= BAR}
            found.append(row | {str(length): times[length] for length in LENGTHS})
            shown = ", ".join(f"{n} tokens {t:.2f} s" for n, t in zip(LENGTHS, middle, strict=True))
            word = "met" if ratio <= BAR else "MISSED"
            print(f"{name}, beam {beam}: {shown}, ratio {ratio} (<= {BAR}: {word})", flush=True)
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "growth": found}
    (RESULTS / "growth.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(row["reached"] for row in found))


def measure(model: Path, beam: int, repeats: int) -> dict[int, list[float]]:
    """Seconds for each length, alternating; the first round is not counted."""
    import torch

    import regard
    from regard.data.tensors.padded import pad
    from regard.inference.torch_engine import TorchEngine
    from regard.search import Beam, SearchRequest

    estimator = regard.load(model)
    engine = TorchEngine(estimator.model_)
    source = pad([list(range(5, 25))] * ROWS)
    times: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for turn in range(repeats + 1):
        for length in LENGTHS:
            search = Beam(beam=beam, min_length=length, max_length=length)
            request = SearchRequest(source, torch.full((ROWS,), length + 1))  # 1: EOS
            began = time.perf_counter()
            found = engine.run(search, request)
            seconds = round(time.perf_counter() - began, 3)
            assert all(len(row[0].tokens) == length for row in found)
            if turn:
                times[length].append(seconds)
    return times


if __name__ == "__main__":
    sys.exit(main())
