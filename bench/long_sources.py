"""Compare attention to long sources: additive, guided, location-aware, monotonic, joint CTC.

    python bench/long_sources.py [--steps 400] [--seeds 0] [--ways additive,location,...]

The task is to remove repetitions: letters that occur two to six times in a row are written once.
All ways train for the same number of updates on the same examples. Greedy decoding of 200 new
sources of the same lengths, and of 200 sources that are twice as long.
"""

import argparse
import statistics
import time
from typing import Any

import torch

from regard.search import Beam, SearchRequest
from regard.views.plots.alignment_plot import WAYS, examples, train

MORE: dict[str, tuple[Any, dict[str, float]]] = {
    "bilinear": ("bilinear", {}),
    "cumulative": ({"kind": "location", "cumulative": True}, {}),
    "chunks": ({"kind": "monotonic", "chunk": 4}, {}),
    "ctc": ("additive", {"ctc_weight": 0.3}),
}
ROWS, FIRST_TEST = 200, 1 << 20


def exact_match(model: Any, times: int) -> float:
    """Return the percentage of correct outputs for sources of `times` the length in training."""
    batch = examples(FIRST_TEST, ROWS, times)
    assert batch.source is not None and batch.target is not None
    request = SearchRequest(batch.source, batch.target.mask.sum(1) + 10)
    with torch.no_grad():
        found = Beam(beam=1).run(model, request)
    rows = zip(found, *batch.target[:2], strict=True)
    return 100 * statistics.mean(
        (*best.tokens,) == tuple(target[real].tolist()[:-1]) for (best, *_), target, real in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    ways = WAYS | MORE
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--ways", default=",".join(ways))
    args = parser.parse_args()
    torch.set_num_threads(1)
    for way in args.ways.split(","):
        for seed in map(int, args.seeds.split(",")):
            start = time.process_time()
            learned = train(*ways[way], args.steps, seed)
            seconds = time.process_time() - start
            scores = [exact_match(learned.model, times) for times in (1, 2)]
            print(
                f"{way:10} seed {seed}  loss {statistics.mean(learned.losses[-20:]):.3f}  "
                f"exact match {scores[0]:5.1f} %  twice as long {scores[1]:5.1f} %  "
                f"{1000 * seconds / args.steps:.0f} ms per update",
                flush=True,
            )


if __name__ == "__main__":
    main()
