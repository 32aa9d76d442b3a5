"""10,000 fuzzed requests against a real `regard serve`: statuses, memory, and whether it lives on.

usage: python bench/fuzz.py [MODEL ...] [--requests 10000] [--seed 1]
A tenth of each thousand is right by the OpenAPI description, a tenth is wrong by it (both made by
schemathesis), a tenth are bytes that are hardly HTTP, the rest are texts and bodies of our own. The
bars: no status of 500 or more but 503, memory after all at most 5 % above that after the first
fifth, and the same right answers at the end as at the beginning.
"""

import argparse
import json
import random
import socket
import sys
import time
from collections import Counter
from pathlib import Path

from served import Server, g2p_model, serving
from surroundings import REPOSITORY, RESULTS, machine

sys.path.insert(0, str(REPOSITORY / "tests" / "serve"))
import fuzz_cases

GROWTH = 5.0  # per cent
ROUND = 1_000
REST = 6.0  # seconds; longer than the server keeps what it freed
WORDS = ["attention", "regard", "sequence"]


class Fuzz:
    """Sends requests and counts what comes back."""

    def __init__(self, server: Server, seed: int) -> None:
        import requests

        self.server, self.seed = server, seed
        self.chance = random.Random(seed)
        self.session = requests.Session()
        self.statuses: Counter[str] = Counter()
        self.bad: list[dict] = []
        self.sent = 0
        self.bodies = {door: fuzz_cases.bodies(door) for door in fuzz_cases.ENDPOINTS}

    def note(self, status: str, what: object, said: str) -> None:
        """Counts a status; what must not be is kept with all that led to it."""
        self.sent += 1
        self.statuses[status] += 1
        wrong = status.startswith("5") and status != "503"
        if status.startswith("4") and "broken" not in str(what):
            wrong = '"error"' not in said
        if wrong:
            self.bad.append({"status": status, "sent": repr(what)[:500], "said": said[:500]})

    def send(self, method: str, path: str, body: bytes, kind: str = "application/json") -> None:
        """A request of ours."""
        address, headers = self.server.address + path, {"Content-Type": kind}
        answer = self.session.request(method, address, data=body, headers=headers, timeout=120)
        self.note(str(answer.status_code), (method, path, body[:300]), answer.text)

    def own(self) -> None:
        """An odd body, an odd text, or an odd way to ask."""
        chance, door = self.chance, self.chance.choice(fuzz_cases.ENDPOINTS)
        draw = chance.random()
        if draw < 0.4:
            self.send("POST", door, fuzz_cases.encoded(chance.choice(self.bodies[door])))
        elif draw < 0.75:
            text = chance.choice(list(fuzz_cases.TEXTS.values()))
            if chance.random() < 0.5:
                text = "".join(chance.sample(text[:200], k=len(text[:200])))
            self.send("POST", door, fuzz_cases.encoded(fuzz_cases.fields(door, text)))
        elif draw < 0.9:
            body = chance.choice(fuzz_cases.RAW_BODIES)
            kinds = ["application/json", "text/plain", "multipart/form-data", "x", ""]
            self.send("POST", door, body, chance.choice(kinds))
        else:
            method = chance.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "POST"])
            path = chance.choice(
                [*fuzz_cases.ENDPOINTS, *fuzz_cases.PATHS, "/predict/", "/static/../x"]
            )
            if method == "HEAD":  # an answer without a body
                answer = self.session.head(self.server.address + path, timeout=120)
                self.note(str(answer.status_code), "broken: HEAD", "")
            else:
                self.send(method, path, b"")

    def broken(self) -> None:
        """Bytes that are hardly HTTP, over a connection of their own."""
        data = self.chance.choice(fuzz_cases.broken_requests(self.chance))
        said = b""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=120) as door:
            try:
                door.sendall(data)
                door.shutdown(socket.SHUT_WR)
                while part := door.recv(65536):
                    said += part
            except OSError:  # it hung up, which is its right
                pass
        said = said.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        first = said.split(b"\r\n", 1)[0].decode("latin-1")
        status = first.split(" ")[1] if first.startswith("HTTP/") else "no answer"
        self.note(status, ("broken", data[:300]), first)

    def by_description(self, schema, count: int, right: bool, seed: int) -> None:  # type: ignore[no-untyped-def]
        """Requests that schemathesis makes from the OpenAPI description."""
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded
        from schemathesis import GenerationMode

        mode = GenerationMode.POSITIVE if right else GenerationMode.NEGATIVE

        @seeded(seed)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=schema.as_strategy(generation_mode=mode))
        def run(case) -> None:  # type: ignore[no-untyped-def]
            answer = case.call(base_url=self.server.address, timeout=120)
            self.note(str(answer.status_code), case.as_curl_command(), answer.text)

        run()

    def round(self, schema, number: int) -> None:  # type: ignore[no-untyped-def]
        """A thousand requests of all sorts."""
        goal = self.sent + ROUND
        for right in (True, False):
            self.by_description(schema, ROUND // 10, right, 1000 * self.seed + number)
        for _ in range(ROUND // 10):
            self.broken()
        while self.sent < goal:
            self.own()


def measure(args: argparse.Namespace, models: list[Path]) -> dict:
    """All rounds against one server."""
    import schemathesis

    with serving(models) as server:
        before = {word: server.predict(word) for word in WORDS}
        schema = schemathesis.openapi.from_url(server.address + "/openapi.json")
        fuzz = Fuzz(server, args.seed)
        memory: dict[int, float] = {}
        for number in range(args.requests // ROUND):
            fuzz.round(schema, number)
            time.sleep(REST)  # the next answer comes with freed memory given back
            server.predict(WORDS[0])
            memory[fuzz.sent] = round(server.memory(), 1)
            print(f"{fuzz.sent:,} requests: {memory[fuzz.sent]} MB", flush=True)
        after = {word: server.predict(word) for word in WORDS}
        alive = server.alive() and json.loads(server.get("/health"))["status"] == "ok"
    return {
        "requests": fuzz.sent,
        "statuses": dict(sorted(fuzz.statuses.items())),
        "bad": fuzz.bad,
        "memory MB": memory,
        "alive": alive and before == after,
    }


def bars(record: dict) -> list[dict]:
    """Each bar with what was measured."""
    memory = list(record["memory MB"].values())
    begin = memory[min(1, len(memory) - 1)]
    growth = round(100 * (memory[-1] / begin - 1), 1)
    bad = len(record["bad"])
    return [
        {"bar": "bad answers", "wanted": "0", "measured": bad, "reached": bad == 0},
        {
            "bar": "growth of memory",
            "wanted": f"<= {GROWTH} %",
            "measured": f"{growth} %",
            "reached": growth <= GROWTH,
        },
        {
            "bar": "alive, the same answers",
            "wanted": "yes",
            "measured": "yes" if record["alive"] else "no",
            "reached": record["alive"],
        },
    ]


def main() -> int:
    """Prints the figures and writes them; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    models = [g2p_model(model) for model in args.models] or [g2p_model(None)]
    record = {"machine": machine(), "seed": args.seed, **measure(args, models)}
    record["bars"] = bars(record)
    print("\n| status | answers |\n|---|---|")
    for status, count in record["statuses"].items():
        print(f"| {status} | {count:,} |")
    print("\n| bar | wanted | measured | |\n|---|---|---|---|")
    for bar in record["bars"]:
        word = "met" if bar["reached"] else "**missed**"
        print(f"| {bar['bar']} | {bar['wanted']} | {bar['measured']} | {word} |")
    for bad in record["bad"][:10]:
        print(json.dumps(bad, indent=1))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fuzz.json").write_text(json.dumps(record, indent=1) + "\n")
    return int(not all(bar["reached"] for bar in record["bars"]))


if __name__ == "__main__":
    sys.exit(main())
