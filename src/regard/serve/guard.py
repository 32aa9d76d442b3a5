"""What stands before all routes: who may ask, how much, and what browsers are told."""

import hmac
import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.api_errors import DAMAGE, Refused, later
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeSettings

OPEN = ("/", "/docs", "/health", "/openapi.json")  # without the key: a browser asks for it later
PAGES = ("/", "/docs")
ALWAYS = ("/health", "/metrics")  # answered also while the server stops, or has no room
SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SHUT = {"connection": "close"}
CROWDED = "regard.crowded"  # in the state of a request whose connection is one too many
PREFLIGHT = "access-control-request-method"
LOCAL = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Checks each request before anything else sees it, marks each answer, and counts both."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.cors = Cors(
            app,
            settings.cors_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("authorization",),
            expose_headers=("retry-after",),
        )
        self.bytes = settings.max_body_bytes
        key = settings.api_key
        self.api_key = None if key is None else key.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status, taken = time.monotonic(), 0, 0

        async def limited() -> Message:
            """What comes, as long as it is not too much: a body need not say how long it is."""
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.bytes:
                raise self._too_large()
            return message

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._mark(MutableHeaders(raw=message["headers"]), scope["path"])
            await send(message)

        self.metrics.flying += 1
        try:
            app = self._checked(scope, Headers(scope=scope))
            # HEAD is a GET whose content the server leaves out.
            seen = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await app(seen, limited, marked)
        except Refused as error:
            await error.response()(scope, receive, marked)
        except Exception:  # a fault of ours, which is told to the log as well
            if not status:
                await Refused(500, DAMAGE).response()(scope, receive, marked)
            raise
        finally:
            self.metrics.flying -= 1
            seconds = time.monotonic() - began
            self.metrics.request(scope["method"], scope["path"], status or 500, seconds)

    def _checked(self, scope: Scope, headers: Headers) -> ASGIApp:
        """Return who answers; refuse who may not ask, and who asks for too much."""
        path, origin = scope["path"], headers.get("origin", "")
        welcome = bool(origin) and self.cors.is_allowed_origin(origin)
        if welcome and scope["method"] == "OPTIONS" and PREFLIGHT in headers:
            return self.cors
        given, hosts = headers.get("host", ""), self.settings.allowed_hosts
        if hosts is not None and host_name(given) not in hosts:
            # A page elsewhere may have made a name of its own point to us.
            raise Refused(
                400,
                f"Host: {', '.join(hosts)} expected, {given[:80]!r} found; "
                "add it with regard serve --allowed-host",
            )
        if CROWDED in scope.get("state", ()) and path not in ALWAYS:
            most = self.settings.max_connections
            raise later(f"{most} connections are open, which is all; ask again in a moment", SHUT)
        if scope["app"].state.stopping and path not in ALWAYS:
            raise later("the server stops; ask again in a moment", SHUT)
        if self.api_key is not None and path not in OPEN and not path.startswith("/static/"):
            self._check_api_key(headers.get("authorization", ""), self.api_key)
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 15 or int(length) > self.bytes):
            raise self._too_large()
        return self.cors if welcome else self.app

    def _check_api_key(self, given: str, expected: bytes) -> None:
        kind, _, key = given.partition(" ")
        known = hmac.compare_digest(key.strip().encode("utf-8", "replace"), expected)
        if kind.lower() != "bearer" or not known:
            raise Refused(
                401,
                "an API key is needed: the header Authorization: Bearer KEY",
                headers={"www-authenticate": 'Bearer realm="regard"'},
            )

    def _too_large(self) -> Refused:
        return Refused(
            413, f"the body: at most {self.bytes:,} bytes; send the texts in parts", headers=SHUT
        )

    def _mark(self, headers: MutableHeaders, path: str) -> None:
        """Tell browsers what they may do with an answer."""
        headers.update(SAFE)
        # A 304 has no content type, and its policy takes the place of the one that the browser has.
        page = path in PAGES or headers.get("content-type", "").startswith("text/html")
        headers["content-security-policy"] = PAGE_POLICY if page else DATA_POLICY
        headers.setdefault("cache-control", "no-store")
        headers["cross-origin-resource-policy"] = (
            "cross-origin" if self.settings.cors_origins else "same-origin"
        )
        if self.settings.cors_origins:
            headers.add_vary_header("Origin")


class Cors(CORSMiddleware):
    """Starlette's, for origins that are welcome; its answer to a preflight has no content."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return what a page of another origin may ask for; the browser decides."""
        told = super().preflight_response(request_headers).headers
        kept = {name: told[name] for name in told if name.startswith("access-control-")}
        return Response(None, 204, kept)


def host_name(given: str) -> str:
    """Return the name in a Host header, without its port."""
    name = given.rpartition(":")[0] if ":" in given.rpartition("]")[2] else given
    return name.strip("[]").lower()


def is_local(host: str) -> bool:
    """Return whether only programs of this machine reach an address."""
    return host.startswith("127.") or host.lower() in LOCAL


def accepted_hosts(host: str, more: Iterable[str] = ()) -> tuple[str, ...] | None:
    """Return the names that a server on this address is called by; None: any, as others reach it
    too."""
    names = [name.lower() for name in more]
    if not is_local(host) and not names:
        return None
    return tuple(dict.fromkeys((*LOCAL, host.lower(), *names)))
