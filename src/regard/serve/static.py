"""Static files of the web UI, read once from the package when the server starts."""

import hashlib
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from regard.serve.api_errors import ApiError

FOLDERS = (("regard.serve", "static"), ("regard.views", "pages"))
PAGES = {"/": "index.html", "/docs": "docs.html"}
# Not from `mimetypes`: on Windows it may return text/plain for scripts, which browsers then block.
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".webmanifest": "application/manifest+json; charset=utf-8",
    ".woff2": "font/woff2",
}
PLACEHOLDER = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>regard</title>"
    '<p>The web UI is not installed; <a href="/openapi.json">the API</a> is available.</p>'
)


class StaticFile(NamedTuple):
    """The content of a file with its media type and ETag."""

    content: bytes
    media_type: str
    etag: str


def load_static_files() -> dict[str, StaticFile]:
    """Return the files by name; a placeholder replaces missing HTML pages."""
    files = {name: _static_file(name, PLACEHOLDER.encode()) for name in PAGES.values()}
    for package, name in FOLDERS:
        folder = resources.files(package) / name
        for item in sorted(folder.iterdir(), key=lambda one: one.name) if folder.is_dir() else []:
            if item.is_file() and Path(item.name).suffix in MEDIA_TYPES:
                files[item.name] = _static_file(item.name, item.read_bytes())
    return files


def _static_file(name: str, content: bytes) -> StaticFile:
    digest = hashlib.blake2b(content, digest_size=12).hexdigest()
    return StaticFile(content, MEDIA_TYPES[Path(name).suffix], f'"{digest}"')


async def send_file(request: Request) -> Response:
    """Return a file of the web UI, or 304 if the browser's copy is current."""
    name = request.path_params.get("name") or PAGES[request.url.path]
    file = request.app.state.files.get(name)
    if file is None:
        raise ApiError(404, f"unknown file {name[:80]}")
    headers = {"etag": file.etag, "cache-control": "no-cache"}
    etags = request.headers.get("if-none-match", "").split(",")
    cached = [etag.strip().removeprefix("W/") for etag in etags]
    if file.etag in cached or "*" in cached:
        return Response(None, 304, headers)
    return Response(file.content, 200, headers, media_type=file.media_type)
