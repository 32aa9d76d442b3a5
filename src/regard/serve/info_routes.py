"""The routes that say what is there: models, limits, statistics."""

from starlette.requests import Request
from starlette.responses import Response

from regard.core.version import __version__
from regard.serve.api_errors import LATER, as_json
from regard.serve.service import Service


async def models(request: Request) -> Response:
    """List the models and what can be asked of them."""
    return as_json({"models": _service(request).facts})


async def health(request: Request) -> Response:
    """Say that the server is there."""
    service, stopping = _service(request), request.app.state.stopping
    facts = {
        "status": "stopping" if stopping else "ok",
        "version": __version__,
        "models": list(service.models),
        "seconds": round(service.metrics.seconds, 3),
    }
    return as_json(facts, 503 if stopping else 200, LATER if stopping else None)


async def limits(request: Request) -> Response:
    """Say what no request may exceed."""
    return as_json(_service(request).settings.limits())


async def metrics(request: Request) -> Response:
    """Give figures for Prometheus."""
    text = _service(request).metrics.text()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
