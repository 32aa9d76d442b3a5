"""`regard serve`: load the models, bind a socket, run uvicorn."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import SecretStr, ValidationError

from regard.core.errors import UserError, info, warn
from regard.serve.app import build_app
from regard.serve.descriptors import ACCEPT_BATCH, fit_connections
from regard.serve.middleware import accepted_hosts, is_local
from regard.serve.served_models import open_models
from regard.serve.settings import ServeSettings
from regard.serve.throttled_log import ThrottledLog

BACKLOG = 4096  # connections waiting to be accepted; the system may allow fewer
KEEP_ALIVE = 30  # seconds that an idle connection stays open
SHUTDOWN_GRACE = 5  # seconds for connections to close after the last response
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# oneDNN caches a compiled kernel per shape, 1,024 by default: memory that only grows.
ONEDNN_CACHE = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}


def serve_command(
    specs: list[str], host: str, port: int, settings: ServeSettings, **engine: str | None
) -> None:
    """Serve models until a signal arrives."""
    os.environ.update(ONEDNN_CACHE | dict(os.environ))  # read when the first model runs
    models = open_models(specs, **engine)
    max_connections = fit_connections(settings.max_connections)
    settings = settings.model_copy(update={"max_connections": max_connections})
    app = build_app(models, settings)
    with bind_socket(host, port) as listener:
        url_host = f"[{host}]" if ":" in host else host
        url = f"http://{url_host}:{listener.getsockname()[1]}"
        for model in app.state.service.models.values():
            model.warm_up()
        for model in app.state.service.model_info:
            info(f"{model['name']}: {model['task']}, {model['description']}")
        if settings.api_key is None and not is_local(host):
            warn(
                f"no API key set: anyone who can reach {host} can use this server",
                help="--api-key-file FILE",
            )
        info(f"web UI: {url}/  API docs: {url}/docs")
        print(url, flush=True)
        run_server(app, listener, settings.timeout)
    info("stopped")


@contextlib.contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Open a listening socket inside the block; port 0 selects a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only with an explicit TCP asyncio sends small packets at once; otherwise each waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(BACKLOG)  # clients may connect as soon as the address is printed
        except (OSError, OverflowError, TypeError) as error:  # TypeError: not a host name
            in_use = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
            is_port_error = in_use or isinstance(error, OverflowError)
            option = "--port (0 = any free port)" if is_port_error else "--host, e.g. 127.0.0.1"
            raise UserError(
                f"{host} port {port}: cannot listen: {error}", help=f"choose another {option}"
            ) from error
        yield listener


def run_server(app: Any, listener: socket.socket, timeout: float) -> None:
    """Serve the application on a socket until a signal arrives and running requests finish."""
    import uvicorn

    from regard.serve.connections import limited_protocol

    max_connections, log = app.state.service.settings.max_connections, ThrottledLog()
    config = uvicorn.Config(
        app,
        log_level="error",  # a warning per malformed request would let clients fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_GRACE,
        timeout_keep_alive=KEEP_ALIVE,
        http=limited_protocol(max(KEEP_ALIVE, timeout), max_connections, log),
        backlog=ACCEPT_BATCH,  # asyncio accepts this many connections at once
        ws="none",  # no route uses WebSockets, and the middleware does not check them
    )

    class GracefulServer(uvicorn.Server):
        """A server that, after a signal, rejects new requests, finishes running ones and exits."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listener.listen(BACKLOG)  # asyncio has set it to ACCEPT_BATCH
            asyncio.get_running_loop().set_exception_handler(partial(on_loop_error, log))

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            loop = asyncio.get_running_loop()
            if app.state.stopping:  # the second signal: stop at once
                loop.call_soon_threadsafe(app.state.service.batcher.cancel_all)
                return
            app.state.stopping = True
            info(f"{signal.Signals(sig).name}: finishing running requests, then shutting down")
            deadline = time.monotonic() + timeout + SHUTDOWN_GRACE
            loop.call_soon_threadsafe(self.stop_when_idle, loop, deadline)

        def stop_when_idle(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
            """Exit when no request is in flight, or at the deadline. Called in the event loop."""
            if app.state.service.metrics.in_flight and time.monotonic() < deadline:
                loop.call_later(0.02, self.stop_when_idle, loop, deadline)
            else:
                self.should_exit = True

    GracefulServer(config).run([listener])


def on_loop_error(
    log: ThrottledLog, loop: asyncio.AbstractEventLoop, context: dict[str, Any]
) -> None:
    """Handle an error in the event loop: report a lack of descriptors or memory without traceback.

    asyncio tries again after a second, and clients could fill the log with tracebacks.
    """
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES:
        log.report("cannot accept connections", str(error))
    else:
        loop.default_exception_handler(context)


def read_api_key(path: Path | None) -> SecretStr | None:
    """Return the API key in a file; raise UserError if it is short or not printable ASCII."""
    if path is None:
        return None
    try:
        key = path.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {path}: cannot be read: {error}") from error
    if len(key) < 8 or not all("!" <= c <= "~" for c in key):
        raise UserError(
            f"--api-key-file {path}: expected at least 8 printable ASCII characters without spaces",
            help=f"openssl rand -hex 32 > {path}",
        )
    return SecretStr(key)


def build_settings(host: str, names: list[str], **values: Any) -> ServeSettings:
    """Return the server settings from command-line options; raise UserError if one is invalid.

    names: additional host names to accept. values: other settings by name.
    """
    try:
        return ServeSettings(allowed_hosts=accepted_hosts(host, names), **values)
    except ValidationError as error:
        first = error.errors()[0]
        name = f"--{first['loc'][0]}: ".replace("_", "-") if first["loc"] else ""
        raise UserError(f"{name}{first['msg'].removeprefix('Value error, ')}") from error
