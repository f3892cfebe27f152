"""Rounds as rows of a database, and the counters of every hour."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from stopwise.checks import StopwiseError, fail, finite_number, parse_json_object
from stopwise.live.limits import check_whole
from stopwise.live.record import MOST_STAGES, RoundRecord
from stopwise.live.stores.connection import Connection, Row

_PAGE = 1000

Asking = Callable[[str, Sequence[Any]], list[Row]]
"""Asks a database: SQL with `?` where values go, and the values."""


def add_rounds(
    connection: Connection, cascade: str, records: Sequence[RoundRecord], *, keep_outputs: bool
) -> None:
    """Keep rounds as rows."""
    now = time.time()
    connection.many(
        "INSERT INTO stopwise_rounds (cascade, writer, sequence, ended, round)"
        " VALUES (?, ?, ?, ?, ?)",
        [
            (cascade, r.writer, r.sequence, now, r.to_text(keep_outputs=keep_outputs))
            for r in records
        ],
    )


def read_rounds(
    ask: Asking, cascade: str, where: str, stage_count: int = MOST_STAGES
) -> Iterator[RoundRecord]:
    """The rounds of all writers, page by page: nothing is held while the caller takes its time.

    Args:
        ask: asks the database.
        cascade: whose rounds.
        where: how the database is named in errors.
        stage_count: how many stages the cascade has.
    """
    last: tuple[Any, ...] = (-1, -1)
    while True:
        rows = ask(
            "SELECT writer, sequence, round FROM stopwise_rounds WHERE cascade = ?"
            " AND (writer, sequence) > (?, ?) ORDER BY writer, sequence LIMIT ?",
            (cascade, *last, _PAGE),
        )
        for writer, sequence, text in rows:
            name = f"{where}: round {writer}/{sequence}"
            try:
                record = RoundRecord.from_form(parse_json_object(name, text), stage_count)
            except StopwiseError as error:
                raise StopwiseError(
                    str(error) if str(error).startswith(name) else f"{name}: {error}"
                ) from None
            yield record
        if len(rows) < _PAGE:
            return
        last = tuple(rows[-1][:2])


def read_hours(
    ask: Asking, cascade: str, where: str, segment: str | None
) -> list[Mapping[str, Any]]:
    """The counters of every hour (UTC), as records of segment, hour, counter and value.

    Args:
        ask: asks the database.
        cascade: whose counters.
        where: how the database is named in errors.
        segment: of one segment alone.
    """
    rows = ask(
        "SELECT segment, hour, counter, value FROM stopwise_hours WHERE cascade = ?"
        " AND (CAST(? AS TEXT) IS NULL OR segment = ?) ORDER BY hour, segment, counter",
        (cascade, segment, segment),
    )
    for name, hour, counter, value in rows:
        if not isinstance(name, str) or not isinstance(counter, str):
            raise fail(f"{where}: counter", f"{name!r}, {counter!r}", "names in text")
        check_whole(f"{where}: hour", hour)
        accepted = "a finite number, 0 or more"
        if finite_number(f"{where}: counter {counter!r}", value, accepted) < 0:
            raise fail(f"{where}: counter {counter!r}", value, accepted)
    return [
        {"segment": name, "hour": 3600 * int(hour), "counter": counter, "value": value}
        for name, hour, counter, value in rows
    ]
