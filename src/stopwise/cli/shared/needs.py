"""Saying which extra is missing, in one line."""

from __future__ import annotations

from importlib.util import find_spec

from stopwise.checks import StopwiseError

_SERVICE = ("starlette", "granian", "aiohttp", "jinja2", "prometheus_client", "genai_prices")


def need_service() -> None:
    """Refuse to go on without what `stopwise[service]` brings."""
    missing = [name for name in _SERVICE if find_spec(name) is None]
    if missing:
        raise StopwiseError(
            f"{', '.join(missing)}: not installed; the service needs"
            " pip install 'stopwise[service]'"
        )
