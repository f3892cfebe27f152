"""`stopwise serve`: a service of cascades."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    config: Annotated[
        Path | None, typer.Argument(help="The configuration file (TOML).", show_default=False)
    ] = None,
    example: Annotated[
        bool,
        typer.Option("--example", help="Serve three small stages and a stream of labelled texts."),
    ] = False,
    listen: Annotated[
        str, typer.Option(help="For --example: address and port.")
    ] = "127.0.0.1:8600",
) -> None:
    """Serve cascades over HTTP: an OpenAI-compatible front, an API, a dashboard.

    Point a client at *http://127.0.0.1:8600/v1*; the model name is the cascade's. The pages are at
    */ui/*. **--example** needs nothing from outside: look at the page, it is learning already.
    Needs **stopwise[service]**.
    """
    from stopwise.checks import StopwiseError

    if (config is None) is not example:
        raise StopwiseError(
            "config: name a file, such as stopwise serve service.toml, or give --example"
        )
    import asyncio

    from stopwise.cli.shared.needs import need_service

    need_service()
    from stopwise.service.config.reading import read_config
    from stopwise.service.core import Service
    from stopwise.service.http.logs import set_up_logging
    from stopwise.service.serving import serve

    def tell(service: Service) -> None:
        server = service.config.server
        host = f"[{server.host}]" if ":" in server.host else server.host
        where = f"http://{host}:{server.port}"
        typer.echo(f"stopwise: {where}/v1 answers, {where}/ui/ shows; Ctrl-C stops", err=True)

    if config is None:
        from stopwise.service.example.running import run_example

        set_up_logging("warning")
        asyncio.run(run_example(listen, on_ready=tell))
        return
    read = read_config(config)
    set_up_logging(read.server.log_level)
    asyncio.run(serve(read, tell))
