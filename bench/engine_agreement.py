"""How often the engines predict something else than torch, or than themselves in other batches.

usage: python bench/engine_agreement.py NAME=RUN:SOURCES[:REFERENCES] .. [--count 1000]
           [--beams 1 5] [--batches 1 7 32] [--result FILE]
SOURCES and REFERENCES have one text a line, plain or gzip; SOURCES may also have the targets in its
second column. Every engine that can run the model predicts the first `count` sources under every
beam and batch size. Reported: how many best predictions depend on the batch size, how many differ
from torch's, and the metric of each. Engine auto may be the default where no prediction of
CTranslate2 depends on the batch and at most 0.5 % differ from torch's.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surroundings import RESULTS, machine

ENGINES = (("torch", None), ("ctranslate2", None), ("ctranslate2", "int8"), ("onnx", None))
MOST = 0.005  # of the predictions may differ from torch's


def main() -> int:
    """Prints a table for each model and saves all numbers; 1 if auto may not be the default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="NAME=RUN:SOURCES[:REFERENCES]")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 7, 32])
    parser.add_argument("--result", type=Path, default=RESULTS / "engine_agreement.json")
    args = parser.parse_args()
    record: dict[str, Any] = {"machine": machine(), "models": {}}
    for model in args.models:
        name, _, files = model.partition("=")
        rows = list(count_model(*files.split(":"), args=args))
        record["models"][name] = rows
        print(f"\n{name}, {rows[0]['sources']:,} sources\n")
        print("| engine | beam | depend on the batch | differ from torch | metric |")
        print("|---|---|---|---|---|")
        for row in rows:
            cells = (row[key] for key in ("engine", "beam", "by batch", "not torch's", "metric"))
            print(f"| {' | '.join(map(str, cells))} |")
    rows = [row for rows in record["models"].values() for row in rows]
    record["auto may be the default"] = is_same = all(
        row["by batch"] == 0 and row["not torch's"] <= MOST * row["sources"]
        for row in rows
        if row["engine"] == "ctranslate2"
    )
    args.result.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\nauto may be the default: {'yes' if is_same else 'no'}")
    return int(not is_same)


def count_model(run: str, sources: str, *references: str, args: Any) -> Iterator[dict[str, Any]]:
    """One row of numbers for each engine and beam."""
    import regard
    from regard.core.errors import UserError

    columns = [line.split("\t") for line in read(sources)[: args.count]]
    texts = [row[0] for row in columns]
    targets = read(references[0])[: args.count] if references else [row[1] for row in columns]
    expected: dict[int, list[str]] = {}  # of torch, by beam
    for engine, quantize in ENGINES:
        try:
            model = regard.load(run, engine=engine, quantize=quantize)
        except UserError as error:
            print(f"{engine} is skipped: {error}", file=sys.stderr)
            continue
        for beam in args.beams:
            found = [model.predict(texts, batch_size=size, beam=beam) for size in args.batches]
            best = found[-1]
            expected.setdefault(beam, best)
            other = [index for index, text in enumerate(best) if text != expected[beam][index]]
            task = model.task_
            examples = task.examples(model._to_pairs(texts, targets))
            values = model.predict_detailed(texts, batch_size=args.batches[-1], beam=beam)
            by_source = dict(zip(texts, values, strict=True))
            score = task.score([by_source[one.source] for one in examples], examples)[task.metric]
            yield {
                "engine": f"{engine} {quantize or ''}".strip(),
                "beam": beam,
                "sources": len(texts),
                "by batch": sum(len(set(row)) > 1 for row in zip(*found, strict=True)),
                "not torch's": len(other),
                "metric": f"{task.metric} {score:.2f}",
                "lines that differ": [i + 1 for i in other],
            }


def read(path: str) -> list[str]:
    """The lines of a file, plain or gzip."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


if __name__ == "__main__":
    sys.exit(main())
