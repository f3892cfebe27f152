"""`stopwise keys`: who may use a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stopwise.cli.shared.run_options import AsJsonOption

if TYPE_CHECKING:
    from stopwise.service.database.keys import Keys


def command(
    action: Annotated[str, typer.Argument(help="create, list or revoke.", show_default=False)],
    config: Annotated[Path, typer.Argument(help="The service's configuration file.")],
    key_id: Annotated[
        str | None, typer.Argument(help="For revoke: the id, as list shows it.", show_default=False)
    ] = None,
    name: Annotated[str | None, typer.Option(help="For create: whose key it is.")] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="For create, repeatable: infer, read, label, admin. [infer]"),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="For create: what its requests may cost each day (UTC).")
    ] = None,
    as_json: AsJsonOption = False,
) -> None:
    """Make, list and revoke the keys of a service.

    A key is shown once, when it is made; the service keeps its hash alone. Scopes: **infer** asks
    cascades, **read** sees figures and pages, **label** gives labels, **admin** does everything.
    """
    from stopwise.checks import one_of
    from stopwise.cli.shared.needs import need_service

    one_of("action", action, ("create", "list", "revoke"))
    need_service()
    from stopwise.service.config.reading import read_config
    from stopwise.service.database.connection import open_database
    from stopwise.service.database.keys import Keys

    read = read_config(config)
    database = open_database(read.server.store, read.folder)
    try:
        keys = Keys(database)
        if action == "create":
            _create(keys, name, scope or ["infer"], budget, as_json=as_json)
        elif action == "revoke":
            _revoke(keys, key_id)
        else:
            _list(keys, as_json=as_json)
    finally:
        database.close()


def _create(
    keys: Keys, name: str | None, scopes: list[str], budget: float | None, *, as_json: bool
) -> None:
    from stopwise.checks import StopwiseError
    from stopwise.cli.shared.output import print_json

    if not name:
        raise StopwiseError("name: missing; say whose key it is with --name")
    key, text = keys.create(name, scopes, budget)
    if as_json:
        print_json({"id": key.id, "key": text, "scopes": list(key.scopes)})
    else:
        typer.echo(text)
        typer.echo("This is shown once. Keep it as you keep a password.", err=True)


def _revoke(keys: Keys, key_id: str | None) -> None:
    from stopwise.checks import StopwiseError

    if not key_id:
        raise StopwiseError("key_id: missing; `stopwise keys list` shows ids")
    keys.revoke(key_id)
    typer.echo(f"{key_id} is revoked", err=True)


def _list(keys: Keys, *, as_json: bool) -> None:
    from stopwise.cli.shared.output import print_json

    rows: list[dict[str, object]] = [
        {
            "id": key.id,
            "name": key.name,
            "scopes": list(key.scopes),
            "created": key.created,
            "revoked": key.revoked,
            "budget": key.budget,
        }
        for key in keys.all()
    ]
    if as_json:
        print_json(rows)
    else:
        _show(rows)


def _show(rows: list[dict[str, object]]) -> None:
    import time

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("id", "name", "scopes", "made", "state", box=None, pad_edge=False)
    for row in rows:
        made = time.strftime("%Y-%m-%d", time.gmtime(float(str(row["created"]))))
        scopes = row["scopes"]
        assert isinstance(scopes, list)
        state = "active" if row["revoked"] is None else "revoked"
        cells = (str(row["id"]), str(row["name"]), " ".join(scopes), made, state)
        table.add_row(*(escape(cell) for cell in cells))
    Console().print(table)
