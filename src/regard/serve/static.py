"""The files of the page: a fixed list, read once from the package."""

import hashlib
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from regard.serve.api_errors import Refused

FOLDERS = (("regard.serve", "static"), ("regard.views", "pages"))
# Not by `mimetypes`: on Windows it may call a script text/plain, which browsers then do not run.
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".webmanifest": "application/manifest+json; charset=utf-8",
    ".woff2": "font/woff2",
}
BARE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>regard</title>"
    '<p>The page is not part of this installation; <a href="/openapi.json">the API</a> is.</p>'
)


class File(NamedTuple):
    """A file that is sent as it is."""

    content: bytes
    kind: str
    tag: str


def packaged() -> dict[str, File]:
    """The files by name; no other path can be asked for."""
    files = {}
    for package, folder in FOLDERS:
        place = resources.files(package) / folder
        for item in sorted(place.iterdir(), key=lambda one: one.name) if place.is_dir() else []:
            if item.is_file() and Path(item.name).suffix in KINDS:
                files[item.name] = _file(item.name, item.read_bytes())
    return files


def _file(name: str, content: bytes) -> File:
    tag = hashlib.blake2b(content, digest_size=12).hexdigest()
    return File(content, KINDS[Path(name).suffix], f'"{tag}"')


def send_file(request: Request, files: dict[str, File], name: str) -> Response:
    """A file, or that the browser's copy is still good."""
    file = files.get(name)
    if file is None:
        raise Refused(404, f"{name[:80]}: no such file")
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    known = [tag.strip().removeprefix("W/") for tag in _tags(request)]
    if file.tag in known or "*" in known:
        return Response(None, 304, headers)
    return Response(file.content, 200, headers, media_type=file.kind)


def _tags(request: Request) -> list[str]:
    return request.headers.get("if-none-match", "").split(",")


def page(files: dict[str, File], name: str) -> dict[str, File]:
    """The files, with a bare page where that one is not there."""
    return files if name in files else {**files, name: _file(name, BARE.encode())}
