"""Parts of a day's budget that replicas hold: what all hold and have written never passes it.

The rule is that of a live cascade's budget (`stopwise.live.stores.databases.budget`): a replica
takes a part in a transaction, and what it holds counts as spent. It holds it on a lease, which it
renews, so that what a replica held which died is free again after a while.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from stopwise.live.stores.databases.budget import LEASE_SECONDS
from stopwise.service.database.connection import Database, Transaction
from stopwise.service.database.writing import COMPARISON, DAY_HOURS, budget_name

_NOW = "EXTRACT(EPOCH FROM clock_timestamp())"  # the database's own clock: machines differ
_PARTS = 8
"""A part is an eighth of what is left: few are asked for, and near the end parts are small."""


class Grants:
    """What one replica holds, in PostgreSQL. Calls block.

    Args:
        seconds: how long a part is held without being renewed.
    """

    def __init__(self, database: Database, seconds: float = LEASE_SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._renewed = time.monotonic()
        self.holder = uuid.uuid4().hex

    def take(self, name: str, day: int, least: float, budget: float, *, whole: bool) -> float:
        """Take a part of what is left: `least` or more, or 0 if there is none.

        Args:
            whole: whether all of `least` has to be left; else whatever is left is enough, so that
                the budget is passed by one request at most.
        """
        begun = time.monotonic()
        with self._database.transaction() as work:
            work.run("SELECT pg_advisory_xact_lock(hashtext(?))", (f"stopwise budget {name}",))
            self._lock(work)
            # First what is held: what is written meanwhile then counts twice, and never not at all.
            held = work.rows(
                "SELECT COALESCE(SUM(held), 0) FROM grants"
                f" WHERE name = ? AND day = ? AND held > 0 AND until > {_NOW}",
                (name, day),
            )[0][0]
            own = work.rows(
                "SELECT held FROM grants WHERE name = ? AND day = ? AND replica = ?",
                (name, day, self.holder),
            )
            left = budget - held - _spent(work, name, day)
            # Below 0 is what calls cost beyond what was taken: it is spent, and not asked for.
            need = least + min(own[0][0], 0.0) if own else least
            if left <= 0 or (whole and left < need * (1 - 1e-9)):
                return 0.0
            part = max(least, left / _PARTS)
            work.run(
                "INSERT INTO grants (name, day, replica, held, until)"
                f" VALUES (?, ?, ?, ?, {_NOW} + ?) ON CONFLICT (name, day, replica)"
                " DO UPDATE SET held = grants.held + excluded.held, until = excluded.until",
                (name, day, self.holder, part, self._seconds),
            )
            self._renew(work)
        self._renewed = begun
        return float(part)

    def give_back(self, day: int, parts: Mapping[str, float | None]) -> None:
        """Return parts that are not needed (None: all of it), and hold the rest for longer."""
        begun = time.monotonic()
        with self._database.transaction() as work:
            self._lock(work)
            for name, part in sorted(parts.items()):
                if part is None:
                    work.run(
                        "DELETE FROM grants WHERE name = ? AND day = ? AND replica = ?",
                        (name, day, self.holder),
                    )
                else:
                    work.run(
                        "UPDATE grants SET held = held - ? WHERE name = ? AND day = ?"
                        " AND replica = ?",
                        (part, name, day, self.holder),
                    )
            self._renew(work)
            work.run(
                "DELETE FROM grants WHERE (name, day, replica) IN (SELECT name, day, replica"
                f" FROM grants WHERE until < {_NOW} - ? FOR UPDATE SKIP LOCKED)",
                (self._seconds,),
            )
        self._renewed = begun

    def _lock(self, work: Transaction) -> None:
        """Lock all rows of this replica, in the order in which `write_entries` charges them.

        In another order, taking a part and writing what was spent would wait for each other.
        """
        work.rows(
            'SELECT 1 FROM grants WHERE replica = ? ORDER BY name COLLATE "C", day FOR UPDATE',
            (self.holder,),
        )

    def _renew(self, work: Transaction) -> None:
        work.run(
            f"UPDATE grants SET until = {_NOW} + ? WHERE replica = ?", (self._seconds, self.holder)
        )

    @property
    def lapsed(self) -> bool:
        """Whether what was taken may be another's by now."""
        return time.monotonic() > self._renewed + self._seconds

    def begin_again(self) -> None:
        """Hold nothing, under another name: what this one held runs out by itself."""
        self.holder = uuid.uuid4().hex
        self._renewed = time.monotonic()


def _spent(work: Transaction, name: str, day: int) -> float:
    kind = COMPARISON if name.startswith(f"{COMPARISON}:") else name
    rows = work.rows(
        "SELECT cascade_name, SUM(value) FROM sums WHERE hour >= ? AND hour < ? AND name = ?"
        " GROUP BY cascade_name",
        (day * DAY_HOURS, (day + 1) * DAY_HOURS, kind),
    )
    return float(sum(value for cascade, value in rows if budget_name(cascade, kind) == name))
