"""The pages and where they are."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from stopwise.service.pages import acting, looking
from stopwise.service.pages.login import log_in, log_out, login_page
from stopwise.service.pages.rendering import HERE


async def home(request: Request) -> Response:
    """From the root to the pages."""
    return RedirectResponse("/ui/", status_code=303)


class _Files(StaticFiles):
    def file_response(self, *args: object, **named: object) -> Response:
        response = super().file_response(*args, **named)  # type: ignore[arg-type]
        response.headers["cache-control"] = "max-age=3600"
        return response


PAGES = [
    Route("/", home),
    Route("/ui", home),
    Route("/ui/", looking.cascades),
    Route("/ui/c/{cascade}", looking.cascade),
    Route("/ui/c/{cascade}/savings", looking.savings),
    Route("/ui/c/{cascade}/disagreements", looking.disagreements),
    Route("/ui/c/{cascade}/labels", looking.labels, methods=["GET"]),
    Route("/ui/c/{cascade}/labels", acting.give_label, methods=["POST"]),
    Route("/ui/c/{cascade}/health", looking.health),
    Route("/ui/c/{cascade}/mode", looking.mode, methods=["GET"]),
    Route("/ui/c/{cascade}/mode", acting.change_mode, methods=["POST"]),
    Route("/ui/keys", looking.keys, methods=["GET"]),
    Route("/ui/keys", acting.make_key, methods=["POST"]),
    Route("/ui/keys/revoke", acting.revoke_key, methods=["POST"]),
    Route("/ui/login", login_page, methods=["GET"]),
    Route("/ui/login", log_in, methods=["POST"]),
    Route("/ui/logout", log_out, methods=["POST"]),
    Mount("/ui/static", _Files(directory=HERE / "static")),
]
