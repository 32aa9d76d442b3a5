"""Routes for information about the server: models, health, limits, metrics."""

from starlette.requests import Request
from starlette.responses import Response

from regard.core.version import __version__
from regard.serve.api_errors import RETRY_AFTER, json_response
from regard.serve.service import Service


async def models(request: Request) -> Response:
    """List the models with their capabilities and search settings."""
    return json_response({"models": _service(request).model_info})


async def health(request: Request) -> Response:
    """Report whether the server accepts requests."""
    service, stopping = _service(request), request.app.state.stopping
    status = {
        "status": "stopping" if stopping else "ok",
        "version": __version__,
        "models": list(service.models),
        "uptime_seconds": round(service.metrics.uptime, 3),
    }
    return json_response(status, 503 if stopping else 200, RETRY_AFTER if stopping else None)


async def limits(request: Request) -> Response:
    """List the limits of requests."""
    return json_response(_service(request).settings.limits())


async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus."""
    text = _service(request).metrics.render()
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
