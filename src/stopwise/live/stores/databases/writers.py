"""The rows of a cascade and of its writers: settings, numbers of changes, watermarks."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Callable

from stopwise.checks import fail, parse_json_object
from stopwise.live.limits import check_whole
from stopwise.live.settings import LearnerSettings
from stopwise.live.stores.base import StoreError
from stopwise.live.stores.connection import Connection
from stopwise.live.stores.databases.schema import VERSION


class SqlWriter:
    """One writer of a cascade; all methods are called in a transaction.

    Args:
        where: how the database is named in errors.
        cascade: its name.
        name: of the writer; None is a new one each time.
    """

    def __init__(self, where: str, cascade: str, name: str | None) -> None:
        self._where = where
        self._cascade = cascade
        self._name = name
        self._token = ""
        self.number = 0

    def check_cascade(self, connection: Connection, settings: LearnerSettings, seed: int) -> None:
        """Begin the cascade, or refuse one that was begun with other settings."""
        connection.query(
            "INSERT INTO stopwise_cascades (cascade, version, seed, settings) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (cascade) DO NOTHING",
            (self._cascade, VERSION, json.dumps(seed), json.dumps(settings.to_form())),
        )
        version, other_seed, form = connection.query(
            "SELECT version, seed, settings FROM stopwise_cascades WHERE cascade = ?",
            (self._cascade,),
        )[0]
        if version != VERSION:
            raise fail(
                f"{self._where}: version", version,
                f"version {VERSION}, the only one that this release reads",
            )  # fmt: skip
        exactly = self._name is not None and other_seed == json.dumps(seed)
        there = parse_json_object(f"{self._where}: settings", form)
        settings.check_same(there, self._where, exactly=exactly)

    def take(self, connection: Connection, claim: Callable[[Connection, int], None]) -> int:
        """Take a number and refuse a name that is in use; return how many rounds it has kept.

        Args:
            connection: in a transaction.
            claim: refuses the writer of a number that another process uses at this moment.
        """
        name = self._name or f"unnamed {uuid.uuid4()}"
        key = (self._cascade, name)
        # Writers count from 1: 0 is a learner that shares with nobody. The row of the cascade is
        # locked, so that two do not take one number.
        connection.query(
            "UPDATE stopwise_cascades SET change = change WHERE cascade = ?", (self._cascade,)
        )
        connection.query(
            "INSERT INTO stopwise_writers (cascade, writer, name, token)"
            " SELECT ?, COALESCE(MAX(writer), 0) + 1, ?, '' FROM stopwise_writers WHERE cascade = ?"
            " ON CONFLICT (cascade, name) DO NOTHING",
            (*key, self._cascade),
        )
        query = "SELECT writer, watermark FROM stopwise_writers WHERE cascade = ? AND name = ?"
        writer, watermark = connection.query(query, key)[0]
        self.number = check_whole(f"{self._where}: writer", writer)
        claim(connection, self.number)
        self._token = secrets.token_hex(16)
        connection.query(
            "UPDATE stopwise_writers SET token = ? WHERE cascade = ? AND name = ?",
            (self._token, *key),
        )
        return check_whole(f"{self._where}: watermark", watermark)

    def begun(self, connection: Connection) -> int:
        """How many rounds this writer has begun, as far as the store knows."""
        row = connection.query(
            "SELECT begun FROM stopwise_writers WHERE cascade = ? AND writer = ?",
            (self._cascade, self.number),
        )[0]
        return check_whole(f"{self._where}: begun", row[0])

    def last_change(self, connection: Connection) -> tuple[int, int]:
        """The number of the last change, and how many rounds all others have finished."""
        change, total, own = connection.query(
            "SELECT c.change, c.rounds, w.rounds FROM stopwise_cascades c, stopwise_writers w"
            " WHERE c.cascade = ? AND w.cascade = ? AND w.writer = ?",
            (self._cascade, self._cascade, self.number),
        )[0]
        rounds = check_whole(f"{self._where}: rounds", total)
        others = rounds - check_whole(f"{self._where}: rounds", own)
        return check_whole(f"{self._where}: change", change), max(others, 0)

    def watermark(self, connection: Connection) -> int:
        """The number of the last round of this writer that is kept."""
        found = connection.query(
            "SELECT watermark FROM stopwise_writers WHERE cascade = ? AND writer = ? AND token = ?",
            (self._cascade, self.number, self._token),
        )
        if not found:
            raise StoreError(f"{self._where}: another process writes under the name {self._name!r}")
        return int(found[0][0])

    def next_change(self, connection: Connection, rounds: int) -> int:
        """Take the number of a change, which adds some rounds."""
        return int(
            connection.query(
                "UPDATE stopwise_cascades SET change = change + 1, rounds = rounds + ?"
                " WHERE cascade = ? RETURNING change",
                (rounds, self._cascade),
            )[0][0]
        )
