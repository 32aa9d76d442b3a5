"""Attacks on `regard serve`: idle and half-sent connections, and expensive requests.

usage: python bench/attack.py [MODEL] [--seconds 15]
MODEL is a run folder of a transducer; without it, one is trained for a few seconds on the built-in
`reverse`. The server runs with at most 1,024 file descriptors (soft and hard limit). Two attacks:

- 1,100 idle connections and 600 with half a request: in the header or in the body. They connect
  again a few seconds after the server closes them. Meanwhile /health and /predict are requested.
- One client sends one expensive request after another, from the address of the others: a long
  prefix with 100 alternatives, or 128 kB of required words; then the most expensive requests that
  the server accepts. Meanwhile four clients request predictions of short words.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from serve_client import answer, quantile
from serve_trouble import message
from served import Server, reverse_model, serving
from surroundings import BENCH, RESULTS, machine

DESCRIPTORS = 1024  # of the server
IDLE, HALF_SENT = 1100, 600
RECONNECT = (2.0, 6.0)  # seconds until a closed connection is opened again
CLIENTS, PAUSE = 4, 0.1  # clients next to an attacker, seconds between two requests of each
MAX_SECONDS = 60.0  # after which a request counts as unanswered
HALVES = (b"GET /health HTTP/1.1\r\nHost: 127.0", message("/predict", {"texts": ["abc"]})[:-3])
BARS = {
    "log kB": 100.0,
    "/health s": 1.0,
    "/predict s": 2.0,
    "p99 s, rejected attack": 1.0,
    "p99 s, accepted attack": 1.0,
    "other errors": 0,
}


def attack_bodies(length: int) -> dict[str, tuple[str, dict]]:
    """The expensive requests with constraints of this many tokens, and their paths."""
    prefix = {"text": "a" * 10, "constraints": {"prefix": "ab" * (length // 2)}, "top": 100}
    words = ["ab" * (length // 64)] * 32
    return {
        "alternatives": ("/alternatives", prefix),
        "required words": ("/predict", {"texts": ["abc"], "constraints": [{"require": words}]}),
    }


async def request(port: int, data: bytes) -> tuple[int, float]:
    """Status of the response on a new connection (0: none), and the seconds until then."""
    start = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        status, _ = await asyncio.wait_for(answer(reader), MAX_SECONDS)
        writer.close()
    except (OSError, EOFError, IndexError, ValueError, asyncio.TimeoutError):
        return 0, max(MAX_SECONDS, time.perf_counter() - start)
    return status, time.perf_counter() - start


async def hold(port: int, data: bytes, until: float) -> None:
    """Hold a connection that sends nothing more than `data`; connect again when it is closed."""
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(data)
            await asyncio.wait_for(reader.read(), until - time.monotonic())
            writer.close()
        except (OSError, asyncio.TimeoutError):
            pass
        await asyncio.sleep(random.uniform(*RECONNECT))


async def watch(port: int, data: bytes, until: float) -> list[tuple[int, float]]:
    """Send one request after another; return their statuses and times."""
    found = []
    while time.monotonic() < until:
        found.append(await request(port, data))
        await asyncio.sleep(PAUSE)
    return found


async def hold_all(port: int, seconds: float) -> None:
    """Hold all idle and half-sent connections."""
    until = time.monotonic() + seconds
    data = [b""] * IDLE + [HALVES[i % len(HALVES)] for i in range(HALF_SENT)]
    await asyncio.gather(*(hold(port, one, until) for one in data))


def connection_attack(port: int, seconds: float) -> dict:
    """Return the slowest responses while another process holds connections."""
    code = f"import asyncio, attack; asyncio.run(attack.hold_all({port}, {seconds + 1}))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=BENCH):
        time.sleep(2)
        return asyncio.run(watch_both(port, time.monotonic() + seconds - 2))


async def watch_both(port: int, until: float) -> dict:
    """Request /health and /predict in turn."""
    health = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    predict = message("/predict", {"texts": ["abc"]})
    watched = await asyncio.gather(watch(port, health, until), watch(port, predict, until))
    return summary(dict(zip(("/health", "/predict"), watched, strict=True)))


async def work_attack(port: int, seconds: float, attack: bytes) -> dict:
    """Return the times of short predictions while one client sends expensive requests."""
    until = time.monotonic() + seconds
    attacking = asyncio.ensure_future(watch(port, attack, until))
    await asyncio.sleep(0.2)
    words = [message("/predict", {"texts": ["abcdef"[: n + 2]]}) for n in range(CLIENTS)]
    watched = await asyncio.gather(*(watch(port, word, until) for word in words))
    attacks = await attacking
    found = summary({"/predict": [one for client in watched for one in client]})
    return found | {"attacks": [(status, round(one, 2)) for status, one in attacks][:5]}


def summary(watched: dict[str, list[tuple[int, float]]]) -> dict:
    """Return requests, errors, and the 99th percentile and maximum of the seconds."""
    return {
        path: {
            "requests": len(found),
            "errors": sum(status != 200 for status, _ in found),
            "p99 s": quantile([one for _, one in found], 0.99) / 1000,
            "max s": round(max(one for _, one in found), 3),
        }
        for path, found in watched.items()
    }


def longest_accepted(server: Server, name: str) -> int:
    """Return the largest size of an attack that the server does not reject (422)."""
    low, high = 64, 4992
    while high - low > 64:
        middle = (low + high) // 2
        path, body = attack_bodies(middle)[name]
        status, _ = asyncio.run(request_until(server.port, message(path, body), 1.0))
        low, high = (low, middle) if status == 422 else (middle, high)
    return low


async def request_until(port: int, data: bytes, seconds: float) -> tuple[int, float]:
    """Send a request, and disconnect if there is no response in this time (status 0)."""
    try:
        return await asyncio.wait_for(request(port, data), seconds)
    except asyncio.TimeoutError:
        return 0, seconds


def measure(server: Server, seconds: float, log: Path) -> dict:
    """Run all attacks; return what was measured."""
    server.predict("warm")
    found: dict = {"connections": connection_attack(server.port, seconds)}
    found["connections"]["log kB"] = round(log.stat().st_size / 1000, 1)
    print(json.dumps(found["connections"]), flush=True)
    for name, length in (("alternatives", 2400), ("required words", 128_000)):
        for kind in ("rejected", "accepted"):
            length = length if kind == "rejected" else longest_accepted(server, name)
            path, body = attack_bodies(length)[name]
            one = asyncio.run(work_attack(server.port, seconds, message(path, body)))
            found[f"{name}, {kind}"] = one | {"tokens": length}
            print(f"{name}, {length} tokens, {kind}: {json.dumps(one)}", flush=True)
    found["alive"] = server.alive()
    return found


def bars(found: dict) -> list[dict]:
    """Each bar with what was measured."""
    work = {
        kind: [one for name, one in found.items() if name.endswith(kind)]
        for kind in ("rejected", "accepted")
    }
    measured = {
        "log kB": found["connections"]["log kB"],
        "/health s": found["connections"]["/health"]["max s"],
        "/predict s": found["connections"]["/predict"]["max s"],
        "other errors": sum(
            one[path]["errors"]
            for one in (found["connections"], *work["rejected"], *work["accepted"])
            for path in ("/health", "/predict")
            if path in one
        ),
    }
    for kind, attacks in work.items():
        measured[f"p99 s, {kind} attack"] = max(one["/predict"]["p99 s"] for one in attacks)
    return [
        {"bar": bar, "most": most, "measured": measured[bar], "reached": measured[bar] <= most}
        for bar, most in BARS.items()
    ]


def main() -> int:
    """Print and store the results; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=15, help="per attack")
    args = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or reverse_model(Path(folder) / "reverse")
        log = Path(folder) / "log"
        with open(log, "wb") as file, serving([model], log=file, descriptors=DESCRIPTORS) as server:
            found = measure(server, args.seconds, log)
    found["bars"] = bars(found)
    print("\n| bar | at most | measured | |\n|---|---|---|---|")
    for bar in found["bars"]:
        word = "met" if bar["reached"] else "**missed**"
        print(f"| {bar['bar']} | {bar['most']} | {bar['measured']} | {word} |")
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "cores": os.cpu_count(), **found}
    (RESULTS / "attack.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(bar["reached"] for bar in found["bars"]))


if __name__ == "__main__":
    sys.exit(main())
