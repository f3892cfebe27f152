"""Replies that are given again to a request that is sent again."""

from __future__ import annotations

import hashlib
import time

from stopwise.service.database.connection import Database

LIFETIME = 24 * 3600.0


class Replies:
    """The table of replies, by key and by the name that the client gave its request."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key_id: str, name: str) -> tuple[str, int, str] | None:
        """(what was asked, status, reply), or None."""
        rows = self._database.rows(
            "SELECT asked, status, reply FROM replies WHERE key_id = ? AND name = ?", (key_id, name)
        )
        return (rows[0][0], int(rows[0][1]), rows[0][2]) if rows else None

    def put(self, key_id: str, name: str, asked: str, status: int, reply: str) -> bool:
        """Keep a reply; False if there is one already."""
        with self._database.transaction() as work:
            return bool(
                work.run(
                    "INSERT INTO replies (key_id, name, at, asked, status, reply)"
                    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key_id, name) DO NOTHING",
                    (key_id, name, time.time(), asked, status, reply),
                )
            )

    def expire(self, now: float) -> None:
        """Forget old ones."""
        with self._database.transaction() as work:
            work.run("DELETE FROM replies WHERE at < ?", (now - LIFETIME,))


def fingerprint(*parts: bytes) -> str:
    """What tells two requests apart.

    >>> fingerprint(b"a", b"b") == fingerprint(b"ab", b"")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
