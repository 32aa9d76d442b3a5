"""A crowd of clients in a process of its own, so that it does not take the server's time.

Each client holds one connection open and asks for one word after another; a figure of all goes to
standard output as JSON. Plain sockets: a client library would be slower than the server.

usage: python bench/serve_client.py PORT WORDS --clients 64 --seconds 60 [--first 0]
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Crowd:
    """What all clients share: the words that are left, and what happened."""

    port: int
    words: list[str]
    until: float
    next: int = 0
    times: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    answers: dict[str, str] = field(default_factory=dict)

    def word(self) -> str | None:
        """Return the next word; None when the time is over."""
        if time.monotonic() >= self.until or self.next >= len(self.words):
            return None
        self.next += 1
        return self.words[self.next - 1]


def message(word: str) -> bytes:
    """The bytes of a request."""
    body = json.dumps({"texts": [word]}).encode()
    head = (
        "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of an answer that tells its length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
    return int(head.split(" ", 2)[1]), await reader.readexactly(length)


async def client(crowd: Crowd) -> None:
    """Send requests until the time is over; reconnect after errors."""
    while (word := crowd.word()) is not None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", crowd.port)
            while word is not None:
                began = time.perf_counter()
                writer.write(message(word))
                status, body = await answer(reader)
                crowd.times.append(time.perf_counter() - began)
                note(crowd, word, status, body)
                word = crowd.word()
            writer.close()
        except (OSError, EOFError, IndexError, ValueError) as error:
            crowd.errors[type(error).__name__] += 1


def note(crowd: Crowd, word: str, status: int, body: bytes) -> None:
    """Keeps the answer, or counts the error."""
    if status == 200:
        crowd.answers[word] = json.loads(body)["predictions"][0]["text"]
    else:
        crowd.errors[f"{status} {body[:120].decode(errors='replace')}"] += 1


def quantile(times: list[float], share: float) -> float:
    """Milliseconds within which this share was answered."""
    return round(1000 * sorted(times)[min(len(times) - 1, int(share * len(times)))], 1)


async def run(crowd: Crowd, clients: int) -> None:
    await asyncio.gather(*(client(crowd) for _ in range(clients)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("words", type=Path, help="a file, a word a line")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0, help="words to skip at the start")
    parser.add_argument("--answers", type=Path, help="a file for all answers, JSON")
    args = parser.parse_args()
    words = args.words.read_text("utf-8").split()[args.first :]
    began = time.monotonic()
    crowd = Crowd(args.port, words, began + args.seconds)
    asyncio.run(run(crowd, args.clients))
    seconds = time.monotonic() - began
    if args.answers:
        args.answers.write_text(json.dumps(crowd.answers))
    times = crowd.times or [0.0]
    figures = {
        "requests": len(crowd.times),
        "seconds": round(seconds, 2),
        "a second": round(len(crowd.answers) / seconds, 1),
        "errors": dict(crowd.errors),
        "used up": crowd.next >= len(words),
    }
    latency = {f"p{share}": quantile(times, share / 100) for share in (50, 95, 99)}
    print(json.dumps(figures | latency | {"longest": round(1000 * max(times), 1)}))


if __name__ == "__main__":
    main()
