"""What `regard serve` does: models are loaded, a socket is bound, and requests answered."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import SecretStr, ValidationError

from regard.core.errors import UserError, info
from regard.serve.app import build_app
from regard.serve.guard import accepted_hosts, is_local
from regard.serve.served_models import open_models
from regard.serve.settings import ServeSettings

BACKLOG = 1024  # connections that wait to be taken
KEPT = 30  # seconds that a connection stays open for the next request
GRACE = 5  # seconds for connections to close after the last answer
# oneDNN keeps what it compiles for each shape, 1,024 of them unless told: memory that only grows.
SHAPES = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}


def serve_command(
    places: list[str], host: str, port: int, settings: ServeSettings, **how: str | None
) -> None:
    """Serves models until it is told to stop."""
    os.environ.update(SHAPES | dict(os.environ))  # read when the first model runs
    models = open_models(places, **how)
    app = build_app(models, settings)
    with bound(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}"
        for model in app.state.service.models.values():
            model.warm()
        for facts in app.state.service.facts:
            info(f"{facts['name']}: {facts['task']}, {facts['description']}")
        if settings.api_key is None and not is_local(host):
            info(f"no API key: anyone who can reach {host} can use this server; see --api-key-file")
        info(f"the page: {address}/    the API: {address}/docs")
        print(address, flush=True)
        run(app, listening, settings.timeout)
    info("stopped")


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there; port 0: a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where TCP is named does asyncio send small packets at once; else each waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        if os.name == "posix":  # elsewhere it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(BACKLOG)  # whoever reads the address may come at once
        except (OSError, OverflowError, TypeError) as error:  # TypeError: no name at all
            taken = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
            port_is_wrong = taken or isinstance(error, OverflowError)
            other = "--port, 0 is any that is free" if port_is_wrong else "--host, as 127.0.0.1"
            raise UserError(
                f"{host} port {port}: cannot listen there: {error}; choose another {other}"
            ) from error
        yield listening


def run(app: Any, listening: socket.socket, seconds: float) -> None:
    """Serves the application on a socket; a signal ends it when what runs is answered."""
    import uvicorn

    from regard.serve.connections import watched_connections

    config = uvicorn.Config(
        app,
        log_level="error",  # a warning for each broken request would let anybody fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=KEPT,
        http=watched_connections(max(KEPT, seconds), app.state.service.settings.max_connections),
        backlog=BACKLOG,
        ws="none",  # no route has use for it, and the guard does not look at it
    )

    class Server(uvicorn.Server):
        """Refuses what is new after a signal, answers what runs, then ends."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            loop = asyncio.get_running_loop()
            if app.state.stopping:  # told twice: at once
                loop.call_soon_threadsafe(app.state.service.batcher.drop)
                return
            app.state.stopping = True
            info(f"{signal.Signals(sig).name}: what runs is answered, then the server stops")
            until = time.monotonic() + seconds + GRACE
            loop.call_soon_threadsafe(self.stop_when_idle, loop, until)

        def stop_when_idle(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
            """End when every request is answered; in the loop, amid which the signal came."""
            if app.state.service.metrics.flying and time.monotonic() < until:
                loop.call_later(0.02, self.stop_when_idle, loop, until)
            else:
                self.should_exit = True

    Server(config).run([listening])


def read_api_key(path: Path | None) -> SecretStr | None:
    """The key in a file."""
    if path is None:
        return None
    try:
        key = path.read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--api-key-file {path}: cannot be read: {error}") from error
    if len(key) < 8 or not all("!" <= c <= "~" for c in key):  # what a header can carry
        raise UserError(
            f"--api-key-file {path}: one word of at least 8 characters, letters and digits, "
            "expected; make one: openssl rand -hex 32"
        )
    return SecretStr(key)


def build_settings(host: str, names: list[str], **values: Any) -> ServeSettings:
    """Return the settings of the command line; raise UserError if they are invalid."""
    try:
        return ServeSettings(allowed_hosts=accepted_hosts(host, names), **values)
    except ValidationError as error:
        first = error.errors()[0]
        name = f"--{first['loc'][0]}: ".replace("_", "-") if first["loc"] else ""
        raise UserError(f"{name}{first['msg'].removeprefix('Value error, ')}") from error
