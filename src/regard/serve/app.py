"""The application: routes over models, without a socket."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI

from regard.core.version import __version__
from regard.estimators import Estimator
from regard.serve import info_routes, model_routes, schemas
from regard.serve.api_errors import HANDLERS
from regard.serve.body import JsonRoute, with_body
from regard.serve.guard import Guard
from regard.serve.openapi import EVENTS, asks, tells
from regard.serve.search_schema import searches_schema
from regard.serve.service import Service
from regard.serve.settings import ServeSettings
from regard.serve.static import packaged, page

ROUTES: dict[str, tuple[Any, dict[str, Any]]] = {
    "/predict": (model_routes.predict, asks("predict", schemas.PredictAnswer)),
    "/stream": (model_routes.stream_answer, asks("stream", **EVENTS)),
    "/inspect": (model_routes.inspect, asks("inspect")),
    "/alternatives": (model_routes.alternatives, asks("alternatives", schemas.AlternativesAnswer)),
    "/models": (info_routes.models, tells("models", schemas.Models)),
    "/health": (info_routes.health, tells("health", schemas.Health)),
    "/limits": (info_routes.limits, tells("limits")),
    "/metrics": (info_routes.metrics, tells("metrics", kind="text/plain")),
    "/": (info_routes.front, tells("page", kind="text/html")),
    "/docs": (info_routes.docs, tells("docs", kind="text/html")),
    "/static/{name}": (info_routes.static, {**tells("static"), "include_in_schema": False}),
}


def build_app(models: dict[str, Estimator], settings: ServeSettings | None = None) -> FastAPI:
    """The application of these models, the first of which is asked where none is named."""
    settings = settings or ServeSettings()
    service = Service(models, settings, frozenset((*ROUTES, "/openapi.json")))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        await service.batcher.close()

    app = FastAPI(
        title="regard",
        version=__version__,
        description="Sequence models behind HTTP.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers=HANDLERS,  # type: ignore[arg-type]
    )
    app.state.service, app.state.stopping = service, False
    app.state.files = page(page(packaged(), "index.html"), "docs.html")
    searches = searches_schema(models.values(), settings)
    bodies = schemas.limited_bodies(settings, list(models), searches)
    for path, (endpoint, about) in ROUTES.items():
        if path in bodies:
            endpoint = with_body(endpoint, bodies[path])
            about = about | {"route_class_override": JsonRoute}
        app.router.add_api_route(path, endpoint, response_model=None, **about)
    if settings.token is not None:
        api = app.openapi()
        api["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        api["security"] = [{"token": []}]
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    return app
