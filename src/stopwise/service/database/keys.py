"""Keys: shown once, kept as a hash, looked up by their id, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

from stopwise.checks import StopwiseError, any_of, fail, one_of, positive_number
from stopwise.service.database.connection import Database

SCOPES = ("infer", "read", "label", "admin")
_PREFIX = "sk-sw-"
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


@dataclass(frozen=True)
class Key:
    """A key as the service knows it: never the secret.

    Attributes:
        scopes: what it may do; "admin" includes all others.
        budget: what its requests may cost each day (UTC); None for no limit.
    """

    id: str
    name: str
    scopes: tuple[str, ...]
    created: float
    revoked: float | None = None
    budget: float | None = None

    def may(self, scope: str) -> bool:
        """Whether the key has a scope.

        >>> Key("a", "app", ("infer",), 0.0).may("read")
        False
        """
        return scope in self.scopes or "admin" in self.scopes


class Keys:
    """The keys of a service, with a short memory so that a request does not wait for a query.

    Args:
        fresh: for how many seconds a reading of the table is used; a revoked key may live as long.
    """

    def __init__(self, database: Database, *, fresh: float = 2.0) -> None:
        self._database = database
        self._fresh = fresh
        self._known: dict[str, tuple[str, Key]] = {}
        self._read_at = -1e9

    def create(
        self, name: str, scopes: Sequence[str], budget: float | None = None
    ) -> tuple[Key, str]:
        """Make a key; the second value is its text, which is never seen again."""
        if not name.strip() or len(name) > 100 or not name.isprintable():
            raise fail("name", name, "a name of 1 to 100 printable letters")
        for scope in scopes:
            one_of("scope", scope, SCOPES)
        if not scopes:
            raise fail("scope", list(scopes), "one or more of " + any_of(SCOPES))
        if budget is not None:
            budget = positive_number("budget", budget)
        ordered = tuple(scope for scope in SCOPES if scope in scopes)
        key = Key(secrets.token_hex(6), name, ordered, time.time(), None, budget)
        secret = secrets.token_hex(24)
        with self._database.transaction() as work:
            work.run(
                "INSERT INTO keys (id, hash, name, scopes, created, budget)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (key.id, _hash(secret), name, " ".join(ordered), key.created, budget),
            )
        self._read_at = -1e9
        return key, f"{_PREFIX}{key.id}-{secret}"

    def revoke(self, key_id: str) -> None:
        """End a key; the sessions that it opened end with it."""
        with self._database.transaction() as work:
            changed = work.run(
                "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL",
                (time.time(), key_id),
            )
            work.run("DELETE FROM sessions WHERE key_id = ?", (key_id,))
        self._read_at = -1e9
        if not changed:
            raise StopwiseError(f"key {key_id!r}: there is no such key that is not revoked")

    def all(self) -> list[Key]:
        """Every key, oldest first."""
        self.renew()
        return sorted((key for _, key in self._known.values()), key=lambda key: key.created)

    def any_made(self) -> bool:
        """Whether a key was ever made, revoked or not: from then on every request needs one."""
        return bool(self._known)

    def any_active(self) -> bool:
        """Whether a key exists that is not revoked."""
        return any(key.revoked is None for _, key in self._known.values())

    @property
    def stale(self) -> bool:
        """Whether the table should be read again."""
        return time.monotonic() - self._read_at > self._fresh

    def renew(self) -> None:
        """Read the table (this blocks)."""
        rows = self._database.rows(
            "SELECT id, hash, name, scopes, created, revoked, budget FROM keys"
        )
        self._known = {
            row[0]: (row[1], Key(row[0], row[2], tuple(row[3].split()), *row[4:])) for row in rows
        }
        self._read_at = time.monotonic()

    def find(self, text: str) -> Key | None:
        """The key that a text is, or None; an unknown id takes as long as a wrong secret."""
        key_id, _, secret = text.removeprefix(_PREFIX).partition("-")
        expected, key = self._known.get(key_id, (_NOBODY, None))
        same = hmac.compare_digest(_hash(secret), expected)
        if not same or key is None or key.revoked is not None or not text.startswith(_PREFIX):
            return None
        return key

    def by_id(self, key_id: str) -> Key | None:
        """The key of an id, if it is not revoked: what a session stands for."""
        known = self._known.get(key_id)
        return known[1] if known is not None and known[1].revoked is None else None


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
