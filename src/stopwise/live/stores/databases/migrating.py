"""SQLite files of earlier releases, turned into those of this one."""

from __future__ import annotations

import json

from stopwise.checks import fail
from stopwise.live.stores.connection import Connection
from stopwise.live.stores.databases.schema import SCHEMA


def migrate_first_version(connection: Connection) -> None:
    """Move the tables of version 1, if they are there, into those of version 2."""
    names = {
        name for (name,) in connection.query("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    if not {"about", "counters", "writers", "rounds"} <= names or "stopwise_cascades" in names:
        return
    about: dict[str, str] = dict(connection.query("SELECT name, value FROM about"))
    if about.get("version") != "1":
        raise fail("version", about.get("version"), "version 1 or 2")
    for statement in SCHEMA:
        connection.query(statement)
    total = connection.query("SELECT COALESCE(SUM(rounds), 0) FROM writers")[0][0]
    connection.query(
        "INSERT INTO stopwise_cascades (cascade, version, seed, settings, rounds)"
        " VALUES ('', 2, ?, ?, ?)",
        (about.get("seed", "0"), about.get("settings", json.dumps({})), total),
    )
    connection.query(
        "INSERT INTO stopwise_writers (cascade, writer, name, token, begun, rounds, watermark)"
        " SELECT '', writer, name, '', begun, rounds, rounds FROM writers"
    )
    connection.query(
        "INSERT INTO stopwise_counters (cascade, segment, counter, value)"
        " SELECT '', segment, counter, value FROM counters"
    )
    connection.query(
        "INSERT INTO stopwise_segments (cascade, segment, number, change)"
        " SELECT '', segment, ROW_NUMBER() OVER (ORDER BY segment), 0"
        " FROM (SELECT DISTINCT segment FROM counters)"
    )
    connection.query(
        "INSERT INTO stopwise_rounds (cascade, writer, sequence, ended, round)"
        " SELECT '', writer, sequence, 0, round FROM rounds"
    )
    for name in ("about", "counters", "writers", "rounds"):
        connection.query(f"DROP TABLE {name}")
