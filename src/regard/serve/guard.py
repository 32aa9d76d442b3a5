"""What stands before all routes: who may ask, how much, and what browsers are told."""

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.serve.api_errors import DAMAGE, Refused, later
from regard.serve.settings import ServeSettings

OPEN = ("/", "/docs", "/health", "/openapi.json")  # without the token: a browser asks for it later
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
LOCAL = ("localhost", "127.0.0.1", "::1")


class Guard:
    """Checks each request before anything else sees it, and marks each answer."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        token = settings.token
        self.token = None if token is None else token.get_secret_value().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        origin, begun = headers.get("origin", ""), False

        async def marked(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._mark(MutableHeaders(raw=message["headers"]), scope["path"], origin)
            await send(message)

        try:
            answer = self._preflight(scope, headers, origin)
            if answer is None:
                self._check(scope, headers)
        except Refused as error:
            answer = error.response()
        if answer is not None:
            return await answer(scope, receive, marked)
        if scope["method"] == "HEAD":  # a GET whose content the server leaves out
            scope = {**scope, "method": "GET"}
        try:
            await self.app(scope, self._limited(receive), marked)
        except Exception:  # a fault of ours, which is told to the log as well
            if not begun:
                await Refused(500, DAMAGE).response()(scope, receive, marked)
            raise

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuses who may not ask, and who asks for too much."""
        path = scope["path"]
        self._check_host(headers.get("host", ""))
        if CROWDED in scope.get("state", ()) and path not in ALWAYS:
            most = self.settings.connections
            raise later(f"{most} connections are open, which is all; ask again in a moment", SHUT)
        if scope["app"].state.stopping and path not in ALWAYS:
            raise later("the server stops; ask again in a moment", SHUT)
        if self.token is not None and path not in OPEN and not path.startswith("/static/"):
            self._check_token(headers.get("authorization", ""))
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 15 or int(length) > self.settings.bytes):
            raise self._too_large()

    def _check_host(self, given: str) -> None:
        """Refuses other names than our own: a page elsewhere may have made one point to us."""
        if self.settings.hosts is not None and host_name(given) not in self.settings.hosts:
            allowed = ", ".join(self.settings.hosts)
            raise Refused(
                400, f"Host: {allowed} expected, {given[:80]!r} found; regard serve --name adds one"
            )

    def _check_token(self, given: str) -> None:
        assert self.token is not None
        kind, _, token = given.partition(" ")
        known = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self.token)
        if kind.lower() != "bearer" or not known:
            raise Refused(
                401,
                "a token is needed: the header Authorization: Bearer TOKEN",
                headers={"www-authenticate": 'Bearer realm="regard"'},
            )

    def _too_large(self) -> Refused:
        return Refused(
            413,
            f"the body: at most {self.settings.bytes:,} bytes; send the texts in parts",
            headers=SHUT,
        )

    def _limited(self, receive: Receive) -> Receive:
        """What comes, as long as it is not too much: a body need not say how long it is."""
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.settings.bytes:
                raise self._too_large()
            return message

        return limited

    def _preflight(self, scope: Scope, headers: Headers, origin: str) -> Response | None:
        """The answer to a browser that asks whether a page of another origin may ask."""
        asked = headers.get("access-control-request-method")
        if scope["method"] != "OPTIONS" or asked is None or not self._welcome(origin):
            return None
        allowed = {
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers": "authorization, content-type",
            "access-control-max-age": "600",
        }
        return Response(None, 204, allowed)

    def _welcome(self, origin: str) -> bool:
        return bool(origin) and (origin in self.settings.cors or "*" in self.settings.cors)

    def _mark(self, headers: MutableHeaders, path: str, origin: str) -> None:
        """Tells browsers what they may do with an answer."""
        for name, value in SAFE.items():
            headers[name] = value
        # A 304 has no content type, and its policy takes the place of the one that the browser has.
        page = path in PAGES or headers.get("content-type", "").startswith("text/html")
        headers["content-security-policy"] = PAGE_POLICY if page else DATA_POLICY
        headers.setdefault("cache-control", "no-store")
        headers["cross-origin-resource-policy"] = (
            "cross-origin" if self.settings.cors else "same-origin"
        )
        if self.settings.cors:
            headers.add_vary_header("Origin")
            if self._welcome(origin):
                headers["access-control-allow-origin"] = origin
                headers["access-control-expose-headers"] = "retry-after"


def host_name(given: str) -> str:
    """The name in a Host header, without its port."""
    name = given.rpartition(":")[0] if ":" in given.rpartition("]")[2] else given
    return name.strip("[]").lower()


def is_local(host: str) -> bool:
    """Whether only programs of this machine reach an address."""
    return host.startswith("127.") or host.lower() in LOCAL


def own_names(host: str, more: Iterable[str] = ()) -> tuple[str, ...] | None:
    """The names that a server on this address is called by; None: any, as others reach it too."""
    names = [name.lower() for name in more]
    if not is_local(host) and not names:
        return None
    return tuple(dict.fromkeys((*LOCAL, host.lower(), *names)))
