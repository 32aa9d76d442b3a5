"""Clients that make trouble: some are slow, some go away in the middle of everything.

Slow ones send or read a byte a second and hold their connection for the whole time. The others
come `--rate` times a second, get so far and no further, and cut the connection: in the head, in
the body, while the answer is computed, while it is read, in the middle of a stream.

usage: python bench/serve_trouble.py PORT WORDS --seconds 30 [--slow 8] [--rate 10]
"""

import argparse
import asyncio
import json
import random
import socket
import struct
from collections import Counter
from pathlib import Path

LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
PAUSE = 1.0  # seconds between two bytes of a slow client


def message(path: str, body: object) -> bytes:
    """The bytes of a request."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def slow_sender(port: int, word: str, first: int) -> None:
    """Sends `first` bytes at once and the rest a byte a second."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    data = message("/predict", {"texts": [word]})
    writer.write(data[:first])
    for place in range(first, len(data)):
        writer.write(data[place : place + 1])
        await writer.drain()
        await asyncio.sleep(PAUSE)


async def slow_reader(port: int, request: bytes) -> None:
    """Asks, and reads a byte a second, through a small window."""
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    door.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(door, ("127.0.0.1", port))
    with door:
        await loop.sock_sendall(door, request)
        while await loop.sock_recv(door, 1):
            await asyncio.sleep(PAUSE)


async def one_that_leaves(port: int, word: str, done: Counter[str], chance: random.Random) -> None:
    """Gets to a random point and cuts the connection, politely or not."""
    path = chance.choices(["/predict", "/stream", "/inspect"], [10, 10, 1])[0]
    body = {"texts": [word]} if path == "/predict" else {"text": word}
    data = message(path, body)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    where = chance.choice(["at once", "head", "body", "computing", "reading"])
    parts = {"at once": 0, "head": chance.randint(1, 60), "body": len(data) - 3}
    writer.write(data[: parts.get(where, len(data))])
    await writer.drain()
    if where == "computing":
        await asyncio.sleep(chance.uniform(0, 0.05))
    if where == "reading":
        await reader.read(20)
    if chance.random() < 0.5:  # a reset instead of an end
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.close()
    done[f"{path}, {where}"] += 1


async def leaving(port: int, words: list[str], rate: float, done: Counter[str]) -> None:
    """Clients that leave, one after another, without end."""
    chance = random.Random(1)
    while True:
        try:
            await one_that_leaves(port, chance.choice(words), done, chance)
        except OSError as error:
            done[f"not even connected: {type(error).__name__}"] += 1
        await asyncio.sleep(1 / rate)


async def run(args: argparse.Namespace, words: list[str], done: Counter[str]) -> None:
    tasks = [leaving(args.port, words, args.rate, done)] if args.rate else []
    for number in range(args.slow):
        word = words[number]
        asked = [message("/stream", {"text": word}), LARGE, message("/predict", {"texts": [word]})]
        tasks.append(slow_reader(args.port, asked[number % 3]))
        tasks.append(slow_sender(args.port, word, [1, 130][number % 2]))
    running = [asyncio.ensure_future(task) for task in tasks]
    await asyncio.wait(running, timeout=args.seconds)
    for task in running:
        if task.done():
            error = task.exception()
            done[f"slow, ended: {type(error).__name__ if error else 'by the server'}"] += 1
        task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("words", type=Path, help="a file, a word a line")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument(
        "--slow", type=int, default=8, help="slow readers, and the same number of senders"
    )
    parser.add_argument("--rate", type=float, default=10, help="clients a second that leave")
    args = parser.parse_args()
    done: Counter[str] = Counter()
    asyncio.run(run(args, args.words.read_text("utf-8").split(), done))
    print(json.dumps(dict(sorted(done.items()))))


if __name__ == "__main__":
    main()
