"""The ASGI application: routes, schemas and middleware."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from regard.core.version import __version__
from regard.serve import info_routes, model_routes, schemas
from regard.serve.api_errors import HANDLERS
from regard.serve.body import JsonRoute, with_body_schema
from regard.serve.middleware import AccessMiddleware
from regard.serve.openapi import EVENT_STREAM, get_route, post_route
from regard.serve.search_schema import request_search_schema
from regard.serve.service import Service
from regard.serve.settings import ServeSettings
from regard.serve.static import load_static_files, send_file

HTML = "text/html"
ROUTES: dict[str, tuple[Any, dict[str, Any]]] = {
    "/predict": (model_routes.predict, post_route("predict", schemas.PredictResponse)),
    "/stream": (model_routes.stream, post_route("stream", **EVENT_STREAM)),
    "/inspect": (model_routes.inspect, post_route("inspect")),
    "/alternatives": (
        model_routes.alternatives,
        post_route("alternatives", schemas.AlternativesResponse),
    ),
    "/models": (info_routes.models, get_route("models", schemas.ModelsResponse)),
    "/health": (info_routes.health, get_route("health", schemas.HealthResponse)),
    "/limits": (info_routes.limits, get_route("limits")),
    "/metrics": (info_routes.metrics, get_route("metrics", media_type="text/plain")),
    "/": (
        send_file,
        get_route("page", media_type=HTML, summary="Web UI", description="Return the web UI."),
    ),
    "/docs": (
        send_file,
        get_route("docs", media_type=HTML, summary="Docs", description="Return the API docs."),
    ),
    "/static/{name}": (send_file, get_route("static", include_in_schema=False)),
}


def build_app(models: Mapping[str, Any], settings: ServeSettings | None = None) -> FastAPI:
    """Return the application that serves these models (estimators or predictors).

    A request that names no model uses the first one.
    """
    settings = settings or ServeSettings()
    predictors = {name: getattr(model, "predictor_", model) for name, model in models.items()}
    service = Service(predictors, settings, frozenset((*ROUTES, "/openapi.json")))
    app = FastAPI(
        title="regard",
        version=__version__,
        description="Sequence models over HTTP.",
        docs_url=None,
        redoc_url=None,
        lifespan=lambda app: service.batcher.running_loop(),
        exception_handlers=HANDLERS,  # type: ignore[arg-type]
    )
    app.state.service, app.state.stopping = service, False
    app.state.files = load_static_files()
    configs = (predictor.config for predictor in predictors.values())
    search = request_search_schema(configs, settings)
    bodies = schemas.request_schemas(settings, list(models), search)
    for path, (endpoint, about) in ROUTES.items():
        if path in bodies:
            endpoint = with_body_schema(endpoint, bodies[path])
            about = about | {"route_class_override": JsonRoute}
        app.router.add_api_route(path, endpoint, response_model=None, **about)
    if settings.api_key is not None:
        api = app.openapi()
        api["components"]["securitySchemes"] = {"api_key": {"type": "http", "scheme": "bearer"}}
        api["security"] = [{"api_key": []}]
    app.add_middleware(AccessMiddleware, settings=settings, metrics=service.metrics)
    return app
