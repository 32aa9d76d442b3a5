"""The files of the page: a fixed list, read once from the package."""

import hashlib
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from regard.serve.api_errors import Refused

FOLDERS = (("regard.serve", "static"), ("regard.views", "pages"))
PAGES = {"/": "index.html", "/docs": "docs.html"}
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
    """Return the files by name, no other path can be asked for; a bare page for one not there."""
    files = {name: _file(name, BARE.encode()) for name in PAGES.values()}
    for package, folder in FOLDERS:
        place = resources.files(package) / folder
        for item in sorted(place.iterdir(), key=lambda one: one.name) if place.is_dir() else []:
            if item.is_file() and Path(item.name).suffix in KINDS:
                files[item.name] = _file(item.name, item.read_bytes())
    return files


def _file(name: str, content: bytes) -> File:
    tag = hashlib.blake2b(content, digest_size=12).hexdigest()
    return File(content, KINDS[Path(name).suffix], f'"{tag}"')


async def send_file(request: Request) -> Response:
    """Send a file of the pages, or that the browser's copy is still good."""
    name = request.path_params.get("name") or PAGES[request.url.path]
    file = request.app.state.files.get(name)
    if file is None:
        raise Refused(404, f"{name[:80]}: no such file")
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    tags = request.headers.get("if-none-match", "").split(",")
    known = [tag.strip().removeprefix("W/") for tag in tags]
    if file.tag in known or "*" in known:
        return Response(None, 304, headers)
    return Response(file.content, 200, headers, media_type=file.kind)
