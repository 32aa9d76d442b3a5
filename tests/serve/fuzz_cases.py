"""Texts, bodies and bytes for fuzzing: the server must respond with 200 or 4xx."""

import json
import random
from typing import Any

LONG = 1_000_000
ENDPOINTS = ("/predict", "/stream", "/inspect", "/alternatives")
PATHS = ("/", "/models", "/health", "/limits", "/metrics", "/openapi.json", "/docs", "/static/x")

TEXTS = {
    "empty": "",
    "a space": " ",
    "a tab": "a\tb",
    "lines": "ab\ncd\r\nef\u2028gh",
    "NUL": "a\x00b",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x80\x9f",
    "a lone surrogate": "a\ud800b",
    "reversed surrogates": "\udc00\ud800",
    "half an emoji": "\ud83d",
    "emoji": "👩🏽‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 1️⃣",
    "right to left": "مرحبا بالعالم שלום",
    "marks of direction": "\u202eabc\u202c\u2067def\u2069\u200f",
    "combining": "a" + "\u0301" * 300,
    "Chinese": "注意力就是一切",
    "outside of the first plane": "𝔞𠀋\U0010ffff",
    "not a character": "\ufffe\uffff\ufdd0",
    "invisible": "\u200b\u200d\ufeff\u00ad",
    "special tokens": "<s> </s> <pad> <unk> <mask>",
    "a path": "../../../../etc/passwd",
    "a script": "<script>alert(1)</script>\"'&lt;",
    "a format": "%s %n {0} {x!r} ${HOME} $(reboot)",
    "one character a million times": "a" * LONG,
    "a million unknown characters": "ж" * LONG,
    "many words": "ab " * 5_000,
}

SEARCHES: list[Any] = [
    *({"beam": value} for value in (0, -1, 10**9, 10**40, 2.5, "5", None, [5], True)),
    *({"length_penalty": value} for value in (-1e308, 1e308, "x", {})),
    *({"temperature": value} for value in (-1, 1e-300, 1e308)),
    *({"max_length": value} for value in (0, -5, 10**12)),
    *({"min_length": value} for value in (10**12, -1, 50)),
    *({"kind": value} for value in ("beam", "sample", "nothing", 3, None, "")),
    {"kind": "sample", "temperature": 0},
    {"kind": "sample", "top_p": 2},
    {"kind": "sample", "top_k": 10**18},
    {"kind": "sample", "seed": -1},
    {"beam_groups": 7, "beam": 3},
    {"no_repeat_ngram": 10**9},
    {"no such": 1},
    {"__class__": "x"},
    {"": ""},
    [],
    "beam",
    7,
    None,
]

CONSTRAINTS: list[Any] = [
    {"prefix": "a\ud800"},
    {"prefix": "a" * 100_000},
    {"prefix": 3},
    {"prefix": "", "require": [], "ban": []},
    {"require": ["ab"] * 3_000},
    {"require": [""]},
    {"require": "ab"},
    {"ban": [""], "require": ["a"]},
    {"ban": ["a", "b", "c", "d", "e", "f"]},
    {"ban": [{}]},
    {"no such": []},
    [],
    None,
    "x",
]

MODELS: list[Any] = ["", "..", "../../etc/passwd", "\x00", "a" * 10_000, "\ud800", 0, [], {}, True]

RAW_BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"{}",
    b"NaN",
    b'{"texts": [NaN]}',
    b'{"texts": ["a"], "nbest": 1e999}',
    b'{"texts": ["a"], "nbest": ' + b"9" * 5_000 + b"}",
    b'{"texts": ["a"], "texts": 3}',
    b'{"text": "a", "texts": ["a"], "more": 1}',
    b"[" * 100_000,
    b'{"texts": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"a":' * 20_000,
    b'{"texts": ["\xff\xfe"]}',
    b'{"texts": ["\xed\xa0\x80"]}',
    '{"texts": ["ab"]}'.encode("utf-16"),
    b"\xef\xbb\xbf" + b'{"texts": ["ab"]}',
    b"\x00" * 1_000,
    b"texts=ab&nbest=2",
]


