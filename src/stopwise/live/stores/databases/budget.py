"""A budget that all writers of a database share: each takes a part of it, for a while.

What a writer holds counts as spent, so that all together never spend more than there is. A process
that dies gives nothing back. So a part is held on a lease, which the writer renews while it lives;
once it has run out, the part is free for others. A writer that could not renew its lease in time (a
machine that slept, a network that was away) takes a new part before it spends again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from stopwise.live.limits import enough_for_sums
from stopwise.live.stores.connection import Connection

LEASE_SECONDS = 60.0
"""For how long a part is held without being renewed."""

_LEASE = """INSERT INTO stopwise_leases (cascade, writer, until) VALUES (?, ?, {now} + ?)
ON CONFLICT (cascade, writer) DO UPDATE SET until = excluded.until"""
_HELD = """SELECT COALESCE(SUM(w.held), 0) FROM stopwise_writers w
LEFT JOIN stopwise_leases l ON l.cascade = w.cascade AND l.writer = w.writer
WHERE w.cascade = ? AND w.held > 0 AND COALESCE(l.until, 0) > {now}"""


class SharedBudget:
    """One writer's part of a budget; but for `settle`, methods are called in a transaction.

    Args:
        cascade, writer: whose it is.
        now: the seconds of the database's own clock, in its SQL: machines differ.
        seconds: how long a lease lasts.
        clock: of this process.
    """

    def __init__(
        self,
        cascade: str,
        writer: int,
        now: str,
        seconds: float = LEASE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = (cascade, writer)
        self._now = now
        self._seconds = seconds
        self._clock = clock
        self._renewed = 0.0  # when the lease was last renewed, by the clock of this process
        self._holds = False
        self.doubt: float | None = None  # what was held before a grant that may have been lost

    def begin(self, connection: Connection) -> None:
        """A process that begins holds nothing, whatever one of the same name held."""
        connection.query(
            "UPDATE stopwise_writers SET held = 0 WHERE cascade = ? AND writer = ?", self._key
        )

    def grant(self, connection: Connection, least: float, most: float, budget: float) -> float:
        """Take a part: between least and most, or 0 where less is left."""
        cascade = self._key[0]
        if self.expired:
            self.begin(connection)
        own = "SELECT held FROM stopwise_writers WHERE cascade = ? AND writer = ?"
        self.doubt = connection.query(own, self._key)[0][0]
        spent = connection.query(
            "SELECT COALESCE(SUM(value), 0) FROM stopwise_counters"
            " WHERE cascade = ? AND counter = 'spent'",
            (cascade,),
        )[0][0]
        held = connection.query(_HELD.format(now=self._now), (cascade,))[0][0]
        left = budget - spent - held
        part = max(min(most, left), 0.0) if least <= enough_for_sums(left) else 0.0
        connection.query(
            "UPDATE stopwise_writers SET held = held + ? WHERE cascade = ? AND writer = ?",
            (part, *self._key),
        )
        self._renew(connection)
        return part

    def settle(self, connection: Connection) -> None:
        """After a lost connection: take back a grant whose answer never arrived."""
        if self.doubt is not None:
            with connection.transaction():
                connection.query(
                    "UPDATE stopwise_writers SET held = ? WHERE cascade = ? AND writer = ?",
                    (self.doubt, *self._key),
                )
            self.doubt = None

    def give_back(self, connection: Connection, part: float) -> None:
        """Return what was granted and not spent."""
        connection.query(
            "UPDATE stopwise_writers SET held = held - ? WHERE cascade = ? AND writer = ?",
            (part, *self._key),
        )

    @property
    def expired(self) -> bool:
        """Whether what was granted may be another's by now; until more is asked for."""
        return self._holds and self._clock() > self._renewed + self._seconds

    @property
    def due(self) -> bool:
        """Whether the lease is to be renewed."""
        age = self._clock() - self._renewed
        return self._holds and self._seconds / 4 < age <= self._seconds

    def renew(self, connection: Connection) -> None:
        """Hold what is held for as long again, if it is still this writer's."""
        if self._holds and not self.expired:
            self._renew(connection)

    def _renew(self, connection: Connection) -> None:
        begun = self._clock()
        connection.query(_LEASE.format(now=self._now), (*self._key, self._seconds))
        self._renewed, self._holds = begun, True
