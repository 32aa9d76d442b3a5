"""Run folders that no training made, for tests of what reads them."""

import json
from pathlib import Path
from typing import Any

import yaml

SAMPLES = [("cat", "K AE T", "K AE T"), ("dog", "D AO G", "D AA G")]  # source, right, predicted


def lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


def make_run(
    folder: Path,
    settings: dict[str, Any] | None = None,
    exact: tuple[float, ...] = (25.0, 62.5),
    final: bool = True,
    **facts: Any,
) -> Path:
    """A run with a validation every 20 steps, 6 seconds a step, and these scores."""
    folder.mkdir(parents=True)
    tree = {"task": {"kind": "transduce"}, "model": {"encoder": {"kind": "recurrent"}}}
    tree |= {"training": {"lr": 0.002, "steps": 40, "seed": 1}} | (settings or {})
    (folder / "config.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    about = {
        "task": "transduce",
        "metric": "exact_match",
        "parameters": 1_234_567,
        "name": folder.name,
    }
    about |= {"started": "2026-01-02T03:04:05+00:00", "data": {"data": "/data/words.tsv"}}
    about |= {"fingerprints": {"dev": "d", "training": "t"}}
    (folder / "run.json").write_text(json.dumps(about | facts), "utf-8")
    changed = {"changed": {"training.lr": [None, 0.002]}, "auto": []}
    (folder / "settings.json").write_text(json.dumps(changed), "utf-8")
    log: list[dict[str, Any]] = []
    for number, score in enumerate(exact, 1):
        at = {"step": 20 * number, "elapsed_seconds": 120.0 * number}
        loss = 3.0 / number
        rates = {
            "lr": 1e-3,
            "grad_norm": 1.0,
            "padding_fraction": 0.0,
            "tokens": 600,
            "tokens_per_second": 5.0,
        }
        log.append({"kind": "train", **at, "epoch": number, "loss": loss, **rates})
        log.append(
            {"kind": "dev", **at, "loss": loss + 1, "scores": {"exact_match": score, "ser": 9.5}}
        )
    if final:
        best = {"exact_match": max(exact), "ser": 9.5}
        bounds = {"exact_match": [max(exact) - 4, max(exact) + 4]}
        step = 20 * (1 + exact.index(max(exact)))
        log.append({"kind": "final", "step": step, "scores": best, "intervals": bounds})
    lines(folder / "metrics.jsonl", log)
    step = 20 * len(exact)
    samples = [
        {"step": step, "source": source, "references": [right], "prediction": predicted}
        for source, right, predicted in SAMPLES
    ]
    lines(folder / "samples.jsonl", samples)
    return folder
