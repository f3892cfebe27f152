"""Who changed what, when and why; the mode that a cascade is in now; epochs; secrets."""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import dataclass

from stopwise.service.database.connection import Database, Transaction


@dataclass(frozen=True)
class TrailEntry:
    """One entry of the trail."""

    at: float
    who: str
    cascade: str
    what: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class Epoch:
    """Evidence of one meaning: another comparator, price or stage begins another epoch."""

    epoch: str
    began: float
    settings: str


class Trail:
    """Modes and what was changed. A cascade that nobody switched is in the mode of the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def modes(self) -> dict[str, str]:
        """The modes that were set at run time, by cascade."""
        return dict(self._database.rows("SELECT cascade_name, mode FROM modes"))

    def set_mode(
        self, cascade: str, old: str, new: str, who: str, reason: str, *, keep: bool = True
    ) -> None:
        """Switch a cascade and write it down, together.

        Args:
            keep: whether the mode is kept, whatever the file says; False to follow the file, whose
                mode is the new one.
        """
        now = time.time()
        with self._database.transaction() as work:
            work.run("DELETE FROM modes WHERE cascade_name = ?", (cascade,))
            if keep:
                work.run(
                    "INSERT INTO modes (cascade_name, mode, at) VALUES (?, ?, ?)"
                    " ON CONFLICT (cascade_name) DO UPDATE"
                    " SET mode = excluded.mode, at = excluded.at",
                    (cascade, new, now),
                )
            self._write(work, now, who, cascade, "mode", old, new, reason)

    def note(self, who: str, cascade: str, what: str, old: str, new: str, reason: str = "") -> None:
        """Write a change down."""
        with self._database.transaction() as work:
            self._write(work, time.time(), who, cascade, what, old, new, reason)

    @staticmethod
    def _write(work: Transaction, at: float, *fields: str) -> None:
        work.run(
            "INSERT INTO trail (id, at, who, cascade_name, what, old, new, reason)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (str(uuid.uuid4()), at, *fields),
        )

    def changes(self, cascade: str | None = None, limit: int = 200) -> list[TrailEntry]:
        """What was changed, the latest first."""
        where, values = ("WHERE cascade_name = ?", (cascade,)) if cascade else ("", ())
        rows = self._database.rows(
            "SELECT at, who, cascade_name, what, old, new, reason FROM trail"
            f" {where} ORDER BY at DESC LIMIT ?",
            (*values, limit),
        )
        return [TrailEntry(*row) for row in rows]

    def begin_epoch(self, cascade: str, epoch: str, settings: str) -> bool:
        """Note an epoch; True if it is new."""
        with self._database.transaction() as work:
            return bool(
                work.run(
                    "INSERT INTO epochs (cascade_name, epoch, began, settings) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (cascade_name, epoch) DO NOTHING",
                    (cascade, epoch, time.time(), settings),
                )
            )

    def epochs(self, cascade: str) -> list[Epoch]:
        """The epochs of a cascade, the latest first."""
        rows = self._database.rows(
            "SELECT epoch, began, settings FROM epochs WHERE cascade_name = ? ORDER BY began DESC",
            (cascade,),
        )
        return [Epoch(*row) for row in rows]

    def secret(self, name: str) -> bytes:
        """A random number that all replicas share, made when first asked for."""
        with self._database.transaction() as work:
            work.run(
                "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                (name, secrets.token_hex(32)),
            )
            ((value,),) = work.rows("SELECT value FROM secrets WHERE name = ?", (name,))
        return bytes.fromhex(value)
