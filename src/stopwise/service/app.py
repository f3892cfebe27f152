"""The application: every route in one list, guarded from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import create_task_group
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stopwise.service.api.routes import API
from stopwise.service.core import Service
from stopwise.service.front.chat import chat_completions
from stopwise.service.front.decisions import decisions
from stopwise.service.front.models import embeddings, model, models, no_responses
from stopwise.service.http.access import who
from stopwise.service.http.errors import HANDLERS
from stopwise.service.http.guard import Guard
from stopwise.service.http.json import Json
from stopwise.service.pages.routes import PAGES


async def healthz(request: Request) -> Response:
    """Whether the process lives."""
    return Json({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Whether it takes requests and what it writes arrives."""
    service: Service = request.app.state.service
    problem = "stopping" if service.stopping else service.store_error
    status = {"status": problem or "ready"}
    return Json(status, 200 if problem is None else 503)


async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    await who(request, "read")
    service: Service = request.app.state.service
    # Learners are looked at under their locks: not where requests wait.
    text = await asyncio.to_thread(service.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def make_app(service: Service) -> Starlette:
    """The ASGI application of a service; its life is the service's."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # Loads what starlette streams with: the first stream would hold up all requests for it.
        async with create_task_group():
            pass
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/v1/chat/completions", chat_completions, methods=["POST"]),
            Route("/v1/decisions", decisions, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/responses", no_responses, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name}", model),
            *API,
            *PAGES,
        ],
        middleware=[Middleware(Guard, service=service)],
        exception_handlers=HANDLERS,
        lifespan=lifespan,
    )
    app.state.service = service
    return app
