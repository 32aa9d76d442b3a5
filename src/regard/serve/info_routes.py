"""The routes that say what is there: models, limits, figures, pages."""

from starlette.requests import Request
from starlette.responses import Response

from regard.core.version import __version__
from regard.serve.api_errors import as_json
from regard.serve.service import Service
from regard.serve.static import send_file


async def models(request: Request) -> Response:
    """List the models and what can be asked of them."""
    service: Service = request.app.state.service
    return as_json({"models": service.facts})


async def health(request: Request) -> Response:
    """Say that the server is there."""
    service: Service = request.app.state.service
    stopping = request.app.state.stopping
    facts = {
        "status": "stopping" if stopping else "ok",
        "version": __version__,
        "models": list(service.models),
        "seconds": round(service.metrics.seconds, 3),
    }
    return as_json(facts, 503 if stopping else 200, {"retry-after": "1"} if stopping else None)


async def limits(request: Request) -> Response:
    """Say what no request may exceed."""
    service: Service = request.app.state.service
    return as_json(service.settings.limits())


async def metrics(request: Request) -> Response:
    """Give figures for Prometheus."""
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def front(request: Request) -> Response:
    """Show the page."""
    return send_file(request, request.app.state.files, "index.html")


async def docs(request: Request) -> Response:
    """Show the page of the API."""
    return send_file(request, request.app.state.files, "docs.html")


async def static(request: Request, name: str) -> Response:
    """Send a file of the pages."""
    return send_file(request, request.app.state.files, name)
