"""Sessions of the pages: a random number in a cookie, its hash in the table."""

from __future__ import annotations

import hashlib
import secrets
import time

from stopwise.service.database.connection import Database

LIFETIME = 12 * 3600.0


def open_session(database: Database, key_id: str) -> str:
    """Begin a session for a key; returns what goes into the cookie."""
    token = secrets.token_urlsafe(32)
    now = time.time()
    with database.transaction() as work:
        work.run("DELETE FROM sessions WHERE expires < ?", (now,))
        work.run(
            "INSERT INTO sessions (hash, key_id, created, expires) VALUES (?, ?, ?, ?)",
            (_hash(token), key_id, now, now + LIFETIME),
        )
    return token


def session_key(database: Database, token: str) -> str | None:
    """The id of the key that a session was opened with; None if it has ended."""
    rows = database.rows(
        "SELECT key_id FROM sessions WHERE hash = ? AND expires > ?", (_hash(token), time.time())
    )
    return rows[0][0] if rows else None


def close_session(database: Database, token: str) -> None:
    """End a session."""
    with database.transaction() as work:
        work.run("DELETE FROM sessions WHERE hash = ?", (_hash(token),))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
