"""Middleware in front of all routes: access checks, body limits, security headers, metrics."""

import hmac
import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.api_errors import INTERNAL_ERROR, ApiError, unavailable
from regard.serve.metrics import Metrics
from regard.serve.settings import ServeSettings

PUBLIC = ("/", "/docs", "/health", "/openapi.json")  # need no API key: the page prompts for it
PAGES = ("/", "/docs")
ALWAYS_SERVED = ("/health", "/metrics")  # also during shutdown and above the connection limit
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}
API_CSP = "default-src 'none'; frame-ancestors 'none'"
PAGE_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
CLOSE = {"connection": "close"}
OVER_LIMIT = "regard.over_limit"  # key in the state of requests on a connection above the limit
PREFLIGHT = "access-control-request-method"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class AccessMiddleware:
    """Middleware that checks each request, adds security headers and updates the metrics."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self.cors = EmptyPreflightCors(
            app,
            settings.cors_origins,
            allow_methods=("GET", "POST"),
            allow_headers=("authorization",),
            expose_headers=("retry-after",),
        )
        self.max_bytes = settings.max_body_bytes
        key = settings.api_key
        self.api_key = None if key is None else key.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status, num_bytes = time.monotonic(), 0, 0

        async def receive_limited() -> Message:
            """Receive a message; also limit bodies without a Content-Length header."""
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > self.max_bytes:
                raise self._too_large()
            return message

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(MutableHeaders(raw=message["headers"]), scope["path"])
            await send(message)

        self.metrics.in_flight += 1
        try:
            app = self._checked_app(scope, Headers(scope=scope))
            # HEAD is a GET whose content the server omits.
            routed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await app(routed, receive_limited, send_with_headers)
        except ApiError as error:
            await error.response()(scope, receive, send_with_headers)
        except Exception:  # a bug: respond, and raise it for the log
            if not status:
                response = ApiError(500, INTERNAL_ERROR).response()
                await response(scope, receive, send_with_headers)
            raise
        finally:
            self.metrics.in_flight -= 1
            seconds = time.monotonic() - start
            self.metrics.count_request(scope["method"], scope["path"], status or 500, seconds)

    def _checked_app(self, scope: Scope, headers: Headers) -> ASGIApp:
        """Return the app that handles a request: with CORS for allowed origins, or without.

        Raise ApiError if the server rejects the request.
        """
        path, origin = scope["path"], headers.get("origin", "")
        is_allowed = bool(origin) and self.cors.is_allowed_origin(origin)
        if is_allowed and scope["method"] == "OPTIONS" and PREFLIGHT in headers:
            return self.cors
        host, allowed = headers.get("host", ""), self.settings.allowed_hosts
        if allowed is not None and host_name(host) not in allowed:
            # DNS rebinding: a foreign page may have pointed its own name at this address.
            raise ApiError(
                400,
                f"Host header: expected {', '.join(allowed)}, found {host[:80]!r}; "
                "add a name with regard serve --allowed-host",
            )
        if OVER_LIMIT in scope.get("state", ()) and path not in ALWAYS_SERVED:
            limit = self.settings.max_connections
            raise unavailable(f"too many connections (limit {limit}); retry later", CLOSE)
        if scope["app"].state.stopping and path not in ALWAYS_SERVED:
            raise unavailable("the server is shutting down; retry later", CLOSE)
        if self.api_key is not None and path not in PUBLIC and not path.startswith("/static/"):
            self._check_api_key(headers.get("authorization", ""), self.api_key)
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 15 or int(length) > self.max_bytes):
            raise self._too_large()
        return self.cors if is_allowed else self.app

    def _check_api_key(self, authorization: str, expected: bytes) -> None:
        scheme, _, key = authorization.partition(" ")
        is_known = hmac.compare_digest(key.strip().encode("utf-8", "replace"), expected)
        if scheme.lower() != "bearer" or not is_known:
            raise ApiError(
                401,
                'missing or invalid API key; send "Authorization: Bearer KEY"',
                headers={"www-authenticate": 'Bearer realm="regard"'},
            )

    def _too_large(self) -> ApiError:
        return ApiError(
            413,
            f"request body: expected at most {self.max_bytes:,} bytes; "
            "split the texts into several requests",
            headers=CLOSE,
        )

    def _add_headers(self, headers: MutableHeaders, path: str) -> None:
        """Add the security and caching headers to a response."""
        headers.update(SECURITY_HEADERS)
        # A 304 has no content type, and its policy replaces the one the browser has stored.
        is_page = path in PAGES or headers.get("content-type", "").startswith("text/html")
        headers["content-security-policy"] = PAGE_CSP if is_page else API_CSP
        headers.setdefault("cache-control", "no-store")
        headers["cross-origin-resource-policy"] = (
            "cross-origin" if self.settings.cors_origins else "same-origin"
        )
        if self.settings.cors_origins:
            headers.add_vary_header("Origin")


class EmptyPreflightCors(CORSMiddleware):
    """Starlette's CORS middleware for allowed origins; preflight responses have no content."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return status 204 with the access-control headers, which the browser enforces."""
        headers = super().preflight_response(request_headers).headers
        cors = {name: headers[name] for name in headers if name.startswith("access-control-")}
        return Response(None, 204, cors)


def host_name(header: str) -> str:
    """Return the name in a Host header, without the port."""
    name = header.rpartition(":")[0] if ":" in header.rpartition("]")[2] else header
    return name.strip("[]").lower()


def is_local(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    return host.startswith("127.") or host.lower() in LOOPBACK


def accepted_hosts(host: str, more: Iterable[str] = ()) -> tuple[str, ...] | None:
    """Return the names accepted in the Host header.

    host: address of the server. more: additional names. For a public address without additional
    names, return None, which accepts any name.
    """
    names = [name.lower() for name in more]
    if not is_local(host) and not names:
        return None
    return tuple(dict.fromkeys((*LOOPBACK, host.lower(), *names)))
