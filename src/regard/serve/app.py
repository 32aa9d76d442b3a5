"""The application: routes over models, without a socket."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from regard.core.version import __version__
from regard.serve import info_routes, model_routes, schemas
from regard.serve.api_errors import HANDLERS
from regard.serve.body import JsonRoute, with_body
from regard.serve.guard import Guard
from regard.serve.openapi import EVENTS, asks, tells
from regard.serve.search_schema import searches_schema
from regard.serve.service import Service
from regard.serve.settings import ServeSettings
from regard.serve.static import packaged, send_file

PAGE, API = "text/html", "Show the page of the API."
ROUTES: dict[str, tuple[Any, dict[str, Any]]] = {
    "/predict": (model_routes.predict, asks("predict", schemas.PredictAnswer)),
    "/stream": (model_routes.stream_answer, asks("stream", **EVENTS)),
    "/inspect": (model_routes.inspect, asks("inspect")),
    "/alternatives": (model_routes.alternatives, asks("alternatives", schemas.AlternativesAnswer)),
    "/models": (info_routes.models, tells("models", schemas.Models)),
    "/health": (info_routes.health, tells("health", schemas.Health)),
    "/limits": (info_routes.limits, tells("limits")),
    "/metrics": (info_routes.metrics, tells("metrics", kind="text/plain")),
    "/": (send_file, tells("page", kind=PAGE, summary="Front", description="Show the page.")),
    "/docs": (send_file, tells("docs", kind=PAGE, summary="Docs", description=API)),
    "/static/{name}": (send_file, tells("static", include_in_schema=False)),
}


def build_app(models: Mapping[str, Any], settings: ServeSettings | None = None) -> FastAPI:
    """Return the application of these models (estimators or predictors), the first of which is
    asked where none is named."""
    settings = settings or ServeSettings()
    predictors = {name: getattr(model, "predictor_", model) for name, model in models.items()}
    service = Service(predictors, settings, frozenset((*ROUTES, "/openapi.json")))
    app = FastAPI(
        title="regard",
        version=__version__,
        description="Sequence models behind HTTP.",
        docs_url=None,
        redoc_url=None,
        lifespan=lambda app: service.batcher.serving(),
        exception_handlers=HANDLERS,  # type: ignore[arg-type]
    )
    app.state.service, app.state.stopping = service, False
    app.state.files = packaged()
    searches = searches_schema((one.config for one in predictors.values()), settings)
    bodies = schemas.limited_bodies(settings, list(models), searches)
    for path, (endpoint, about) in ROUTES.items():
        if path in bodies:
            endpoint = with_body(endpoint, bodies[path])
            about = about | {"route_class_override": JsonRoute}
        app.router.add_api_route(path, endpoint, response_model=None, **about)
    if settings.api_key is not None:
        api = app.openapi()
        api["components"]["securitySchemes"] = {"api_key": {"type": "http", "scheme": "bearer"}}
        api["security"] = [{"api_key": []}]
    app.add_middleware(Guard, settings=settings, metrics=service.metrics)
    return app