PNG = (  # one black pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
FILES: list[Any] = [
    {"data": PNG, "type": "image/png"},
    {"data": PNG, "type": "image/jpeg"},
    {"data": PNG[:-30], "type": "image/png"},
    {"data": PNG[: len(PNG) // 8 * 4], "type": "image/png"},
    {"data": "", "type": "image/png"},
    {"data": "%%%", "type": "image/png"},
    {"data": "\ud800", "type": "image/png"},
    {"data": "UDUgMTAwMDAwIDEwMDAwMCAyNTUK", "type": "image/x-portable-anymap"},  # a bomb
    {"data": "UDUgMiAyIDI1NQo=", "type": "image/x-portable-anymap"},  # without pixels
    {"data": "UDUgLTEgMiAyNTUK", "type": "image/x-portable-anymap"},
    {"data": "R0lGODlh" + "/" * 400, "type": "image/gif"},
    {"data": "A" * 100_000, "type": "image/tiff"},
    {"data": PNG, "type": "text/html"},
    {"data": PNG, "type": "\ud800"},
    {"data": PNG, "type": "image/png", "name": "a"},
    {"data": ["a"], "type": "image/png"},
    {"data": PNG},
    {},
    "a",
    7,
    None,
    [],
]


def fields(path: str, text: str) -> dict[str, Any]:
    """Return a minimal valid body for an endpoint."""
    return {"texts": [text]} if path == "/predict" else {"text": text}


def bodies(path: str) -> list[Any]:
    """Return invalid and unusual bodies for an endpoint."""
    plain = fields(path, "ab")
    wrong: list[Any] = [plain | {"search": search} for search in SEARCHES]
    wrong += [plain | {"constraints": [one] if path == "/predict" else one} for one in CONSTRAINTS]
    wrong += [plain | {"model": model} for model in MODELS]
    for file in FILES:
        single = {"inputs": [file]} if path == "/predict" else {"input": file}
        wrong += [single, plain | single]
    for name, values in {
        "nbest": (0, -1, 10**9, 2.5, "x", None),
        "top": (0, -1, 10**9, None, "x"),
        "return_alignment": ("yes", 3, None),
        "target": ("", "a" * 50_000, "\ud800", 5, []),
        "texts": ([], [""], [None], [["a"]], "ab", ["a"] * 5_000, {}, [1]),
        "inputs": ([], None, {}, FILES[:1] * 300, "ab"),
        "text": (None, 5, [], ["ab"], {}),
        "unknown field": (1,),
    }.items():
        wrong += [plain | {name: value} for value in values]
    return wrong


def encoded(body: Any) -> bytes:
    """Return ASCII JSON, in which lone surrogates are escaped."""
    return json.dumps(body).encode("ascii")


def head(first: str, *lines: str) -> bytes:
    return "\r\n".join([first, "Host: 127.0.0.1", *lines, "", ""]).encode("latin-1")


def broken_requests(rng: random.Random) -> list[bytes]:
    """Return bytes that are invalid or barely valid HTTP."""
    post, kind = "POST /predict HTTP/1.1", "Content-Type: application/json"
    complete = head(post, kind, "Content-Length: 17") + b'{"texts": ["ab"]}'
    return [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
        rng.randbytes(rng.randint(1, 3_000)),
        head("GET /" + "a" * 100_000 + " HTTP/1.1"),
        head("GET /%00%ff%zz HTTP/1.1"),
        head("GET /static/..%2f..%2fetc%2fpasswd HTTP/1.1"),
        head("GET /static/../../../etc/passwd HTTP/1.1"),
        head("GET //etc/passwd HTTP/1.1"),
        head("GET http://example.org/ HTTP/1.1"),
        head("BREW /predict HTTP/1.1"),
        head("CONNECT example.org:443 HTTP/1.1"),
        head("GET /models HTTP/1.1", *(f"X-{n}: y" for n in range(3_000))),
        head("GET /models HTTP/1.1", "X-Long: " + "y" * 200_000),
        head("GET /models HTTP/1.1", "No colon here"),
        head("GET /models HTTP/1.1", "Origin: null", "Cookie: \xff\xfe"),
        head("GET /models HTTP/1.1", "Upgrade: websocket", "Connection: Upgrade"),
        head(post, kind),
        head(post, kind, "Content-Length: -5"),
        head(post, kind, "Content-Length: x"),
        head(post, kind, "Content-Length: 99999999999999"),
        head(post, kind, "Content-Length: 17", "Content-Length: 18") + b'{"texts": ["ab"]}',
        head(post, kind, "Content-Length: 40") + b'{"texts": [',
        head(post, kind, "Transfer-Encoding: chunked") + b"zz\r\n",
        head(post, kind, "Transfer-Encoding: chunked")
        + b"11\r\n"
        + b'{"texts": ["ab"]}\r\n0\r\n\r\n',
        head(post, kind, "Transfer-Encoding: chunked", "Content-Length: 3") + b"0\r\n\r\n",
        head(post, kind, "Expect: 100-continue", "Content-Length: 17"),
        complete[: rng.randint(1, len(complete))],
        complete * 3,
    ]
