"""Rounds that were begun over HTTP: any replica may receive the next output."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from stopwise.service.database.connection import Database

LIFETIME = 24 * 3600.0


class OpenRounds:
    """The table of open rounds; one row each, changed in transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = " FOR UPDATE" if database.shared else ""

    def begin(self, round_id: str, cascade: str, form: Mapping[str, Any]) -> None:
        """Open a round."""
        now = time.time()
        with self._database.transaction() as work:
            work.run(
                "INSERT INTO open_rounds (id, cascade_name, began, expires, form)"
                " VALUES (?, ?, ?, ?, ?)",
                (round_id, cascade, now, now + LIFETIME, json.dumps(form)),
            )

    def get(self, cascade: str, round_id: str) -> dict[str, Any] | None:
        """What is known of an open round."""
        rows = self._database.rows(
            "SELECT form FROM open_rounds WHERE id = ? AND cascade_name = ?", (round_id, cascade)
        )
        return json.loads(rows[0][0]) if rows else None

    def change(
        self, cascade: str, round_id: str, change: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any] | None:
        """Change a round in a transaction, so that two outputs at once both count; None if gone."""
        with self._database.transaction() as work:
            rows = work.rows(
                "SELECT form FROM open_rounds WHERE id = ? AND cascade_name = ?" + self._lock,
                (round_id, cascade),
            )
            if not rows:
                return None
            form: dict[str, Any] = json.loads(rows[0][0])
            change(form)
            work.run("UPDATE open_rounds SET form = ? WHERE id = ?", (json.dumps(form), round_id))
        return form

    def close(self, cascade: str, round_id: str, how: str) -> dict[str, Any] | None:
        """Let a round receive nothing more; it is deleted when it is counted. None if gone.

        Of several who end it at once, the first says how ("end" or "abandon"); all may count it,
        one does.
        """

        def change(form: dict[str, Any]) -> None:
            form.setdefault("closing", how)

        return self.change(cascade, round_id, change)

    def delete(self, round_id: str) -> None:
        """Forget a round that counts nowhere."""
        with self._database.transaction() as work:
            work.run("DELETE FROM open_rounds WHERE id = ?", (round_id,))

    def expired(self, now: float) -> list[tuple[str, str]]:
        """Rounds that nobody ended: (cascade, id)."""
        return [
            (row[0], row[1])
            for row in self._database.rows(
                "SELECT cascade_name, id FROM open_rounds WHERE expires < ? LIMIT 1000", (now,)
            )
        ]
