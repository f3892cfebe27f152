"""`stopwise serve`: a service of cascades."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    config: Annotated[
        Path | None, typer.Argument(help="The configuration file (TOML).", show_default=False)
    ] = None,
) -> None:
    """Serve cascades over HTTP: an OpenAI-compatible front, an API, a dashboard.

    Point a client at *http://127.0.0.1:8600/v1*; the model name is the cascade's. The pages are at
    */ui/*. Needs **stopwise[service]**.
    """
    from stopwise.checks import StopwiseError

    if config is None:
        raise StopwiseError("config: missing; name a file, such as stopwise serve service.toml")
    import asyncio

    from stopwise.cli.needs import need_service

    need_service()
    from stopwise.service.config.reading import read_config
    from stopwise.service.core import Service
    from stopwise.service.http.logs import set_up_logging
    from stopwise.service.serving import serve

    read = read_config(config)
    set_up_logging(read.server.log_level)

    def tell(service: Service) -> None:
        server = service.config.server
        host = f"[{server.host}]" if ":" in server.host else server.host
        where = f"http://{host}:{server.port}"
        typer.echo(f"stopwise: {where}/v1 answers, {where}/ui/ shows; Ctrl-C stops", err=True)

    asyncio.run(serve(read, tell))
