"""Requests per second of `regard serve`: one client, 64, and 64 next to misbehaving clients.

usage: python bench/serve.py [MODEL] [--seconds 60] [--clients 64] [--slices 3] [--more ...]
MODEL is a run folder of a g2p model; without it one is trained for a minute. Clients ask for
distinct words over connections that stay open. The bars: no error, 64 clients get at least 5 times
as much done as one, and those that run next to slow and disconnecting clients get no error either.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from served import Server, g2p_model, serving, words
from surroundings import BENCH, RESULTS, machine

BAR = 5.0
WITH_TROUBLE = 0.5  # of the speed, with misbehaving clients: their requests are served too
WORDS = 400_000
ENDS = ("sum", "count")


def crowd(server: Server, file: Path, clients: int, seconds: float, first: int) -> subprocess.Popen:
    """The process of a crowd that has begun."""
    more = ["--clients", str(clients), "--seconds", str(seconds), "--first", str(first)]
    answers = ["--answers", str(file.with_name(f"answers-{first}.json"))]
    script = [sys.executable, str(BENCH / "serve_client.py"), str(server.port), str(file)]
    return subprocess.Popen([*script, *more, *answers], stdout=subprocess.PIPE)


def figures(process: subprocess.Popen) -> dict:
    """What a crowd or the trouble says at its end."""
    out, _ = process.communicate()
    if process.returncode:
        sys.exit("a client ended with an error")
    return json.loads(out)


def batches(server: Server) -> tuple[float, float]:
    """Sum and number of the sizes of all batches so far, from /metrics."""
    text = server.get("/metrics")
    size, count = (re.search(rf"^regard_batch_size_{end} (\S+)$", text, re.M) for end in ENDS)
    assert size and count, "no figures of batches in /metrics"
    return float(size[1]), float(count[1])


class Trial:
    """Phases against one server; each takes words that no phase before had."""

    def __init__(self, server: Server, file: Path) -> None:
        self.server, self.file, self.used = server, file, 0

    def phase(self, clients: int, seconds: float, trouble: bool = False) -> dict:
        """Return the results of several clients, with misbehaving clients or without."""
        before = batches(self.server)
        with_trouble = None
        if trouble:
            script = [sys.executable, str(BENCH / "serve_trouble.py")]
            more = [str(self.server.port), str(self.file), "--seconds", str(seconds)]
            with_trouble = subprocess.Popen([*script, *more], stdout=subprocess.PIPE)
        found = figures(crowd(self.server, self.file, clients, seconds, self.used))
        self.used += found["requests"] + clients
        if with_trouble is not None:
            found["trouble"] = figures(with_trouble)
        size, count = (b - a for a, b in zip(before, batches(self.server), strict=True))
        found["batch"] = round(size / count, 1) if count else None
        found["memory MB"] = round(self.server.memory())
        return found

    def same_answers(self) -> dict:
        """Words of the first phase, one client, asked for again by all at once."""
        alone = json.loads(self.file.with_name("answers-0.json").read_text())
        again = self.file.with_name("again.txt")
        again.write_text("\n".join(alone), encoding="utf-8")
        figures(crowd(self.server, again, 64, 60, 0))
        together = json.loads(again.with_name("answers-0.json").read_text())
        same = sum(together.get(word) == text for word, text in alone.items())
        return {"words": len(alone), "same": same}


def measure(args: argparse.Namespace, model: Path) -> dict:
    """All phases against one server."""
    with tempfile.TemporaryDirectory() as folder, serving([model], *args.more) as server:
        file = Path(folder) / "words.txt"
        file.write_text("\n".join(words(WORDS)), encoding="utf-8")
        for word in ("warm", "up"):
            server.predict(word)
        trial = Trial(server, file)
        record: dict = {"one": trial.phase(1, args.seconds / 2)}
        show("one client", record["one"])
        record["same answers"] = trial.same_answers()
        record["crowd"] = trial.phase(args.clients, args.seconds)
        show(f"{args.clients} clients", record["crowd"])
        record["alone"], record["with trouble"] = [], []
        for _ in range(args.slices):
            for name, trouble in (("with trouble", True), ("alone", False)):
                record[name].append(trial.phase(args.clients, args.seconds / 4, trouble))
                show(f"{args.clients} clients, {name}", record[name][-1])
        record["alive"] = server.alive()
        record["metrics"] = server.get("/metrics")
    return record


def show(name: str, found: dict) -> None:
    """A line of the table, as soon as it is known."""
    if name == "one client":
        print("| | requests/s | p50 ms | p95 ms | p99 ms | batch | errors |")
        print("|---|---|---|---|---|---|---|")
    times = " | ".join(f"{found[name]}" for name in ("p50", "p95", "p99"))
    errors = sum(found["errors"].values())
    print(f"| {name} | {found['a second']} | {times} | {found['batch']} | {errors} |", flush=True)


def bars(record: dict) -> list[dict]:
    """Each bar with what was measured."""
    speed = {
        name: sum(one["a second"] for one in record[name]) for name in ("alone", "with trouble")
    }
    ratio = round(record["crowd"]["a second"] / max(record["one"]["a second"], 1e-9), 2)
    with_trouble = round(speed["with trouble"] / speed["alone"], 2) if speed["alone"] else None
    phases = [record["one"], record["crowd"], *record["alone"]]
    errors = sum(sum(one["errors"].values()) for one in phases)
    harmed = sum(sum(one["errors"].values()) for one in record["with trouble"])
    other = record["same answers"]["words"] - record["same answers"]["same"]
    return [
        {"bar": "errors", "most": 0, "measured": errors, "reached": errors == 0},
        {"bar": "times one client", "least": BAR, "measured": ratio, "reached": ratio >= BAR},
        {"bar": "other answers in a crowd", "most": 0, "measured": other, "reached": other == 0},
        {"bar": "errors with trouble", "most": 0, "measured": harmed, "reached": harmed == 0},
        {
            "bar": "speed with trouble",
            "least": WITH_TROUBLE,
            "measured": with_trouble,
            "reached": None if with_trouble is None else with_trouble >= WITH_TROUBLE,
        },
    ]


def print_bars(verdicts: list[dict]) -> None:
    """Each bar as met, missed or not measured."""
    print("\n| bar | wanted | measured | |\n|---|---|---|---|")
    for verdict in verdicts:
        wanted = f">= {verdict['least']}" if "least" in verdict else f"<= {verdict['most']}"
        word = {True: "met", False: "**missed**", None: "not measured"}[verdict["reached"]]
        print(f"| {verdict['bar']} | {wanted} | {verdict['measured']} | {word} |")


def main() -> int:
    """Prints the figures and writes them; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--slices", type=int, default=3, help="with trouble, and without")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="options of serve")
    args = parser.parse_args()
    model = g2p_model(args.model)
    record = {"machine": machine(), "model": model.name, **measure(args, model)}
    record["bars"] = bars(record)
    print_bars(record["bars"])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"serve-{model.name}.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(verdict["reached"] in (True, None) for verdict in record["bars"]))


if __name__ == "__main__":
    sys.exit(main())
